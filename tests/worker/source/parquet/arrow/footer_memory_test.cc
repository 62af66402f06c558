// SPDX-License-Identifier: Apache-2.0
//
// LEAT_PARQUET_FOR_TESTS: the library as built; empty: not built.
#include "worker/source/parquet/arrow/footer_memory.h"

#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

// A list of structs in the first field, or in the one behind the last.
std::string ListOf(size_t count) {
  std::string text = "\x19\xfc";
  for (; count > 127; count >>= 7)
    text.push_back(static_cast<char>(count | 128));
  return text + static_cast<char>(count);
}

// A footer of one column, and of row groups that have chunks of 3 bytes.
std::string Footer(size_t groups, size_t chunks) {
  std::string footer = "\x15\x02" + ListOf(2) +
                       std::string("\x48\1r\x15\2\0", 6) +
                       std::string("\x15\2\x38\1a\0", 6) +
                       std::string("\x16\0", 2) + ListOf(groups);
  for (size_t i = 0; i < groups; ++i) {
    footer += ListOf(chunks);
    for (size_t j = 0; j < chunks; ++j) footer += std::string("\x26\0\0", 3);
    footer += std::string("\x16\0\x16\0\0", 5);
  }
  footer.push_back('\0');
  return footer;
}

uint64_t MemoryOf(const std::string& footer) {
  return FooterMemory::Of(reinterpret_cast<const uint8_t*>(footer.data()),
                          footer.size());
}

TEST(FooterMemory, ChunksOfColumnsCount) {
  const uint64_t one = MemoryOf(Footer(1, 1));
  EXPECT_EQ(MemoryOf(Footer(1, 101)), one + 100 * 1003);
  EXPECT_EQ(MemoryOf(Footer(3, 101)) - MemoryOf(Footer(2, 101)),
            MemoryOf(Footer(2, 101)) - MemoryOf(Footer(1, 101)));
}

// Thrift takes the low 16 bits of a field's number, and the low 32 of a size.
TEST(FooterMemory, NumbersAreThoseThatThriftReads) {
  // Row groups are field 4, one behind the number of rows.
  const std::string usual = ListOf(2);
  for (const std::string& same :
       {std::string("\x09\x08\xfc\2"), std::string("\x09\x88\x80\x08\xfc\2"),
        std::string("\x19\xfc\x82\x80\x80\x80\x10")}) {
    std::string footer = Footer(2, 50);
    const size_t at = footer.find(usual + ListOf(50));
    ASSERT_NE(at, footer.npos);
    footer.replace(at, usual.size(), same);
    EXPECT_EQ(MemoryOf(footer),
              MemoryOf(Footer(2, 50)) + same.size() - usual.size());
  }
}

TEST(FooterMemory, OfADamagedFooterEndsWithinIt) {
  const std::string whole = Footer(2, 3);
  for (size_t size = 0; size < whole.size(); ++size)
    (void)MemoryOf(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(byte);
      (void)MemoryOf(damaged);
    }
}

// Arrow takes 700 bytes of memory for 3 of such a footer.
TEST(FooterMemory, FarMoreThanAFootersBytesIsRefused) {
  if (std::string_view(LEAT_PARQUET_FOR_TESTS).empty())
    GTEST_SKIP() << "built without Parquet (LEAT_PARQUET)";
  setenv("LEAT_PARQUET_LIBRARY", LEAT_PARQUET_FOR_TESTS, 1);
  TempDir dir;
  SourceLimits limits;
  limits.max_footer_bytes = 50'000;
  const auto error = [&](size_t groups, size_t chunks) {
    const std::string footer = Footer(groups, chunks);
    std::string length;
    for (size_t i = 0; i < 4; ++i)
      length.push_back(static_cast<char>(footer.size() >> 8 * i));
    const std::string path =
        dir.Write("x.parquet", "PAR1" + footer + length + "PAR1");
    return BuildIndex({.op = "readers.parquet",
                       .inputs = {},
                       .args = {{"paths", std::vector<std::string>{path}},
                                {"columns", std::vector<std::string>{"a"}},
                                {"types", std::vector<std::string>{"int32"}}}},
                      limits)
        .status();
  };
  const absl::Status status = error(20, 500);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("bytes of memory: the limit is 2400000"));
  EXPECT_TRUE(absl::IsDataLoss(error(20, 20)));  // is no file of one column
}

}  // namespace
}  // namespace leat::worker
