// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <iterator>

#include "gtest/gtest.h"

namespace leat {
namespace {

constexpr DType kAll[] = {DType::kBool,   DType::kUint8,   DType::kInt32,
                          DType::kInt64,  DType::kFloat16, DType::kFloat32,
                          DType::kInt8,   DType::kInt16,   DType::kUint16,
                          DType::kUint32, DType::kBfloat16};

TEST(DType, FollowOneAnotherWithoutGaps) {
  int value = static_cast<int>(kFirstDType);
  for (DType dtype : kAll) EXPECT_EQ(static_cast<int>(dtype), value++);
  EXPECT_EQ(kAll[std::size(kAll) - 1], kLastDType);
}

TEST(DType, TheLastFiveAreOnlyCarried) {
  for (size_t i = 0; i < std::size(kAll); ++i)
    EXPECT_EQ(IsCarried(kAll[i]), i >= 6) << Name(kAll[i]);
}

TEST(DType, NamesAreRead) {
  for (DType dtype : kAll) EXPECT_EQ(ParseDType(Name(dtype)), dtype);
  EXPECT_EQ(ParseDType("float64"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
  EXPECT_EQ(ParseDType("unknown"), std::nullopt);
}

TEST(DType, SizesAreThoseOfNumPy) {
  EXPECT_EQ(SizeOf(DType::kBool), 1u);
  EXPECT_EQ(SizeOf(DType::kUint8), 1u);
  EXPECT_EQ(SizeOf(DType::kFloat16), 2u);
  EXPECT_EQ(SizeOf(DType::kInt32), 4u);
  EXPECT_EQ(SizeOf(DType::kFloat32), 4u);
  EXPECT_EQ(SizeOf(DType::kInt64), 8u);
  EXPECT_EQ(SizeOf(DType::kInt8), 1u);
  EXPECT_EQ(SizeOf(DType::kInt16), 2u);
  EXPECT_EQ(SizeOf(DType::kUint16), 2u);
  EXPECT_EQ(SizeOf(DType::kUint32), 4u);
  EXPECT_EQ(SizeOf(DType::kBfloat16), 2u);
}

TEST(DType, FromTheWireMayBeUnknown) {
  EXPECT_EQ(SizeOf(DType{0}), 0u);
  EXPECT_EQ(Name(DType{99}), "unknown");
}

TEST(BatchSchema, RowBytesAreTheSumOfItsFields) {
  EXPECT_EQ(BatchSchema().row_bytes(), 0u);
  const BatchSchema schema{{{"image", DType::kUint8, {224, 224, 3}, 150'528},
                            {"label", DType::kInt32, {}, 4}}};
  EXPECT_EQ(schema.row_bytes(), 150'532u);
}

}  // namespace
}  // namespace leat
