// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/fault.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/base/scratch_budget.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;
using Ints = std::vector<int64_t>;

TEST(Scratch, WorkingMemoryIsBounded) {
  Graph graph = ChainOf({{"random_resized_crop", {}, {{"size", Ints{8}}}}});
  graph.nodes.push_back({"resize", {{1, 0}}, {{"size", Ints{8}}}});
  graph.outputs.push_back({"b", {3, 0}});  // decodes the whole image
  Runner runner(graph, 1);
  Scratch small({.max_scratch_bytes = 100'000}), large({});
  const std::string jpeg = MakeJpeg({.width = 400, .height = 400});
  EXPECT_EQ(runner.Run(jpeg, small).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(runner.Run(jpeg, large).ok());
  EXPECT_TRUE(runner.Run(MakeJpeg({.width = 40, .height = 40}), small).ok());
}

TEST(Scratch, MemoryThatAnOperatorAllocatesCounts) {
  const std::string jpeg = MakeJpeg({.width = 256, .height = 256});
  const Node resize{"resize", {}, {{"size", Ints{256}}}};
  const auto run = [&](const char* op, std::map<std::string, Value> args) {
    Runner runner(ChainOf({resize, {op, {}, std::move(args)}}), 1);
    Scratch scratch({.max_scratch_bytes = 390'000});
    return runner.Run(jpeg, scratch).code();
  };
  // The image has 196,608 bytes.
  EXPECT_EQ(run("standardize", {{"axes", Ints{0, 1}}}), absl::StatusCode::kOk);
  EXPECT_EQ(run("standardize", {{"axes", Ints{2}}}),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(run("rand_augment", {{"n", int64_t{2}}, {"m", int64_t{1}}}),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(run("jpeg_compression_distortion", {}),
            absl::StatusCode::kResourceExhausted);
}

// A high image that becomes flat and wide: all of its rows are kept, as wide as
// the result.
TEST(Scratch, RowsThatAResamplerKeepsCount) {
  Runner runner(ChainOf({{"resize", {}, {{"size", Ints{1, 2000}}}}}), 1);
  const std::string jpeg = MakeJpeg({.width = 64, .height = 600});
  ScratchBudget budget(8'000'000), less(3'000'000);
  Scratch scratch({.kept_scratch_bytes = 100'000, .budget = &budget});
  EXPECT_TRUE(runner.Run(jpeg, scratch).ok());
  Scratch small({.kept_scratch_bytes = 100'000, .budget = &less});
  EXPECT_EQ(FaultOf(runner.Run(jpeg, small)), Fault::kWorker);
}

// By rule "dali": a row of the image, and rows as wide as the result.
TEST(Scratch, FloatsThatAResamplerKeepsCount) {
  DaliResampler dali(BestDaliLoops());
  View view(ImageSize{4, 5000});
  view.Resize(ImageSize{2, 4000}, {.dali = true});
  const Rect part = dali.Plan(view);
  const std::vector<uint8_t> image(
      static_cast<size_t>(part.width * part.height));
  std::vector<uint8_t> out(2 * 4000);
  const DaliResampler::Pixels pixels{.first = image.data(),
                                     .pitch = static_cast<size_t>(part.width),
                                     .step = 1,
                                     .end = image.data() + image.size()};
  ScratchBudget budget(8'000'000);
  WorkingMemory memory({.kept_scratch_bytes = 20'000, .budget = &budget});
  EXPECT_TRUE(absl::IsAborted(dali.Run(pixels, 1, out.data(), 4000, &memory)));
  memory.Grant(memory.lacked());
  EXPECT_TRUE(absl::IsAborted(dali.Run(pixels, 1, out.data(), 4000, &memory)));
  memory.Grant(memory.lacked());
  EXPECT_TRUE(dali.Run(pixels, 1, out.data(), 4000, &memory).ok());
  EXPECT_GE(memory.buffer_bytes(), 5000 * sizeof(float));
}

TEST(Scratch, WhatEarlierRowsHaveLeftMakesNoRowFail) {
  Runner whole(ChainOf({{"rotate", {}, {{"angle", Value(10.0)}}},
                        {"resize", {}, {{"size", Ints{8}}}}}),
               1, false);
  // The two files need memory in different places.
  const std::string turned =
      MakeJpeg({.width = 200, .height = 200, .orientation = 6});
  const std::string plain = MakeJpeg({.width = 300, .height = 300});
  const auto are_enough = [&](uint64_t bytes) {
    Scratch one({.max_scratch_bytes = bytes});
    Scratch other({.max_scratch_bytes = bytes});
    return whole.Run(turned, one).ok() && whole.Run(plain, other).ok();
  };
  uint64_t low = 1000, high = 10'000'000;
  while (low + 1 < high) {
    const uint64_t middle = (low + high) / 2;
    (are_enough(middle) ? high : low) = middle;
  }
  Scratch used({.max_scratch_bytes = high});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(whole.Run(turned, used).ok());
    EXPECT_TRUE(whole.Run(plain, used).ok());
  }
}

TEST(Scratch, MemoryOfALargeImageIsNotKept) {
  Runner runner(ChainOf({{"resize", {}, {{"size", Ints{8}}}}}), 1, false);
  Scratch scratch({.kept_scratch_bytes = 200'000});
  ASSERT_TRUE(
      runner.Run(MakeJpeg({.width = 100, .height = 100}), scratch).ok());
  const size_t small = scratch.state()->held();
  EXPECT_GT(small, 0u);
  ASSERT_TRUE(
      runner.Run(MakeJpeg({.width = 700, .height = 700}), scratch).ok());
  EXPECT_EQ(scratch.state()->held(), 0u);
  ASSERT_TRUE(
      runner.Run(MakeJpeg({.width = 100, .height = 100}), scratch).ok());
  EXPECT_EQ(scratch.state()->held(), small);
}

// A field that is not aligned to its elements is copied.
TEST(Scratch, CopiesOfStoredValuesAreWorkingMemory) {
  Graph graph;
  graph.nodes = {
      {"readers.numpy", {}, {{"path", Value(std::string("/none.npy"))}}},
      {"slice", {{0, 0}}, {{"start", Ints{7}}, {"shape", Ints{1}}}}};
  graph.outputs = {{"one", {1, 0}}};
  const int64_t count = 50'000;
  const ValueType type{ValueType::Kind::kTensor, DType::kInt64, {count}};
  const auto checked = Check(graph, std::span(&type, 1));
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const auto program = RowProgram::Compile(*checked);
  ASSERT_TRUE(program.ok());
  std::vector<std::byte> bytes(8 * count + 1);
  bytes[8 * 7 + 1] = std::byte{5};
  const StoredField field{std::span(bytes).subspan(1), {}};
  int64_t one = 0;
  const std::span<std::byte> output =
      std::as_writable_bytes(std::span(&one, 1));
  const auto run = [&](Scratch* scratch) {
    return (*program)->Run({.seed = 1, .fields = std::span(&field, 1)},
                           *scratch, std::span(&output, 1));
  };
  Scratch scratch({.kept_scratch_bytes = 200'000});
  ASSERT_TRUE(run(&scratch).ok());
  EXPECT_EQ(one, 5);
  EXPECT_TRUE(scratch.state()->row.copies.empty());
  Scratch small({.max_scratch_bytes = 200'000});
  EXPECT_EQ(run(&small).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leat::worker
