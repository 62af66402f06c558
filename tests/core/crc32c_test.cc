// SPDX-License-Identifier: Apache-2.0
#include "core/crc32c.h"

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

TEST(Crc32c, TheInstructionAndTheTableAgreeAtEveryLengthAndAlignment) {
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(10'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::span<const std::byte> all = bytes;
  for (size_t size = 0; size < 1000; ++size)
    ASSERT_EQ(Crc32c(all.subspan(size % 9, size)),
              Crc32cByTable(all.subspan(size % 9, size)))
        << size;
  for (int i = 0; i < 200; ++i) {
    const size_t from = random() % 1000, size = random() % 9000;
    ASSERT_EQ(Crc32c(all.subspan(from, size)),
              Crc32cByTable(all.subspan(from, size)))
        << from << " " << size;
  }
}

}  // namespace
}  // namespace leat
