// SPDX-License-Identifier: Apache-2.0
//
// Groups of rows through a GPU worker's kernels, compared with the CPU's rows.
#pragma once

#include <algorithm>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/row_beside.h"
#include "tests/worker/image/program/support.h"
#include "worker/compute/gpu_worker.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {

inline constexpr uint64_t kGpuTestSeed = 7;

// A row as both compute it: field after field.
using RowBytes = std::vector<std::byte>;

struct GroupResult {
  std::vector<absl::Status> prepared, computed;  // per row
  std::vector<RowBytes> rows;
  int again = 0;  // rows that were prepared twice
  bool ok() const {
    const auto good = [](const absl::Status& s) { return s.ok(); };
    return std::all_of(prepared.begin(), prepared.end(), good) &&
           std::all_of(computed.begin(), computed.end(), good);
  }
};

// Memory for a group's rows; slots are given as a consumer would.
class GroupMemory {
 public:
  GroupMemory(const BatchSchema& schema, size_t slots) {
    size_t at = 0;
    for (const Field& field : schema.fields) {
      offsets_.push_back(at);
      bytes_.push_back(field.row_bytes);
      at += slots * field.row_bytes;
    }
    memory_.assign(at, std::byte{0x77});
  }
  GroupOutputs Outputs(size_t rows, std::span<const uint32_t> slots = {}) {
    return {.rows = rows,
            .base = memory_.data(),
            .offsets = offsets_,
            .field_bytes = bytes_,
            .slots = slots};
  }
  RowBytes Row(const GroupOutputs& outputs, size_t row) const {
    RowBytes bytes;
    for (size_t f = 0; f < bytes_.size(); ++f) {
      const std::byte* from = outputs.At(f, row);
      bytes.insert(bytes.end(), from, from + bytes_[f]);
    }
    return bytes;
  }

 private:
  std::vector<uint64_t> offsets_;
  std::vector<size_t> bytes_;
  std::vector<std::byte> memory_;
};

// One pipeline on a GPU worker.
class GpuPipeline {
 public:
  GpuPipeline(const Graph& graph, GpuWorker& gpus,
              DecoderClass decoder_class = DecoderClass::kExact)
      : checked_(*Check(graph)),
        factory_(gpus.kernels()),
        state_(factory_.make_thread_state()) {
    auto kernel = factory_.compile(checked_, decoder_class);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (kernel.ok()) kernel_ = *std::move(kernel);
    cpu_ = *RowProgram::Compile(checked_);
  }

  const BatchSchema& schema() const { return checked_.schema; }
  const RowKernel& kernel() const { return *kernel_; }
  ThreadState* state() { return state_.get(); }

  // Runs the rows of samples 0, 1, 2 … of these files, in the largest groups.
  GroupResult Run(const std::vector<std::string>& files) {
    GroupResult result;
    const size_t most = std::min(files.size(), kernel_->most_rows());
    for (size_t begin = 0; begin < files.size(); begin += most)
      RunSome(files, begin, std::min(most, files.size() - begin), &result);
    return result;
  }

  static std::vector<absl::Status> RunGroup(KernelGroup& group) {
    std::vector<absl::Status> statuses;
    std::latch done(1);
    group.Run([&](std::span<const absl::Status> rows, ThreadState*) {
      statuses.assign(rows.begin(), rows.end());
      done.count_down();
    });
    done.wait();
    return statuses;
  }

  // Prepares the file as sample number `row` of epoch 1.
  absl::Status Prepare(KernelGroup& group, size_t row,
                       const std::string& file) {
    return Prepare(group, row, file, row);
  }

  // Runs a group of the rows of samples 0, 1, 2 … of these files, and again with
  // those that kernels have found bad. Returns their statuses.
  std::vector<absl::Status> Finish(KernelGroup& group,
                                   const std::vector<std::string>& files) {
    GroupResult result;
    RunToTheEnd(group, files, 0, &result);
    return result.computed;
  }

