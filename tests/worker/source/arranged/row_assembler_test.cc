// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/row_assembler.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;

template <class T>
std::vector<T> Values(const StoredField& field) {
  std::vector<T> values(field.bytes.size() / sizeof(T));
  std::memcpy(values.data(), field.bytes.data(), field.bytes.size());
  return values;
}

TEST(RowAssembler, TheExampleOfTheHeader) {
  const std::vector<ValueType> types = {
      {ValueType::Kind::kTensor, DType::kInt64, {-1}}};
  const RowAssembler assembler(
      {.packing = {.length = 4}, .outputs = {0}, .fill_values = {7}}, types);
  const std::vector<int64_t> first = {10, 11, 12}, second = {20};
  const auto stored = [](const std::vector<int64_t>& values) {
    StoredSample sample;
    sample.fields = {{std::as_bytes(std::span(values)),
                      {static_cast<int64_t>(values.size())}}};
    return sample;
  };
  RowAssembler::Row row(assembler);
  EXPECT_TRUE(row.Add({0, 1, 2}, {stored(first), {}}, 3).ok());
  EXPECT_TRUE(row.Add({1, 0, 1}, {stored(second), 1}, 1).ok());
  const StoredSample sample = row.Finish();
  ASSERT_EQ(sample.fields.size(), 3u);
  EXPECT_THAT(Values<int64_t>(sample.fields[0]), ElementsAre(11, 12, 20, 7));
  EXPECT_THAT(Values<int32_t>(sample.fields[1]), ElementsAre(1, 1, 2, 0));
  EXPECT_THAT(Values<int32_t>(sample.fields[2]), ElementsAre(0, 1, 0, 0));
  for (const StoredField& field : sample.fields) {
    EXPECT_TRUE(field.shape.empty()) << "the type says the shape";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(field.bytes.data()) % 16, 0u);
  }
}

TEST(RowAssembler, ADocumentWhoseBytesAreNoWholeElementsIsRefused) {
  const std::vector<ValueType> types = {
      {ValueType::Kind::kTensor, DType::kInt32, {-1, 2}}};
  const RowAssembler assembler(
      {.packing = {.length = 4}, .outputs = {0}, .fill_values = {0}}, types);
  const std::vector<std::byte> bytes(17);
  StoredSample sample;
  sample.fields = {{bytes, {2, 2}}};
  RowAssembler::Row row(assembler);
  EXPECT_EQ(row.Add({5, 0, 2}, {sample, {}}, 2).code(),
            absl::StatusCode::kDataLoss);
}

TEST(RowAssembler, ADocumentWithoutTheValueIsRefused) {
  const std::vector<ValueType> types(
      200, {ValueType::Kind::kTensor, DType::kInt32, {-1}});
  const RowAssembler assembler(
      {.packing = {.length = 4}, .outputs = {0, 150}, .fill_values = {0}},
      types);
  const std::vector<std::byte> bytes(8);
  StoredSample sample;
  sample.fields = {{bytes, {2}}};
  RowAssembler::Row row(assembler);
  EXPECT_EQ(row.Add({5, 0, 2}, {sample, {}}, 2).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace leat::worker
