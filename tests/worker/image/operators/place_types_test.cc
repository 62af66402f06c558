// SPDX-License-Identifier: Apache-2.0
//
// pad, slice, reshape, length and cast of elements of all types.
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"

namespace leat::worker {
namespace {

using testing::Apply;
using testing::Array;
using testing::Floats;
using testing::Ints;
using testing::Text;

// Returns an array of one axis; element i has the bytes i + 1, i + 2, …, or is
// true if i is odd.
Array Ramp(DType dtype, int64_t count) {
  const size_t size = SizeOf(dtype);
  Array array{dtype, {count}, {}};
  for (int64_t i = 0; i < count; ++i)
    for (size_t k = 0; k < size; ++k)
      array.bytes.push_back(dtype == DType::kBool
                                ? static_cast<std::byte>(i & 1)
                                : static_cast<std::byte>(i + 1 + k));
  return array;
}

std::vector<std::byte> ElementsOf(const Array& array, size_t begin,
                                  size_t end) {
  const size_t size = SizeOf(array.dtype);
  return {array.bytes.begin() + begin * size, array.bytes.begin() + end * size};
}

// The bytes of `value` in a type: the same as a cast of it.
std::vector<std::byte> Stored(DType dtype, float value) {
  std::vector<std::byte> bytes(SizeOf(dtype));
  WithStorage(dtype, [&]<class T>(T) {
    const T stored = Converted<T>(value);
    memcpy(bytes.data(), &stored, sizeof stored);
  });
  return bytes;
}

class OfType : public ::testing::TestWithParam<int> {
 protected:
  const DType dtype_ = static_cast<DType>(GetParam());
};

TEST_P(OfType, PadAddsElementsThatAreCastToTheType) {
  const Array in = Ramp(dtype_, 5);
  for (const double fill : {0.0, 1.0, -3.0, 300.0, 7e4, 1e10}) {
    const auto got =
        Apply("pad", {{"shape", Ints{7}}, {"fill_value", Value(fill)}}, {in});
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_EQ(got->dtype, dtype_);
    std::vector<std::byte> wanted = in.bytes;
    const auto stored = Stored(dtype_, static_cast<float>(fill));
    for (int i = 0; i < 2; ++i)
      wanted.insert(wanted.end(), stored.begin(), stored.end());
    EXPECT_EQ(got->bytes, wanted) << fill;
  }
}

TEST_P(OfType, SliceAndReshapeMoveBytes) {
  const Array in = Ramp(dtype_, 12);
  const auto part =
      Apply("slice", {{"start", Ints{3}}, {"shape", Ints{6}}}, {in});
  ASSERT_TRUE(part.ok()) << Message(part.status());
  EXPECT_EQ(part->bytes, ElementsOf(in, 3, 9));
  const auto shaped = Apply("reshape", {{"shape", Ints{3, 4}}}, {in});
  ASSERT_TRUE(shaped.ok()) << Message(shaped.status());
  EXPECT_EQ(shaped->shape, (Shape{3, 4}));
  EXPECT_EQ(shaped->bytes, in.bytes);
  const auto column =
      Apply({{"reshape", {}, {{"shape", Ints{3, 4}}}},
             {"slice",
              {},
              {{"axes", Ints{1}}, {"start", Ints{1}}, {"shape", Ints{1}}}}},
            {in});
  ASSERT_TRUE(column.ok()) << Message(column.status());
  std::vector<std::byte> wanted;
  for (const size_t at : {1, 5, 9})
    for (const std::byte byte : ElementsOf(in, at, at + 1))
      wanted.push_back(byte);
  EXPECT_EQ(column->bytes, wanted);
}

TEST_P(OfType, LengthCountsElements) {
  const auto got = Apply("length", {}, {Ramp(dtype_, 9)});
  ASSERT_TRUE(got.ok()) << Message(got.status());
  EXPECT_EQ(got->Values<int32_t>(), std::vector<int32_t>{9});
}

// Also of values that are not aligned, over more than a block of elements.
TEST_P(OfType, CastsToAllTypesAsTheirElementsDo) {
  const Array in = Ramp(dtype_, 200);
  for (int to = 1; to <= static_cast<int>(kLastDType); ++to) {
    const auto wide = static_cast<DType>(to);
    const auto got =
        Apply("cast", {{"dtype", Value(std::string(Name(wide)))}}, {in});
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_EQ(got->dtype, wide);
    std::vector<std::byte> wanted;
    WithStorage(dtype_, [&]<class In>(In) {
      WithStorage(wide, [&]<class Out>(Out) {
        for (int i = 0; i < 200; ++i) {
          In value;
          memcpy(&value, in.bytes.data() + i * sizeof(In), sizeof value);
          Out out;
          if constexpr (std::is_same_v<In, Out>)
            out = value;
          else
            out = Converted<Out>(value);
          const auto* bytes = reinterpret_cast<const std::byte*>(&out);
          wanted.insert(wanted.end(), bytes, bytes + sizeof out);
        }
      });
    });
    EXPECT_EQ(got->bytes, wanted) << Name(dtype_) << " to " << Name(wide);
  }
}

TEST_P(OfType, AValueWithoutElementsIsReshapedAndCast) {
  Array none{dtype_, {0, 3}, {}};
  none.open = true;
  const Node nodes[] = {
      {"reshape", {}, {{"shape", Ints{3, -1}}}},
      {"cast", {}, {{"dtype", Text(std::string(Name(dtype_)).c_str())}}},
      {"cast", {}, {{"dtype", Text("float32")}}}};
  for (const Node& node : nodes) {
    const int64_t axis = node.op == "reshape" ? 1 : 0;
    const auto got =
        Apply({node, {"length", {}, {{"axis", Value(axis)}}}}, {none});
    ASSERT_TRUE(got.ok()) << node.op << ": " << Message(got.status());
    EXPECT_EQ(got->Values<int32_t>(), (std::vector<int32_t>{0}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, OfType,
                         ::testing::Range(static_cast<int>(kFirstDType),
                                          static_cast<int>(kLastDType) + 1),
                         [](const auto& info) {
                           return std::string(
                               Name(static_cast<DType>(info.param)));
                         });

TEST(FillValues, OfUint32KeepAllTheirDigits) {
  const auto got =
      Apply("pad", {{"shape", Ints{2}}, {"fill_value", Value(4294967293.0)}},
            {Array::Of<int32_t>({1}, {7}).As(DType::kUint32)});
  ASSERT_TRUE(got.ok()) << Message(got.status());
  EXPECT_EQ(got->Values<uint32_t>(), (std::vector<uint32_t>{7, 4294967293u}));
}

TEST(StoredValues, OfOtherAxesThanTheirTypeAreRefused) {
  Graph graph;
  graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}},
                 {"length", {{0, 0}}, {}}};
  graph.outputs = {{"x", {1, 0}}};
  const ValueType type{ValueType::Kind::kTensor, DType::kUint8, {-1}};
  const auto checked = Check(graph, std::span(&type, 1));
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const auto program = RowProgram::Compile(*checked);
  ASSERT_TRUE(program.ok()) << Message(program.status());
  const std::vector<std::byte> bytes(1);
  // More than a tensor has places for.
  const StoredField field{bytes, Shape(20, 1)};
  std::vector<std::byte> memory(4);
  const std::span<std::byte> output(memory);
  Scratch scratch({});
  const absl::Status status = (*program)->Run({.fields = std::span(&field, 1)},
                                              scratch, std::span(&output, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), "output 0 of the reader has 20 axes, want 1");
}

}  // namespace
}  // namespace leat::worker
