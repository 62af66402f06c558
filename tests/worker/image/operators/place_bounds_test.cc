// SPDX-License-Identifier: Apache-2.0
//
// Shapes and sizes at the ends of what the operators take.
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"
#include "worker/image/operators/kernel.h"

namespace leat::worker {
namespace {

using testing::Apply;
using testing::Args;
using testing::Array;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Ints;
using testing::Text;

std::string RefusalOf(const char* op, Args args, const Array& in) {
  const absl::Status status = Apply(op, std::move(args), {in}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << op;
  return std::string(Message(status));
}

// The memory behind the numbers would be part of the result.
TEST(Slice, WantsANumberForEachPlaceOfTheResultsLastAxis) {
  const Array image = Array::Of<uint8_t>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  Args args = {{"axes", Ints{2}},
               {"start", Ints{-1}},
               {"shape", Ints{500}},
               {"out_of_bounds_policy", Text("pad")},
               {"fill_values", Floats{7, 8, 9}}};
  EXPECT_THAT(RefusalOf("slice", args, image),
              HasSubstr("\"fill_values\" has 3 numbers"));
  args["shape"] = Ints{2};
  EXPECT_THAT(RefusalOf("slice", args, image),
              HasSubstr("\"fill_values\" has 3 numbers"));
  args["shape"] = Ints{3};
  const auto moved = Apply("slice", args, {image});
  ASSERT_TRUE(moved.ok()) << Message(moved.status());
  EXPECT_EQ(*moved, Array::Of<uint8_t>({2, 1, 3}, {7, 1, 2, 7, 4, 5}));
}

// A device has places of 32 bits.
TEST(Slice, OfWhatIsFarOutsideHasAnEmptyBox) {
  Graph graph;
  graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}},
                 {"slice",
                  {{0, 0}},
                  {{"rel_start", Floats{1000}},
                   {"shape", Ints{8}},
                   {"out_of_bounds_policy", Text("pad")}}}};
  graph.outputs = {{"result", {1, 0}}};
  const int64_t count = 4'294'967;
  const ValueType type{ValueType::Kind::kTensor, DType::kUint8, {count}};
  const auto checked = Check(graph, std::span(&type, 1));
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const KernelOr kernel = MakeOperatorKernel(*checked, 1);
  ASSERT_TRUE(kernel.ok());
  const Tensor in{DType::kUint8, 1, {count}, nullptr};
  const Tensor* const inputs[] = {&in};
  const auto form = (*kernel)->FormOf({inputs, {}, SampleRng(0, 0, 0, 0)});
  ASSERT_TRUE(form.ok());
  const Box& box = std::get<BoxForm>(*form).boxes.at(0);
  EXPECT_EQ(box.at[0], 0);
  EXPECT_EQ(box.extent[0], 0);
}

}  // namespace
}  // namespace leat::worker
