// SPDX-License-Identifier: Apache-2.0
#include "core/crc32c.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace leat {
namespace {

TEST(Crc32c, MatchesRfc3720) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, AllWaysAgreeAtEveryLengthAndAlignment) {
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(100'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::span<const std::byte> all = bytes;
  const auto check = [&](size_t from, size_t size) {
    const auto part = all.subspan(from, size);
    const uint32_t sum = Crc32cByTable(part);
    ASSERT_EQ(Crc32c(part), sum) << from << " " << size;
    ASSERT_EQ(Crc32cWithoutVectors(part), sum) << from << " " << size;
  };
  for (size_t size = 0; size < 1500; ++size) check(size % 9, size);
  for (int i = 0; i < 200; ++i) check(random() % 1000, random() % 9000);
  for (int i = 0; i < 40; ++i) check(random() % 1000, random() % 99'000);
  for (size_t size = 3 * 8192 - 2; size < 3 * 8192 + 3; ++size) check(1, size);
}

TEST(Crc32c, ASumIsExtendedPieceByPiece) {
  std::mt19937_64 random(2);
  std::vector<std::byte> bytes(100'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::span<const std::byte> all = bytes;
  for (const size_t piece :
       {1, 7, 383, 384, 4000, 24'575, 24'576, 30'000, 100'000}) {
    uint32_t crc = 0;
    for (size_t at = 0; at < all.size(); at += piece)
      crc =
          ExtendCrc32c(crc, all.subspan(at, std::min(piece, all.size() - at)));
    EXPECT_EQ(crc, Crc32c(all)) << piece;
  }
  EXPECT_EQ(ExtendCrc32c(5, {}), 5u);
}

}  // namespace
}  // namespace leat
