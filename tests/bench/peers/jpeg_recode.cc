// SPDX-License-Identifier: Apache-2.0
//
// jpeg_recode KIND FROM TO: writes the JPEG file FROM as another kind of JPEG
// to TO.
//
// KIND: 420 or 444 (compressed again with that chroma, quality 90), or
// progressive (the same coefficients in several scans). Exit codes: 0; 1 it
// cannot be done; 2 wrong use.
#include <turbojpeg.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

Bytes ReadFile(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Takes over a buffer that libjpeg-turbo has allocated.
Bytes Taken(unsigned char* made, unsigned long size) {
  Bytes bytes(made, made + size);
  tjFree(made);
  return bytes;
}

Bytes Progressive(const Bytes& file) {
  const tjhandle handle = tjInitTransform();
  tjtransform transform = {};
  transform.options = TJXOPT_PROGRESSIVE;
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int failed = tjTransform(handle, file.data(), file.size(), 1, &made,
                                 &size, &transform, 0);
  tjDestroy(handle);
  return failed ? Bytes() : Taken(made, size);
}

Bytes WithChroma(const Bytes& file, int subsampling) {
  constexpr int kQuality = 90;
  int width = 0, height = 0, own = 0, color = 0;
  const tjhandle decoder = tjInitDecompress();
  Bytes pixels;
  bool ok = tjDecompressHeader3(decoder, file.data(), file.size(), &width,
                                &height, &own, &color) == 0;
  if (ok) {
    pixels.resize(size_t{3} * width * height);
    ok = tjDecompress2(decoder, file.data(), file.size(), pixels.data(), width,
                       0, height, TJPF_RGB, 0) == 0;
  }
  tjDestroy(decoder);
  if (!ok) return {};
  const tjhandle encoder = tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int failed =
      tjCompress2(encoder, pixels.data(), width, 0, height, TJPF_RGB, &made,
                  &size, subsampling, kQuality, TJFLAG_ACCURATEDCT);
  tjDestroy(encoder);
  return failed ? Bytes() : Taken(made, size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc == 4 ? argv[1] : "";
  if (kind != "420" && kind != "444" && kind != "progressive") {
    std::fprintf(stderr, "usage: jpeg_recode 420|444|progressive FROM TO\n");
    return 2;
  }
  const Bytes file = ReadFile(argv[2]);
  const Bytes made = kind == "progressive" ? Progressive(file)
                     : kind == "420"       ? WithChroma(file, TJSAMP_420)
                                           : WithChroma(file, TJSAMP_444);
  if (made.empty()) {
    std::fprintf(stderr, "jpeg_recode: %s: it cannot be made a %s JPEG\n",
                 argv[2], kind.c_str());
    return 1;
  }
  std::ofstream out(argv[3], std::ios::binary);
  out.write(reinterpret_cast<const char*>(made.data()),
            static_cast<std::streamsize>(made.size()));
  return out.good() ? 0 : 1;
}
