// SPDX-License-Identifier: Apache-2.0
#include "client/batch/step.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "core/plan/plan.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::ElementsAre;

BatchSchema Schema() {
  BatchSchema schema;
  schema.fields = {{"image", DType::kUint8, {5}, 5},
                   {"label", DType::kInt32, {}, 4}};
  return schema;
}

std::byte Cell(uint32_t global_row, size_t i) {
  return static_cast<std::byte>(global_row * 16 + i);
}

// Returns the payload that a worker sends for these rows.
std::vector<std::byte> Payload(std::span<const uint32_t> globals) {
  std::vector<std::byte> bytes;
  for (const uint32_t row : globals)
    for (size_t i = 0; i < 5; ++i) bytes.push_back(Cell(row, i));
  for (const uint32_t row : globals)
    for (size_t i = 5; i < 9; ++i) bytes.push_back(Cell(row, i));
  return bytes;
}

struct TestStep {
  TestStep(std::vector<uint32_t> rows, uint32_t batch,
           std::vector<uint64_t> samples) {
    auto map = *RowMap::Create(std::move(rows), batch);
    auto layout = std::make_shared<BatchLayout>(
        Schema(), static_cast<uint32_t>(map->rows().size()));
    step = std::make_unique<Step>(0, 0, map, samples, layout,
                                  *BatchPool::Create(layout->bytes, 0)->Take());
  }
  void ExpectRow(uint32_t index) const {
    const uint32_t row = step->globals[index];
    const std::byte* data = step->memory->buffer.data();
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(data[step->layout->parts[0].offset + index * 5 + i],
                Cell(row, i));
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(data[step->layout->parts[1].offset + index * 4 + i],
                Cell(row, 5 + i));
  }
  std::unique_ptr<Step> step;
};

TEST(RowMap, EmptyMeansAllAndOrderIsKept) {
  EXPECT_THAT((*RowMap::Create({}, 3))->rows(), ElementsAre(0, 1, 2));
  const auto map = *RowMap::Create({5, 1}, 8);
  EXPECT_THAT(map->rows(), ElementsAre(5, 1));
  EXPECT_EQ(map->PositionOf(1), 1u);
  EXPECT_EQ(map->PositionOf(0), RowMap::kAbsent);
  EXPECT_EQ(map->PositionOf(~0u), RowMap::kAbsent);
}

TEST(RowMap, RowsBeyondTheBatchAndDuplicatesAreRefused) {
  EXPECT_TRUE(absl::IsNotFound(RowMap::Create({0, 8}, 8).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(RowMap::Create({2, 2}, 8).status()));
}

TEST(Step, PayloadLandsInPlaceWhereverItIsCut) {
  const std::vector<uint32_t> globals = {6, 1, 2, 3, 0};
  const std::vector<uint32_t> indices = {0, 3, 4, 5, 6};
  const std::vector<uint8_t> mine(5, 1);
  const std::vector<std::byte> payload = Payload(globals);
  for (size_t cut = 1; cut <= payload.size(); ++cut) {
    TestStep test({6, 7, 5, 1, 2, 3, 0}, 8, std::vector<uint64_t>(7, 1));
    size_t written = 0;
    for (size_t at = 0; at < payload.size(); at += cut)
      written += test.step->Scatter(
          *test.step->memory, indices, mine, at,
          std::span(payload).subspan(at, std::min(cut, payload.size() - at)));
    EXPECT_EQ(written, payload.size());
    for (const uint32_t index : indices) test.ExpectRow(index);
    EXPECT_EQ(test.step->memory->buffer.data()[5],
              std::byte{0});  // row 7 unchanged
  }
}

TEST(Step, RowsThatAreNotMineAreSkipped) {
  TestStep test({}, 3, {1, 2, 3});
  std::memset(test.step->memory->buffer.data(), 0xee,
              test.step->memory->buffer.bytes());
  const std::vector<uint32_t> rows = {0, 1, 2};
  const std::vector<uint8_t> mine = {1, 0, 1};
  EXPECT_EQ(
      test.step->Scatter(*test.step->memory, rows, mine, 0, Payload(rows)),
      18u);
  test.ExpectRow(0);
  test.ExpectRow(2);
  EXPECT_EQ(test.step->memory->buffer.data()[5], std::byte{0xee});
}

TEST(Step, RowsWithoutASampleCloseUp) {
  TestStep test({3, 0, 1, 2}, 4, {30, kNoSample, 11, kNoSample});
  EXPECT_THAT(test.step->globals, ElementsAre(3, 1));
  EXPECT_THAT(test.step->samples, ElementsAre(30, 11));
  EXPECT_EQ(test.step->IndexOf(3), 0u);
  EXPECT_EQ(test.step->IndexOf(1), 1u);
  EXPECT_EQ(test.step->IndexOf(0), RowMap::kAbsent);
  EXPECT_EQ(test.step->IndexOf(4), RowMap::kAbsent);
}

TEST(Step, WithNoRowAtAllIsComplete) {
  TestStep test({1, 2}, 4, {kNoSample, kNoSample});
  EXPECT_TRUE(test.step->complete());
}

}  // namespace
}  // namespace leat::client
