// SPDX-License-Identifier: Apache-2.0
//
// Runs one operator on several tensors, for many samples.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"

namespace leat::worker::testing {

class OneOperator {
 public:
  // Input i of the operator is stored[i]; further ones are for arguments.
  static absl::StatusOr<OneOperator> Make(const char* op, Args args,
                                          std::vector<Array> stored,
                                          uint32_t inputs = 1,
                                          uint64_t seed = 1) {
    Graph graph;
    graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}},
                   {op, {}, std::move(args)}};
    for (uint32_t i = 0; i < inputs; ++i)
      graph.nodes[1].inputs.push_back({0, i});
    graph.outputs = {{"result", {1, 0}}};
    OneOperator made;
    made.seed_ = seed;
    std::vector<ValueType> types;
    for (const Array& array : stored) types.push_back(array.Type());
    made.stored_ = std::move(stored);
    ASSIGN_OR_RETURN(made.checked_, Check(graph, types));
    ASSIGN_OR_RETURN(made.program_, RowProgram::Compile(made.checked_));
    return made;
  }

  absl::StatusOr<Array> Run(uint64_t sample = 0, uint64_t epoch = 0) {
    StoredSample input;
    for (const Array& array : stored_)
      input.fields.push_back({array.bytes, array.open ? array.shape : Shape{}});
    const Field& field = checked_.schema.fields[0];
    Array result{field.dtype, field.shape,
                 std::vector<std::byte>(field.row_bytes, std::byte{0xa5})};
    const std::span<std::byte> output(result.bytes);
    RETURN_IF_ERROR(program_->Run({.seed = seed_,
                                   .epoch = epoch,
                                   .sample = sample,
                                   .fields = input.fields},
                                  *scratch_, std::span(&output, 1)));
    return result;
  }

 private:
  CheckedGraph checked_;
  std::unique_ptr<RowProgram> program_;
  std::vector<Array> stored_;
  uint64_t seed_ = 0;
  std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>(ImageLimits());
};

// Returns the result of one sample; an empty array and a failure of the test if
// there is none.
inline Array Computed(const char* op, Args args, std::vector<Array> stored,
                      uint32_t inputs = 1) {
  auto made = OneOperator::Make(op, std::move(args), std::move(stored), inputs);
  if (!made.ok()) {
    ADD_FAILURE() << op << ": " << Message(made.status());
    return {};
  }
  auto result = made->Run();
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << op << ": " << Message(result.status());
  return {};
}

// Returns the error's message, from making the operator or from its first
// sample.
inline std::string Refusal(const char* op, Args args, std::vector<Array> stored,
                           uint32_t inputs = 1) {
  auto made = OneOperator::Make(op, std::move(args), std::move(stored), inputs);
  const absl::Status status = made.ok() ? made->Run().status() : made.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << op;
  return std::string(Message(status));
}

// Has every byte, and every pair of neighbours.
inline Array Ramp() {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 3 * 1024; ++i)
    bytes.push_back(static_cast<uint8_t>(i * 7));
  return Array::Of<uint8_t>({32, 32, 3}, bytes);
}

}  // namespace leat::worker::testing
