// SPDX-License-Identifier: Apache-2.0
//
// Compares BlockRunner with DecodeBlock, block by block: random codes, some
// with symbols that few files have, and blocks, some of them damaged.
#include "worker/image/jpeg/scan/block_runner.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "worker/image/jpeg/scan/blocks.h"

namespace leat::worker {
namespace {

using Predictors = BlockRunner::Predictors;

// A code of `symbols`; most bit patterns lead to the first ones. Unless it is
// `whole`, some lead nowhere.
JHUFF_TBL RandomCode(std::vector<uint8_t> symbols, bool whole,
                     std::mt19937& random) {
  JHUFF_TBL table{};
  size_t used = 0;
  uint32_t free = 1;  // codes of this length that are left
  for (size_t length = 1; length <= 16 && used < symbols.size(); ++length) {
    free *= 2;
    const size_t left = symbols.size() - used;
    // For the last length all that fit, else about a third.
    size_t count = length == 16
                       ? free
                       : std::min<size_t>(free / 2, random() % (free / 3 + 2));
    if (whole && free >= left) count = left;
    count = std::min({count, left, size_t{255}});
    table.bits[length] = static_cast<uint8_t>(count);
    used += count;
    free -= static_cast<uint32_t>(count);
  }
  std::copy(symbols.begin(), symbols.begin() + static_cast<ptrdiff_t>(used),
            table.huffval);
  return table;
}

JHUFF_TBL RandomDcCode(std::mt19937& random) {
  std::vector<uint8_t> sizes(random() % 4 == 0 ? 17 : 12);
  std::iota(sizes.begin(), sizes.end(), uint8_t{0});
  std::shuffle(sizes.begin() + 3, sizes.end(), random);
  return RandomCode(sizes, random() % 4 != 0, random);
}

JHUFF_TBL RandomAcCode(std::mt19937& random) {
  std::vector<uint8_t> symbols(256);
  std::iota(symbols.begin(), symbols.end(), uint8_t{0});
  std::shuffle(symbols.begin(), symbols.end(), random);
  // Mostly, symbols that are frequent in files get short codes.
  const std::array<uint8_t, 6> frequent = {0x01, 0x00, 0x02, 0x11, 0x03, 0xf0};
  for (size_t i = 0; i < frequent.size() && random() % 8 != 0; ++i)
    std::iter_swap(symbols.begin() + static_cast<ptrdiff_t>(i),
                   std::find(symbols.begin(), symbols.end(), frequent[i]));
  symbols.resize(random() % 2 == 0 ? 12 : 162);
  return RandomCode(symbols, random() % 4 != 0, random);
}

class BitWriter {
 public:
  void Put(uint32_t value, int bits) {
    for (int i = bits - 1; i >= 0; --i) {
      byte_ = byte_ << 1 | (value >> i & 1);
      if (++count_ % 8 != 0) continue;
      data.push_back(static_cast<uint8_t>(byte_));
      if (data.back() == 0xff) data.push_back(0);
    }
  }
  std::vector<uint8_t> data;

 private:
  uint32_t byte_ = 0;
  int count_ = 0;
};

// Writes symbols of a code, each followed by random bits.
class Coder {
 public:
  explicit Coder(const JHUFF_TBL& table) {
    uint32_t code = 0;
    for (int length = 1; length <= 16; ++length, code <<= 1)
      for (int i = 0; i < table.bits[length]; ++i)
        codes_.push_back({table.huffval[codes_.size()], code++, length});
  }
  // Writes a symbol whose halves are at most these; short codes more often.
  // Returns it; -1: there is none.
  int Put(int most_run, int most_bits, std::mt19937& random,
          BitWriter* to) const {
    for (int tries = 0; tries < 100; ++tries) {
      const size_t bound = random() % codes_.size() + 1;
      const Code& one = codes_[random() % bound];
      const int bits = one.symbol & 15;
      if (bits <= most_bits && one.symbol >> 4 <= most_run) {
        to->Put(one.code, one.length);
        to->Put(static_cast<uint32_t>(random()), bits);
        return one.symbol;
      }
    }
    return -1;
  }

