// SPDX-License-Identifier: Apache-2.0
//
// RowKernel: what a worker's hardware makes of a pipeline. One implementation
// runs worker/image's RowProgram.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/operators.h"
#include "worker/image/row_program.h"
#include "worker/row_work.h"

namespace leat::worker {

// Thread-safe; each thread brings a state that the factory made.
class RowKernel {
 public:
  virtual ~RowKernel() = default;
  // As RowProgram::Run.
  virtual absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const = 0;
};

struct RowKernelFactory {
  std::function<absl::StatusOr<std::unique_ptr<RowKernel>>(
      const CheckedGraph& graph, uint64_t seed)>
      compile;
  std::function<std::unique_ptr<ThreadState>()> make_thread_state;
};

// The CPU's.
RowKernelFactory ImageKernels(const ImageLimits& limits);

}  // namespace leat::worker
