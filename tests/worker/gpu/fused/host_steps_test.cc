// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/host_steps.h"

#include <cstring>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {
namespace {

ValueType Scalar(DType dtype) { return {ValueType::Kind::kTensor, dtype, {}}; }

// Signalling NaNs: a conversion to float32 and back would make others of them.
TEST(HostSteps, AChosenHalfKeepsItsBitsAsOnTheCpu) {
  Graph graph;
  graph.nodes = {
      {"readers.numpy", {}, {{"path", Value(std::string("/none.npy"))}}},
      {"where", {{0, 0}, {0, 1}, {0, 2}}, {}}};
  graph.outputs = {{"chosen", {1, 0}}};
  const ValueType types[] = {Scalar(DType::kBool), Scalar(DType::kFloat16),
                             Scalar(DType::kFloat16)};
  const auto checked = Check(graph, types);
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const auto steps = CompileSteps(*checked, true);
  ASSERT_TRUE(steps.ok()) << Message(steps.status());
  ASSERT_EQ(steps->size(), 1u);
  const auto program = RowProgram::Compile(*checked);
  ASSERT_TRUE(program.ok());
  uint16_t halves[] = {0x7d01, 0xfc02};
  for (const bool flag : {true, false}) {
    std::byte condition{flag};
    FusedScratch scratch;
    FusedScratch::Sample& sample = scratch.samples[Whose::kRow];
    sample.host.resize(NumValues(*checked));
    sample.values.resize(NumValues(*checked));
    const auto set = [&](uint32_t output, void* data) {
      sample.values[ValueIndex(*checked, {0, output})] = {
          types[output].dtype, 0, {}, static_cast<std::byte*>(data)};
    };
    set(0, &condition);
    set(1, &halves[0]);
    set(2, &halves[1]);
    sample.values[1] = {DType::kFloat16, 0, {}, nullptr};
    const absl::Status status =
        RunHostStep((*steps)[0], Whose::kRow, {}, &scratch);
    ASSERT_TRUE(status.ok()) << Message(status);
    uint16_t got = 0, want = 0;
    memcpy(&got, sample.values[1].data, sizeof got);
    const StoredField fields[] = {
        {std::span(&condition, 1), {}},
        {std::as_bytes(std::span(&halves[0], 1)), {}},
        {std::as_bytes(std::span(&halves[1], 1)), {}}};
    const std::span<std::byte> output =
        std::as_writable_bytes(std::span(&want, 1));
    Scratch rows({});
    ASSERT_TRUE(
        (*program)
            ->Run({.seed = 1, .fields = fields}, rows, std::span(&output, 1))
            .ok());
    EXPECT_EQ(want, halves[flag ? 0 : 1]);
    EXPECT_EQ(got, want);
  }
}

}  // namespace
}  // namespace leat::worker
