// SPDX-License-Identifier: Apache-2.0
//
// photo_recode KIND FROM TO: writes the JPEG file FROM as another kind of file
// to TO.
//
// KIND: 420 or 444 (compressed again with that chroma, quality 90), progressive
// (the same coefficients in several scans), png, or webp (lossy, quality 90).
// Exit codes: 0; 1 it cannot be done; 2 wrong use.
#include <png.h>
#include <turbojpeg.h>
#include <webp/encode.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
constexpr int kQuality = 90;

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

struct Image {
  int width = 0, height = 0;
  Bytes pixels;  // R, G, B; empty: the file cannot be decoded
};

Image Decoded(const Bytes& file) {
  Image image;
  int subsampling = 0, colours = 0;
  const tjhandle decoder = tjInitDecompress();
  if (tjDecompressHeader3(decoder, file.data(), file.size(), &image.width,
                          &image.height, &subsampling, &colours) == 0) {
    image.pixels.resize(size_t{3} * image.width * image.height);
    if (tjDecompress2(decoder, file.data(), file.size(), image.pixels.data(),
                      image.width, 0, image.height, TJPF_RGB, 0) != 0)
      image.pixels.clear();
  }
  tjDestroy(decoder);
  return image;
}

Bytes WithChroma(const Image& image, int subsampling) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(encoder, image.pixels.data(), image.width, 0,
                                 image.height, TJPF_RGB, &made, &size,
                                 subsampling, kQuality, TJFLAG_ACCURATEDCT);
  tjDestroy(encoder);
  return failed ? Bytes() : Taken(made, size);
}

Bytes Png(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  Bytes bytes(PNG_IMAGE_PNG_SIZE_MAX(png));
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0,
                                 image.pixels.data(), 0, nullptr))
    return {};
  bytes.resize(size);
  return bytes;
}

Bytes Webp(const Image& image) {
  unsigned char* made = nullptr;
  const size_t size =
      WebPEncodeRGB(image.pixels.data(), image.width, image.height,
                    3 * image.width, kQuality, &made);
  Bytes bytes(made, made + size);
  WebPFree(made);
  return bytes;
}

Bytes As(const std::string& kind, const Bytes& file) {
  if (kind == "progressive") return Progressive(file);
  const Image image = Decoded(file);
  if (image.pixels.empty()) return {};
  if (kind == "png") return Png(image);
  if (kind == "webp") return Webp(image);
  return WithChroma(image, kind == "420" ? TJSAMP_420 : TJSAMP_444);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc == 4 ? argv[1] : "";
  if (kind != "420" && kind != "444" && kind != "progressive" &&
      kind != "png" && kind != "webp") {
    std::fprintf(stderr,
                 "usage: photo_recode 420|444|progressive|png|webp FROM TO\n");
    return 2;
  }
  const Bytes made = As(kind, ReadFile(argv[2]));
  if (made.empty()) {
    std::fprintf(stderr, "photo_recode: %s: it cannot be made %s\n", argv[2],
                 kind.c_str());
    return 1;
  }
  std::ofstream out(argv[3], std::ios::binary);
  out.write(reinterpret_cast<const char*>(made.data()),
            static_cast<std::streamsize>(made.size()));
  return out.good() ? 0 : 1;
}