 private:
  struct Code {
    uint8_t symbol;
    uint32_t code;
    int length;
  };
  std::vector<Code> codes_;
};

// Writes a block that ends properly, except one in some hundreds.
void PutBlock(const Coder& dc, const Coder& ac, std::mt19937& random,
              BitWriter* to) {
  if (random() % 300 == 0) to->Put(static_cast<uint32_t>(random()), 9);
  dc.Put(1, 5, random, to);
  for (unsigned at = 1; at < DCTSIZE2;) {
    const int left = DCTSIZE2 - 1 - static_cast<int>(at);
    const int most_run = random() % 10000 == 0 ? 15 : left;
    const int symbol = ac.Put(most_run, 15, random, to);
    const int run = symbol >> 4;
    if (symbol < 0 || ((symbol & 15) == 0 && run != 15)) return;
    at += static_cast<unsigned>(run) + 1;
  }
}

struct Passed {
  bool sound = true;
  ScanBits bits;
  Predictors predictors{};
  std::vector<int16_t> dc;
};

// Decodes block by block.
void Plainly(const FileScan& scan, size_t count, Passed* to) {
  DropSink sink;
  for (size_t i = 0; to->sound && i < count; ++i) {
    const size_t block = i % scan.layout.blocks;
    int32_t* const predictor = &to->predictors[scan.layout.component_of[block]];
    to->sound = DecodeBlock(&to->bits, *scan.dc[block], *scan.ac[block],
                            predictor, sink);
    to->dc.push_back(static_cast<int16_t>(*predictor));
  }
}

struct Counts {
  int runs = 0, refused = 0;
};

// Runs of random lengths, up to the end of the data or a wrong code.
void Compare(const FileScan& scan, std::mt19937& random, Counts* counts) {
  BlockRunner runner;
  runner.Begin(scan);
  Passed plain{.bits = ScanBits::From(scan.data)}, run = plain;
  while (!plain.bits.Overrun()) {
    const size_t most = BlockRunner::kMostMcus * scan.layout.blocks;
    const size_t count = 1 + random() % most;
    plain.dc.clear();
    run.dc.assign(count, 0);
    Plainly(scan, count, &plain);
    run.sound = runner.Run(count, &run.bits, &run.predictors, run.dc.data());
    ASSERT_EQ(run.sound, plain.sound);
    ++counts->runs;
    if (!plain.sound) {
      ++counts->refused;
      return;
    }
    ASSERT_EQ(run.dc, plain.dc);
    ASSERT_EQ(run.predictors, plain.predictors);
    ASSERT_EQ(run.bits.Overrun(), plain.bits.Overrun());
    if (plain.bits.Overrun()) return;
    ASSERT_EQ(run.bits.Offset(scan.data), plain.bits.Offset(scan.data));
  }
}

TEST(BlockRunner, GoesAsFarAsBlockByBlock) {
  std::mt19937 random(5), before(6);
  Counts with_tables, without;
  for (int trial = 0; trial < 400; ++trial) {
    // Which tables look over: a bit for each.
    constexpr uint32_t kAll = 15;
    uint32_t over = kAll;
    if (trial % 16 == 0) over = 0;
    if (trial % 16 == 8)
      over = 1 + static_cast<uint32_t>(before() % (kAll - 1));
    std::array<DcTable, 2> dc;
    std::array<AcTable, 2> ac;
    std::vector<Coder> dc_coders, ac_coders;
    for (size_t i = 0; i < 2; ++i) {
      if (over != kAll && over != 0) {
        // A file before had other codes, and was long.
        ASSERT_TRUE(dc[i].Build(RandomDcCode(before)));
        ASSERT_TRUE(ac[i].Build(RandomAcCode(before)));
        dc[i].BuildOver();
        ac[i].BuildOver();
      }
      const JHUFF_TBL of_dc = RandomDcCode(random),
                      of_ac = RandomAcCode(random);
      ASSERT_TRUE(dc[i].Build(of_dc));
      ASSERT_TRUE(ac[i].Build(of_ac));
      dc_coders.emplace_back(of_dc);
      ac_coders.emplace_back(of_ac);
    }
    for (size_t i = 0; i < 2; ++i) {
      if ((over >> i & 1) != 0) dc[i].BuildOver();
      if ((over >> i & 4) != 0) ac[i].BuildOver();
    }
    const size_t luma = 1 + random() % 4;
    BitWriter coded;
    for (size_t i = 0; i < 100 * (luma + 2); ++i) {
      const size_t table = i % (luma + 2) < luma ? 0 : 1;
      PutBlock(dc_coders[table], ac_coders[table], random, &coded);
    }
    FileScan scan{.layout = {.components = 3}, .data = coded.data};
    scan.layout.blocks = static_cast<uint8_t>(luma + 2);
    for (size_t i = 0; i < luma + 2; ++i) {
      scan.layout.component_of[i] =
          static_cast<uint8_t>(i < luma ? 0 : i - luma + 1);
      scan.dc[i] = &dc[i < luma ? 0 : 1];
      scan.ac[i] = &ac[i < luma ? 0 : 1];
    }
    SCOPED_TRACE(trial);
    Compare(scan, random, over == kAll ? &with_tables : &without);
    if (HasFatalFailure()) return;
  }
  // Both ends occur often enough.
  EXPECT_GT(with_tables.runs - with_tables.refused, 300);
  EXPECT_GT(with_tables.refused, 100);
  EXPECT_GT(without.runs, 40);
}

}  // namespace
}  // namespace leat::worker
