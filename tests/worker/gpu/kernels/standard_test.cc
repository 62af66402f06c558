// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/kernels/standard.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

uint64_t Address(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// A launch with a single row.
void Launch(const StandardRow& row) {
  for (uint32_t thread = 0; thread < row.head.threads + 3; ++thread)
    StandardThread(Address(&row), thread, 0);
}

// Values of such different sizes that another order gives another sum.
std::vector<float> Values(size_t count) {
  std::mt19937 random(3);
  std::vector<float> values(count);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(random()) - 0x1p31f,
                       static_cast<int>(random() % 60));
  return values;
}

// The value is 50 × 30 × 2; statistics per channel, of all, and per column.
TEST(StandardKernel, HasTheBitsOfSumsOfOneElementAfterTheOther) {
  constexpr uint32_t kRows = 50, kColumns = 30, kChannels = 2;
  const std::vector<float> values = Values(kRows * kColumns * kChannels);
  struct Case {
    StageAxes kept, summed;
  };
  const Case cases[] = {
      {{1, {kChannels}, {1}}, {1, {kRows * kColumns}, {kChannels}}},
      {{0, {}, {}}, {1, {kRows * kColumns * kChannels}, {1}}},
      {{1, {kColumns}, {kChannels}},
       {2, {kRows, kChannels}, {kColumns * kChannels, 1}}},
  };
  for (const Case& one : cases) {
    const auto groups = static_cast<uint32_t>(CountAlong(one.kept));
    const uint64_t count = CountAlong(one.summed);
    const auto runs =
        static_cast<uint32_t>((count + kStandardRun - 1) / kStandardRun);
    std::vector<double> sums(groups * runs), squares(groups * runs);
    std::vector<float> out(2 * groups);
    StandardRow row;
    row.groups = groups;
    row.runs = runs;
    row.in = Address(values.data());
    row.in_dtype = DType::kFloat32;
    row.kept = one.kept;
    row.summed = one.summed;
    row.sums = Address(sums.data());
    row.squares = Address(squares.data());
    row.head = {.out = row.sums, .threads = groups * runs};
    Launch(row);
    row.part = StandardPart::kSquares;
    row.head.out = row.squares;
    Launch(row);
    row.part = StandardPart::kFactors;
    row.head = {.out = Address(out.data()), .threads = groups};
    Launch(row);

    for (uint32_t group = 0; group < groups; ++group) {
      StandardSum sum, square;
      const auto each = [&](auto use) {
        for (uint64_t i = 0; i < count; ++i)
          use(values[ElementAlong(one.kept, group) +
                     ElementAlong(one.summed, i)]);
      };
      each([&](float x) { sum.Add(x); });
      const double mean = sum.Of() / static_cast<double>(count);
      each([&](float x) { square.Add(SquareOf(x, mean)); });
      EXPECT_EQ(GroupSum(row, row.sums, group, false, 0), sum.Of());
      EXPECT_EQ(GroupSum(row, row.squares, group, true, mean), square.Of());
      EXPECT_EQ(out[2 * group], static_cast<float>(mean));
      EXPECT_EQ(
          out[2 * group + 1],
          StandardFactor(VarianceOf(square.Of(), static_cast<double>(count), 0),
                         0, 1));
    }
  }
}

}  // namespace
}  // namespace leat::worker
