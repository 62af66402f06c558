// SPDX-License-Identifier: Apache-2.0
//
// The tables of kernels have the symbols of the host's.
#include "worker/image/jpeg/scan/code_tables.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

// A code with about as many symbols per length as fit below the lengths before.
JHUFF_TBL RandomCode(std::mt19937& random) {
  JHUFF_TBL table = {};
  uint32_t free = 1, symbols = 0;
  for (int length = 1; length <= 16; ++length) {
    free *= 2;
    const uint32_t most = std::min(free - 1, 255 - symbols);
    const uint32_t count = std::min<uint32_t>(most, random() % (length + 1));
    table.bits[length] = static_cast<UINT8>(count);
    free -= count;
    symbols += count;
  }
  for (UINT8& value : table.huffval) value = static_cast<UINT8>(random());
  return table;
}

TEST(CodeTables, HaveTheHostsSymbols) {
  std::mt19937 random(3);
  CodeTables tables;
  for (int i = 0; i < 40; ++i) {
    JHUFF_TBL codes[2] = {RandomCode(random), RandomCode(random)};
    jpeg_decompress_struct cinfo = {};
    cinfo.dc_huff_tbl_ptrs[1] = &codes[0];
    cinfo.ac_huff_tbl_ptrs[1] = &codes[1];
    const CodeTable* const built[2] = {tables.Dc(cinfo, 1),
                                       tables.Ac(cinfo, 1)};
    for (int which = 0; which < 2; ++which) {
      ASSERT_NE(built[which], nullptr);
      HuffmanCode host;
      ASSERT_TRUE(host.Build(codes[which]));
      for (uint64_t next = 0; next < 65536; ++next) {
        const uint64_t bits = next << 48;
        uint8_t want = 0;
        const int length = host.Find(bits, &want);
        CodeBits taken{nullptr, nullptr, bits, 64};
        uint32_t symbol = 0;
        const bool found = TakeSymbol(*built[which], taken, &symbol);
        ASSERT_EQ(found, length != 0) << next;
        if (!found) continue;
        ASSERT_EQ(symbol, want) << next;
        ASSERT_EQ(taken.count, 64 - length) << next;
      }
    }
  }
}

TEST(CodeTables, OfNoCodeAreNone) {
  CodeTables tables;
  jpeg_decompress_struct cinfo = {};
  JHUFF_TBL codes = {};
  codes.bits[1] = 3;  // there are two codes of one bit
  cinfo.dc_huff_tbl_ptrs[0] = &codes;
  EXPECT_EQ(tables.Dc(cinfo, 0), nullptr);
  EXPECT_EQ(tables.Dc(cinfo, 1), nullptr);
  EXPECT_EQ(tables.Ac(cinfo, 0), nullptr);
  EXPECT_EQ(tables.Ac(cinfo, -1), nullptr);
  EXPECT_EQ(tables.Ac(cinfo, NUM_HUFF_TBLS), nullptr);
}

}  // namespace
}  // namespace leat::worker
