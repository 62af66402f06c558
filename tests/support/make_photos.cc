// SPDX-License-Identifier: Apache-2.0
//
// leat_make_photos FOLDER COUNT [MAX_SIDE]: JPEG files to try a service with,
// where there are no photos.
//
// FOLDER/0000 … get the files, 10 classes of equal size. Sizes (at most
// MAX_SIDE, default 640), shapes, chroma samplings, qualities and codings vary
// from file to file; the same arguments give the same bytes. Most files are
// what cameras write (4:2:0, baseline); one of sixteen is what hardware
// decoders refuse (progressive, 4:1:1 …), so that every path is walked.
// Exit codes: 0; 1 failed; 2 wrong use.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "tests/support/jpeg_maker.h"

namespace leat::testing {
namespace {

constexpr int kClasses = 10;

JpegSpec SpecOf(int number, int max_side) {
  static constexpr struct {
    int h, v;
  } kSampling[] = {{2, 2}, {2, 2}, {1, 1}, {2, 1}, {2, 2}, {1, 2}, {2, 2}};
  JpegSpec spec;
  spec.seed = static_cast<uint32_t>(number) + 1;
  // A golden-ratio walk: sizes differ, and none is preferred.
  const int spread = static_cast<int>((number * 40503u) & 0xFFFF);
  const int side = std::max(16, max_side - spread * max_side / 2 / 0xFFFF);
  const int other = std::max(16, side * (9 + number % 8) / 16);
  spec.width = number % 3 == 0 ? other : side;
  spec.height = number % 3 == 0 ? side : other;
  spec.h = kSampling[number % std::size(kSampling)].h;
  spec.v = kSampling[number % std::size(kSampling)].v;
  spec.quality = 75 + number % 20;
  if (number % 11 == 5) spec.orientation = 1 + number % 8;
  if (number % 13 == 3) spec.color = JpegColor::kGray;
  if (number % 16 == 7) spec.progressive = true;
  if (number % 48 == 15) spec.h = 4;  // 4:1:1 or 4:1:0
  if (number % 17 == 9) spec.restart_interval = 4;
  if (spec.color == JpegColor::kGray) spec.h = spec.v = 1;
  return spec;
}

int Main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  const int max_side = argc > 3 ? std::atoi(argv[3]) : 640;
  if (argc < 3 || argc > 4 || count < 1 || count > 1'000'000 || max_side < 16 ||
      max_side > 8192) {
    fmt::print(stderr,
               "usage: leat_make_photos FOLDER COUNT [MAX_SIDE]\n"
               "COUNT 1 to 1000000, MAX_SIDE 16 to 8192\n");
    return 2;
  }
  for (int number = 0; number < count; ++number) {
    const std::filesystem::path folder =
        std::filesystem::path(argv[1]) /
        fmt::format("{:04}", number % kClasses);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const std::filesystem::path path =
        folder / fmt::format("{:06}.jpg", number);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << MakeJpeg(SpecOf(number, max_side));
    if (error || !file.flush()) {
      fmt::print(stderr, "leat_make_photos: {}: cannot be written\n",
                 path.string());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace leat::testing

int main(int argc, char** argv) { return leat::testing::Main(argc, argv); }
