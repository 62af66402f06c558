// SPDX-License-Identifier: Apache-2.0
//
// leat_make_test_sets FOLDER: makes the parts of the tests' data that are not
// photos in FOLDER (make_test_data.py makes the whole): mnist/ and cifar10-bin/
// in the formats of those sets, image-variants/ and image-damaged/. Exit codes:
// 0; 1 failed; 2 wrong use.
#include <filesystem>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "tests/support/drawn_sets.h"
#include "tests/support/odd_images.h"
#include "zlib.h"

namespace leat::testing {
namespace {

namespace fs = std::filesystem;

// As many as the trainings need: 100 steps of 200 digits, and validation; the
// tiles divide among 8 devices as 5 and 2 files of the real set do.
constexpr uint32_t kTrainingDigits = 20'000, kTestDigits = 10'000;
constexpr uint32_t kTilesOfFile = 5'000, kTestTiles = 2'000;

bool Write(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  if (file.flush()) return true;
  fmt::print(stderr, "leat_make_test_sets: {}: cannot be written\n",
             path.string());
  return false;
}

bool WriteGzip(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const gzFile file = gzopen(path.c_str(), "wb1");
  const bool written =
      file != nullptr &&
      gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) ==
          static_cast<int>(bytes.size());
  const bool closed = file != nullptr && gzclose(file) == Z_OK;
  if (written && closed) return true;
  fmt::print(stderr, "leat_make_test_sets: {}: cannot be written\n",
             path.string());
  return false;
}

bool WriteDigits(const fs::path& folder, const char* part, uint32_t count,
                 uint32_t seed) {
  const IdxPair files = DrawDigits(count, seed);
  return WriteGzip(folder / fmt::format("{}-images-idx3-ubyte.gz", part),
                   files.images) &&
         WriteGzip(folder / fmt::format("{}-labels-idx1-ubyte.gz", part),
                   files.labels);
}

bool WriteAll(const fs::path& folder) {
  for (const auto& [name, bytes] : OddImages())
    if (!Write(folder / "image-variants" / name, bytes)) return false;
  for (const auto& [name, bytes] : DamagedImages())
    if (!Write(folder / "image-damaged" / name, bytes)) return false;
  const fs::path tiles = folder / "cifar10-bin";
  return WriteDigits(folder / "mnist", "train", kTrainingDigits, 1) &&
         WriteDigits(folder / "mnist", "t10k", kTestDigits, 2) &&
         Write(tiles / "data_batch_1.bin", DrawTiles(kTilesOfFile, 1)) &&
         Write(tiles / "data_batch_2.bin", DrawTiles(kTilesOfFile, 2)) &&
         Write(tiles / "test_batch.bin", DrawTiles(kTestTiles, 3));
}

}  // namespace
}  // namespace leat::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: leat_make_test_sets FOLDER\n");
    return 2;
  }
  return leat::testing::WriteAll(argv[1]) ? 0 : 1;
}
