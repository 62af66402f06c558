// SPDX-License-Identifier: Apache-2.0
//
// RowKernel computes the rows of a pipeline on a worker's hardware. The CPU's
// kernel runs worker/image's RowProgram, row by row; a GPU's kernel takes rows
// in groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/plan/job.h"
#include "worker/compute/row_work.h"
#include "worker/image/base/row_input.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {

// Rows on their way through a device together.
//
// Each row is prepared, on several threads at the same time; then Run is
// called. Rows that failed in it may be prepared again, from other samples, and
// Run again. A group may be dropped at any time except during Run, also from
// within `done`; none of its rows is written after that.
class KernelGroup {
 public:
  // Gets one status per row of the group: OK; an error of the sample (as
  // RowProgram::Run returns it); kAborted if the row must be prepared again,
  // from the same sample; or kUnavailable, for all rows, if the device failed.
  // Called on a thread of the device. If a row failed with another error, it is
  // called on a thread that may read and decode, with a `state` for Prepare,
  // which is nullptr otherwise.
  using Done = std::function<void(std::span<const absl::Status> rows,
                                  ThreadState* state)>;

  virtual ~KernelGroup() = default;
  // `input` comes without its fields, which `stored` has; its partner and the
  // keeper of its decoded forms are called during the call. Errors: as
  // RowProgram::Run, and kUnavailable.
  virtual absl::Status Prepare(size_t row, const RowInput& input,
                               StoredSample stored, ThreadState* state) = 0;
  // Withdraws a row: it counts as computed, is not written, and its memory may
  // be gone. Not to be called during the row's Prepare or Run.
  virtual void Forget(size_t row) = 0;
  // Computes the rows that were prepared since the last Run. Other rows that
  // have no value yet become zeros. If the outputs have a field after the
  // pipeline's last (kValidField), it is set to say which rows were computed.
  // Must not block. Calls `done` once, perhaps from within.
  virtual void Run(Done done) = 0;
};

// Each thread passes a state that the factory made.
class RowKernel : public GroupLimits {
 public:
  // Has the contract of RowProgram::Run.
  virtual absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const = 0;

  // Rows that are not staged() are computed by Run, the others in these groups.
  // As RowWork::BeginGroup.
  virtual std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const {
    return nullptr;
  }
};

struct RowKernelFactory {
  // kUnimplemented: this hardware lacks the decoder class, or cannot run an
  // operator in it (names it).
  std::function<absl::StatusOr<std::unique_ptr<RowKernel>>(
      const CheckedGraph& graph, DecoderClass decoder_class)>
      compile;
  std::function<std::unique_ptr<ThreadState>()> make_thread_state;
};

// The state of a thread that runs the CPU's kernel.
class ImageThread : public ThreadState {
 public:
  explicit ImageThread(const ImageLimits& limits) : scratch_(limits) {}
  Scratch& scratch() { return scratch_; }

 private:
  Scratch scratch_;
};

// Returns the CPU's factory: class exact; states are ImageThreads.
RowKernelFactory ImageKernels(const ImageLimits& limits);

}  // namespace leat::worker
