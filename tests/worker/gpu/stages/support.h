// SPDX-License-Identifier: Apache-2.0
//
// Runs a pipeline with stages as a GPU worker does, on the host, beside the
// CPU's. Each row's partner is the next row, and the last row's is the first.
#pragma once

#include <string>
#include <vector>

#include "tests/support/host_device.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/fused/support.h"
#include "tests/worker/image/program/row_beside.h"

namespace leat::worker {

inline constexpr int32_t kLabel = 7, kPartnersLabel = 3;  // kLabel as Runner's

// A group of rows of one pipeline, all in host memory.
class StagedRunner {
 public:
  StagedRunner(const CheckedGraph& graph, uint64_t seed,
               const FusedLimits& limits = {})
      : schema_(graph.schema), seed_(seed) {
    auto program = FusedProgram::Compile(graph, limits);
    if (program.ok()) program_ = *std::move(program);
    status_ = program.status();
  }

  const absl::Status& status() const { return status_; }
  const FusedProgram& program() const { return *program_; }

  // Returns one status per row; kResourceExhausted: the CPU has to compute it;
  // kAborted: a kernel found it bad. Outputs are misaligned by `misalign`
  // bytes.
  std::vector<absl::Status> Run(const std::vector<std::string>& jpegs,
                                uint64_t epoch, size_t misalign) {
    const size_t rows = jpegs.size();
    Block block(program_->BlockBytes(rows));
    Block values(std::max<uint64_t>(program_->ValueBytes(rows), 1));
    const std::span<std::byte> faults = values.span().subspan(
        program_->FaultsAt(rows), program_->FaultBytes(rows));
    std::ranges::fill(faults, std::byte{0});
    FusedGroup group;
    std::vector<absl::Status> statuses(
        rows,
        group.Begin(*program_, rows, block.span(),
                    {.block = block.address(), .values = values.address()}));
    if (!statuses[0].ok()) return statuses;
    outputs_.assign(rows, {});
    std::vector<OfBoth<std::vector<uint8_t>>> pixels(rows);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t f = 0; f < schema_.fields.size(); ++f) {
        outputs_[row].emplace_back(
            schema_.fields[f].row_bytes + misalign + kGuard, kGuardByte);
        group.BindOutput(row, f,
                         DeviceAddress::Of(outputs_[row][f].data()) + misalign);
      }
      statuses[row] = PrepareRow(row, jpegs, epoch, &group, &pixels[row]);
    }
    const auto queue = MakeHostQueue();
    EXPECT_TRUE(program_->Launch(rows, block.address(), queue.get()).ok());
    for (size_t row = 0; row < rows; ++row)
      for (std::vector<std::byte>& output : outputs_[row])
        output = Unguarded(output, misalign);
    for (size_t row = 0; row * sizeof(uint32_t) < faults.size(); ++row) {
      uint32_t fault;
      memcpy(&fault, &faults[row * sizeof fault], sizeof fault);
      if (fault == 0) continue;
      EXPECT_TRUE(statuses[row].ok()) << "it was left out of the launches";
      statuses[row] = Aborted("a kernel found it bad");
    }
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

  absl::Status PrepareRow(size_t row, const std::vector<std::string>& jpegs,
                          uint64_t epoch, FusedGroup* group,
                          OfBoth<std::vector<uint8_t>>* pixels) {
    const size_t partner = (row + 1) % jpegs.size();
    if (program_->has_partner())
      RETURN_IF_ERROR(PrepareSample(row, Whose::kPartner, partner,
                                    jpegs[partner], epoch, group,
                                    &(*pixels)[Whose::kPartner]));
    return PrepareSample(row, Whose::kRow, row, jpegs[row], epoch, group,
                         &(*pixels)[Whose::kRow]);
  }
  absl::Status PrepareSample(size_t row, Whose whose, uint64_t sample,
                             const std::string& jpeg, uint64_t epoch,
                             FusedGroup* group, std::vector<uint8_t>* pixels) {
    JpegDecoder decoder({});
    RETURN_IF_ERROR(decoder.Open(AsSpan(jpeg)));
    const StoredSample stored =
        StoredImage({}, whose == Whose::kRow ? kLabel : kPartnersLabel);
    const RowInput input{.seed = seed_,
                         .epoch = epoch,
                         .sample = sample,
                         .fields = stored.fields,
                         .step_epoch = epoch};
    ASSIGN_OR_RETURN(
        const StoredRect part,
        group->PrepareRow(row, input, decoder.header().size,
                          decoder.header().orientation, &scratch_, whose));
    FusedSource source;
    if (program_->decodes(whose))
      *pixels = Decoded(jpeg, part, program_->gray(), {}, &source);
    source.address = DeviceAddress::Of(pixels->data());
    return group->BindSource(row, source, whose);
  }

  const BatchSchema schema_;
  const uint64_t seed_;
  absl::Status status_;
  std::unique_ptr<FusedProgram> program_;
  FusedScratch scratch_;
  std::vector<std::vector<std::vector<std::byte>>> outputs_;
};

// Five images, one far larger than the others.
inline std::vector<std::string> Images() {
  std::vector<std::string> images;
  for (int i = 0; i < 5; ++i)
    images.push_back(testing::MakeJpeg({.width = 20 + 13 * i,
                                        .height = 47,
                                        .orientation = i + 1,
                                        .seed = static_cast<uint32_t>(i + 1)}));
  images.back() = testing::MakeJpeg({.width = 290, .height = 170});
  return images;
}

// Computes rows of the graph by both; returns how many both computed.
inline int CompareRows(const Graph& graph, StagedRunner& gpu, uint64_t seed,
                       const std::vector<std::string>& images,
                       size_t misalign) {
  Runner cpu(graph, seed);
  Scratch scratch({});
  const std::vector<absl::Status> statuses = gpu.Run(images, 3, misalign);
  int same = 0;
  for (size_t row = 0; row < images.size(); ++row) {
    const size_t next = (row + 1) % images.size();
    const StoredSample beside =
        StoredImage(AsSpan(images[next]), kPartnersLabel);
    RowBeside partner({.seed = cpu.seed,
                       .epoch = 3,
                       .sample = next,
                       .fields = beside.fields});
    const absl::Status want = cpu.Run(images[row], scratch, row, 3, &partner);
    // Rows that the CPU refuses are left to it, because it reports why.
    if (!want.ok()) {
      EXPECT_FALSE(statuses[row].ok()) << want;
      continue;
    }
    if (!statuses[row].ok()) continue;  // left to the CPU
    for (size_t f = 0; f < cpu.outputs.size(); ++f)
      EXPECT_EQ(gpu.output(row, f), cpu.outputs[f])
          << "row " << row << " field " << f;
    ++same;
  }
  return same;
}

}  // namespace leat::worker
