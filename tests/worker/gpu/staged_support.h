// SPDX-License-Identifier: Apache-2.0
//
// Runs a pipeline with stages as a GPU worker does, on the host, and next to it
// the CPU's.
#pragma once

#include <string>
#include <vector>

#include "tests/worker/gpu/fused_support.h"
#include "worker/gpu/stages/stage_kernel.h"

namespace leat::worker {

// A group of rows of one pipeline, all in memory of the host's.
class StagedRunner {
 public:
  StagedRunner(const CheckedGraph& graph, uint64_t seed,
               const FusedLimits& limits = {})
      : schema_(graph.schema) {
    auto program = FusedProgram::Compile(graph, seed, limits);
    if (program.ok()) program_ = *std::move(program);
    status_ = program.status();
  }

  const absl::Status& status() const { return status_; }
  const FusedProgram& program() const { return *program_; }

  // One status a row; kResourceExhausted: for the CPU. Outputs are off by
  // `misalign` bytes.
  std::vector<absl::Status> Run(const std::vector<std::string>& jpegs,
                                uint64_t epoch, size_t misalign) {
    const size_t rows = jpegs.size();
    Block block(program_->BlockBytes(rows));
    Block values(std::max<uint64_t>(program_->ValueBytes(rows), 1));
    const auto address = [](Block& memory) {
      return reinterpret_cast<uint64_t>(memory.span().data());
    };
    FusedGroup group;
    std::vector<absl::Status> statuses(
        rows,
        group.Begin(*program_, rows, block.span(),
                    {.block = address(block), .values = address(values)}));
    if (!statuses[0].ok()) return statuses;
    outputs_.assign(rows, {});
    std::vector<std::vector<uint8_t>> pixels(rows);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t f = 0; f < schema_.fields.size(); ++f) {
        outputs_[row].emplace_back(
            schema_.fields[f].row_bytes + misalign + kGuard, kGuardByte);
        group.BindOutput(
            row, f,
            reinterpret_cast<uint64_t>(outputs_[row][f].data()) + misalign);
      }
      statuses[row] = PrepareRow(row, jpegs[row], epoch, &group, &pixels[row]);
    }
    HostRunner host;
    EXPECT_TRUE(
        host.Launch(program_->kernel(), program_->launch(rows), address(block))
            .ok());
    for (size_t i = 0; i < program_->stages(); ++i) {
      const StageLaunch stage = program_->stage(i, rows);
      EXPECT_TRUE(host.Launch(kStageKernels[static_cast<int>(stage.kind)],
                              stage.config, address(block) + stage.rows_at)
                      .ok());
    }
    for (size_t row = 0; row < rows; ++row)
      for (std::vector<std::byte>& output : outputs_[row])
        output = Unguarded(output, misalign);
    return statuses;
  }

  const std::vector<std::byte>& output(size_t row, size_t field) const {
    return outputs_[row][field];
  }

 private:
  static constexpr size_t kGuard = 16;
  static constexpr std::byte kGuardByte{0x5c};

  static std::vector<std::byte> Unguarded(const std::vector<std::byte>& memory,
                                          size_t misalign) {
    for (size_t i = 0; i < misalign; ++i) EXPECT_EQ(memory[i], kGuardByte);
    for (size_t i = memory.size() - kGuard; i < memory.size(); ++i)
      EXPECT_EQ(memory[i], kGuardByte);
    return {memory.begin() + static_cast<ptrdiff_t>(misalign),
            memory.end() - static_cast<ptrdiff_t>(kGuard)};
  }

  absl::Status PrepareRow(size_t row, const std::string& jpeg, uint64_t epoch,
                          FusedGroup* group, std::vector<uint8_t>* pixels) {
    JpegDecoder decoder({});
    RETURN_IF_ERROR(decoder.Open(AsSpan(jpeg)));
    const StoredSample stored = StoredImage({}, kLabel);
    const RowInput input{epoch, row, stored.fields};
    ASSIGN_OR_RETURN(
        const Rect part,
        group->PrepareRow(row, input, decoder.header().size,
                          decoder.header().orientation, &scratch_));
    FusedSource source;
    *pixels = Decoded(jpeg, part, program_->gray(), {}, &source);
    source.address = reinterpret_cast<uint64_t>(pixels->data());
    return group->BindSource(row, source);
  }

  static constexpr int32_t kLabel = 7;  // as Runner's
  const BatchSchema schema_;
  absl::Status status_;
  std::unique_ptr<FusedProgram> program_;
  FusedScratch scratch_;
  std::vector<std::vector<std::vector<std::byte>>> outputs_;
};

}  // namespace leat::worker
