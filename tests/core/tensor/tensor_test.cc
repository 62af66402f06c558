// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include "gtest/gtest.h"

namespace leat {
namespace {

constexpr DType kAll[] = {DType::kBool,  DType::kUint8,   DType::kInt32,
                          DType::kInt64, DType::kFloat16, DType::kFloat32};

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
