// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/field_type.h"

#include <cstddef>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::HasSubstr;

ValueType Type(std::string_view text) {
  const auto type = ParseFieldType(text);
  EXPECT_TRUE(type.ok()) << type.status();
  return type.value_or(ValueType{});
}

TEST(FieldType, IsAnImageANumberAVectorOrOpen) {
  EXPECT_EQ(Type("encoded").kind, ValueType::Kind::kEncoded);
  EXPECT_EQ(Type("bytes"), Type("uint8[?]"));
  const ValueType number = Type("int64");
  EXPECT_EQ(number.dtype, DType::kInt64);
  EXPECT_TRUE(number.shape.empty());
  EXPECT_EQ(Type("float32[4]").shape, Shape({4}));
  EXPECT_EQ(Type("uint8[28,28]").shape, Shape({28, 28}));
  EXPECT_EQ(Type("int32[?,3]").shape, Shape({-1, 3}));
}

TEST(FieldType, CountsTheElementsOfOneRow) {
  EXPECT_EQ(StoredElements(Type("int64")), 1u);
  EXPECT_EQ(StoredElements(Type("int64[2,3]")), 6u);
  EXPECT_EQ(StoredElements(Type("int64[?,3]")), 3u);
  EXPECT_TRUE(IsOpen(Type("int64[?]")));
  EXPECT_FALSE(IsOpen(Type("int64[2]")));
  EXPECT_FALSE(IsOpen(Type("int64")));
  EXPECT_FALSE(IsOpen(Type("encoded")));
}

TEST(FieldType, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "int",
                           "int64[",
                           "int64[]",
                           "int64[0]",
                           "int64[-1]",
                           "int64[3,?]",
                           "int64[3",
                           "int64]",
                           "int64[3]x",
                           "int64[3,]",
                           "int64[,3]",
                           "int64[ 3]",
                           "int64[3.0]",
                           "encoded[3]",
                           "bytes[3]",
                           "int64[?,?]",
                           "int64[99999999999999999999]",
                           "uint8[1,1,1,1,1,1,1,1,1]",
                           "[3]"})
    EXPECT_FALSE(ParseFieldType(text).ok()) << text;
  EXPECT_THAT(Message(ParseFieldType("int64[8388609]").status()),
              HasSubstr("more than 67108864 bytes"));
  EXPECT_TRUE(ParseFieldType("int64[8388608]").ok());
}

TEST(FieldType, MayLeaveAnySizeOpenWhereTheShapeComesAlong) {
  const auto type = ParseFieldType("uint8[?,?,3]", OpenSizes::kAny);
  ASSERT_TRUE(type.ok()) << type.status();
  EXPECT_EQ(type->shape, Shape({-1, -1, 3}));
  EXPECT_EQ(ParseFieldType("int64[3,?]", OpenSizes::kAny)->shape,
            Shape({3, -1}));
  EXPECT_FALSE(ParseFieldType("int64[?]x", OpenSizes::kAny).ok());
}

absl::Status CheckZeros(const ValueType& type, size_t bytes,
                        const std::vector<int64_t>& shape) {
  return CheckStored(type, std::vector<std::byte>(bytes), shape);
}

TEST(FieldType, AValueHasItsSizesAndItsBytes) {
  using Sizes = std::vector<int64_t>;
  const ValueType image = *ParseFieldType("uint8[?,?,3]", OpenSizes::kAny);
  EXPECT_TRUE(CheckZeros(image, 12, Sizes{2, 2, 3}).ok());
  EXPECT_FALSE(CheckZeros(image, 0, Sizes{0, 2, 3}).ok());
  EXPECT_FALSE(CheckZeros(image, 12, Sizes{2, 2}).ok());
  EXPECT_FALSE(CheckZeros(image, 12, Sizes{}).ok());
  EXPECT_FALSE(CheckZeros(image, 8, Sizes{2, 2, 2}).ok());
  EXPECT_FALSE(CheckZeros(image, 12, Sizes{-2, -2, 3}).ok());
  EXPECT_FALSE(CheckZeros(image, 0, Sizes{1ll << 62, 1ll << 62, 3}).ok());
  EXPECT_TRUE(CheckZeros(Type("int32[?,2]"), 0, Sizes{0, 2}).ok());
  EXPECT_TRUE(CheckZeros(Type("int32"), 4, Sizes{}).ok());
  EXPECT_FALSE(CheckZeros(Type("int32"), 4, Sizes{1}).ok());
  EXPECT_TRUE(CheckZeros(Type("float32[4]"), 16, Sizes{}).ok());
  EXPECT_TRUE(CheckZeros(Type("float32[4]"), 16, Sizes{4}).ok());
  EXPECT_THAT(Message(CheckZeros(Type("float32[4]"), 15, Sizes{})),
              HasSubstr("15 bytes, want float32 (4,)"));
  EXPECT_TRUE(CheckZeros(Type("encoded"), 9, Sizes{}).ok());
  EXPECT_FALSE(CheckZeros(Type("encoded"), 0, Sizes{}).ok());
  EXPECT_FALSE(CheckZeros(Type("encoded"), 9, Sizes{9}).ok());
  const ValueType bools = *ParseFieldType("bool[3]");
  EXPECT_TRUE(CheckStored(bools,
                          std::vector{std::byte{1}, std::byte{0}, std::byte{1}},
                          {})
                  .ok());
  EXPECT_THAT(
      Message(CheckStored(
          bools, std::vector{std::byte{1}, std::byte{2}, std::byte{0}}, {})),
      HasSubstr("element 1 of a bool is the byte 2, want 0 or 1"));
}

}  // namespace
}  // namespace leat
