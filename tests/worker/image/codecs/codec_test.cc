// SPDX-License-Identifier: Apache-2.0
//
// Runs with ASAN_OPTIONS by which no more than 1 MiB can be allocated at once;
// elsewhere the tests are skipped. The files demand more of a library, but not of
// us; they are damaged, which is found where there is memory.
#include "worker/image/codecs/codec.h"

#include <zlib.h>

#include <cstdlib>

#include "core/cluster/fault.h"
#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/worker/image/program/support.h"

namespace leat::worker {
namespace {

using ::leat::testing::MakeJpeg2000;
using ::leat::testing::MakePicture;

constexpr ImageLimits kWide = {.max_side = 200'000};

class MallocWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* volatile memory = malloc(size_t{2} << 20);
    const bool limited = memory == nullptr;
    free(memory);
    if (!limited) GTEST_SKIP() << "memory is not limited";
  }

  static void ExpectNoMemory(const Codec& codec, const std::string& file) {
    const auto header = codec.read_header(AsSpan(file), kWide);
    absl::Status status = header.status();
    if (header.ok()) {
      std::vector<uint8_t> pixels(header->bytes());
      status = codec.decode(AsSpan(file), *header, kWide, pixels.data());
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(FaultOf(status), Fault::kWorker) << status;
  }
};

std::string Number(uint64_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text.push_back(
        static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i)));
  return text;
}

TEST_F(MallocWatchTest, APngOfWideRows) {
  const auto chunk = [](const std::string& content) {
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                           static_cast<uInt>(content.size()));
    return Number(content.size() - 4, 4, true) + content + Number(sum, 4, true);
  };
  ExpectNoMemory(
      kPng, "\x89PNG\r\n\x1a\n" +
                chunk("IHDR" + Number(200'000, 4, true) + Number(1, 4, true) +
                      std::string("\x10\x06\0\0\0", 5)) +
                chunk("IDATdata") + chunk("IEND"));
}

TEST_F(MallocWatchTest, ALosslessWebp) {
  // 590 × 590 times the same pixel: all codes have one symbol.
  const std::string stream(
      "\x2f\x4d\x42\x93\x00\x88\x88\x08\x00\x00\x00\x00\x00\x00", 14);
  ExpectNoMemory(kWebp, "RIFF" + Number(26, 4, false) + "WEBPVP8L" +
                            Number(14, 4, false) + stream);
}

TEST_F(MallocWatchTest, AJpeg2000OfManyTiles) {
  std::string file = MakeJpeg2000(MakePicture(19, 17, 1), {.boxed = false});
  for (const size_t at : {24u, 28u}) file.replace(at, 4, Number(1, 4, true));
  ExpectNoMemory(kJpeg2000, file);
}

// The places of all strips and their sizes are the same numbers.
TEST_F(MallocWatchTest, ATiffOfManyStrips) {
  constexpr uint32_t kStrips = 140'000;
  struct Tag {
    uint32_t tag, type, count, value;
  };
  const Tag tags[] = {{256, 3, 1, 1}, {257, 4, 1, kStrips},
                      {258, 3, 1, 8}, {259, 3, 1, 1},
                      {262, 3, 1, 1}, {273, 4, kStrips, 200},
                      {278, 3, 1, 1}, {279, 4, kStrips, 200}};
  std::string file = std::string("II*\0", 4) + Number(8, 4, false) +
                     Number(std::size(tags), 2, false);
  for (const Tag& tag : tags)
    file += Number(tag.tag, 2, false) + Number(tag.type, 2, false) +
            Number(tag.count, 4, false) + Number(tag.value, 4, false);
  file.resize(200 + 4 * kStrips);
  ExpectNoMemory(kTiff, file);
}

}  // namespace
}  // namespace leat::worker