  absl::StatusOr<RowBytes> OnCpu(const std::string& file, uint64_t sample) {
    GroupMemory memory(schema(), 1);
    const GroupOutputs outputs = memory.Outputs(1);
    std::vector<std::span<std::byte>> fields;
    for (size_t f = 0; f < schema().fields.size(); ++f)
      fields.emplace_back(outputs.At(f, 0), outputs.field_bytes[f]);
    const StoredSample stored =
        StoredImage(AsSpan(file), static_cast<int32_t>(sample));
    const StoredSample beside = Beside();
    RowBeside other(InputBeside(sample, beside), readable);
    RETURN_IF_ERROR(cpu_->Run({.seed = kGpuTestSeed,
                               .epoch = 1,
                               .sample = sample,
                               .fields = stored.fields,
                               .partner = &other},
                              scratch_, fields));
    return memory.Row(outputs, 0);
  }

  // The partner of all rows.
  std::string partner =
      testing::MakeJpeg({.width = 150, .height = 130, .seed = 99});
  absl::Status readable;  // of that file
  int asked = 0;  // requests for it, by rows that groups left to the CPU
  FormKeeper* forms = nullptr;

 private:
  absl::Status Prepare(KernelGroup& group, size_t row, const std::string& file,
                       size_t sample) {
    const StoredSample beside = Beside();
    RowBeside other(InputBeside(sample, beside), readable);
    const absl::Status status = group.Prepare(
        row,
        {.seed = kGpuTestSeed,
         .epoch = 1,
         .sample = sample,
         .partner = &other,
         .forms = forms},
        StoredImage(AsSpan(file), static_cast<int32_t>(sample)), state());
    asked += other.asked;
    return status;
  }

  StoredSample Beside() const { return StoredImage(AsSpan(partner), 3); }
  static RowInput InputBeside(uint64_t sample, const StoredSample& beside) {
    return {.seed = kGpuTestSeed,
            .epoch = 1,
            .sample = 1000 + sample,
            .fields = beside.fields};
  }

  void RunSome(const std::vector<std::string>& files, size_t begin,
               size_t count, GroupResult* result) {
    GroupMemory memory(schema(), count);
    const GroupOutputs outputs = memory.Outputs(count);
    const auto group = kernel_->BeginGroup(outputs);
    if (group == nullptr) {
      ADD_FAILURE() << "no slot";
      return;
    }
    bool lost = false;
    for (size_t row = 0; row < count; ++row) {
      result->prepared.push_back(
          Prepare(*group, row, files[begin + row], begin + row));
      const absl::Status& status = result->prepared.back();
      if (!status.ok()) group->Forget(row);
      lost = lost || absl::IsUnavailable(status);
    }
    if (!lost) RunToTheEnd(*group, files, begin, result);
    for (size_t row = 0; row < count; ++row)
      result->rows.push_back(memory.Row(outputs, row));
  }

  // Runs the group again for rows that need it.
  void RunToTheEnd(KernelGroup& group, const std::vector<std::string>& files,
                   size_t begin, GroupResult* result) {
    std::vector<absl::Status> computed = RunGroup(group);
    bool again = false;
    for (size_t row = 0; row < computed.size(); ++row) {
      if (!absl::IsAborted(computed[row])) continue;
      ++result->again;
      computed[row] = Prepare(group, row, files[begin + row], begin + row);
      again = again || computed[row].ok();
      if (!computed[row].ok()) group.Forget(row);
    }
    if (again) {
      const std::vector<absl::Status> second = RunGroup(group);
      for (size_t row = 0; row < computed.size(); ++row)
        if (computed[row].ok()) computed[row] = second[row];
    }
    for (absl::Status& status : computed)
      result->computed.push_back(std::move(status));
  }

  const CheckedGraph checked_;
  const RowKernelFactory factory_;
  const std::unique_ptr<ThreadState> state_;
  std::unique_ptr<RowKernel> kernel_;
  std::unique_ptr<RowProgram> cpu_;
  Scratch scratch_{ImageLimits{}};
};

}  // namespace leat::worker
