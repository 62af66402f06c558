// SPDX-License-Identifier: Apache-2.0
//
// RowKernel: what a worker's hardware makes of a pipeline. The CPU's runs
// worker/image's RowProgram, row by row; a GPU's takes rows in groups.
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
// Each row is prepared, of several threads at the same time; then Run. Rows
// that failed in it may be prepared again, from other samples, and Run again.
// May be dropped at any time but during Run, also from within `done`; nothing
// of it is written any more after that.
class KernelGroup {
 public:
  // One status a row of the group: OK; the sample's fault (as RowProgram::Run
  // says it); kAborted: the row must be prepared again, from the same sample;
  // or the device's: kUnavailable, of all rows. On a thread of the
  // device's; if a row has failed otherwise, on one that may read and
  // decode, with a `state` for Prepare, which is null otherwise.
  using Done = std::function<void(std::span<const absl::Status> rows,
                                  ThreadState* state)>;

  virtual ~KernelGroup() = default;
  // `input` without its fields, which are those of `stored`; its partner, and
  // who keeps its forms, are asked during the call. Errors: as RowProgram::Run,
  // and kUnavailable.
  virtual absl::Status Prepare(size_t row, const RowInput& input,
                               StoredSample stored, ThreadState* state) = 0;
  // Nobody wants the row: it counts as computed, nothing of it is written, and
  // its memory may be gone. Not during its Prepare or Run.
  virtual void Forget(size_t row) = 0;
  // Computes the rows that were prepared since the last Run. Those of the
  // others that have no value yet become zeros. If the outputs have a field
  // after the pipeline's last (kValidField), it says which ones were computed.
  // Must not block; `done` once, also from within.
  virtual void Run(Done done) = 0;
};

// Thread-safe; each thread brings a state that the factory made.
class RowKernel {
 public:
  virtual ~RowKernel() = default;
  // Has the contract of RowProgram::Run.
  virtual absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const = 0;

  // Like RowWork::staged: rows are computed in groups, or by Run.
  virtual bool staged(bool on_device) const { return false; }
  // These are like RowWork's functions of the same names.
  virtual size_t most_rows() const { return SIZE_MAX; }
  virtual bool CanBegin(int device) const { return true; }
  virtual std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const {
    return nullptr;
  }
};

struct RowKernelFactory {
  // kUnimplemented: this hardware has no such decoder class, or cannot run an
  // operator in it (names it).
  std::function<absl::StatusOr<std::unique_ptr<RowKernel>>(
      const CheckedGraph& graph, uint64_t seed, DecoderClass decoder_class)>
      compile;
  std::function<std::unique_ptr<ThreadState>()> make_thread_state;
};

// What the CPU's kernel needs of a thread.
class ImageThread : public ThreadState {
 public:
  explicit ImageThread(const ImageLimits& limits) : scratch_(limits) {}
  Scratch& scratch() { return scratch_; }

 private:
  Scratch scratch_;
};

// The CPU's: class exact; states are ImageThreads.
RowKernelFactory ImageKernels(const ImageLimits& limits);

}  // namespace leat::worker
