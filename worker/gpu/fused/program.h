// SPDX-License-Identifier: Apache-2.0
//
// FusedProgram: a checked pipeline compiled for the fused kernel.
//
// A pipeline has one decode, and views of its value. A view is the result of a
// chain of geometric operators (fused as by RowProgram); any tree of normalize,
// cast and transpose may follow. All that is the fused kernel's work. Other
// operators on pixels are stages after it (stages/), which read the results
// that it has written to the slot's memory; the host computes small values that
// do not depend on pixels.
//
// If rows read their partners, everything upstream of `partner` exists twice:
// for the row's sample and for the partner's. Chains, stages and host values
// say to which sample they belong; views, heads and places do not differ.
//
// Views whose size differs from row to row are stages, too, since the fused
// kernel has one size for all rows. Immutable; thread-safe.
//
// For example (nodes by number; tests/worker/gpu/fused/program_test.cc has it):
//
//   0 readers.image_folder         file, label
//   1 decode(0.file)
//   2 random_resized_crop(1)       32 × 32
//   3 brightness(2)
//   4 normalize(3)                 output "image"
//   5 cast(2, float32)             output "plain"
//   6 one_hot(0.label)             output "label"
//
//   chains    0: decode, random_resized_crop; its end is node 2
//   views     0: of chain 0, 32 × 32
//   host      node 6, on the decode threads
//   tails     node 5, on node 2: no stage reads it, so the fused kernel casts
//             while it writes
//   heads     0: node 2, for brightness to read, in the slot's memory
//   stages    brightness, normalize; fields that need host values or stages
//   fields    0 "image": a stage's; 1 "plain": view 0 and its tail; 2 "label":
//             a stage's, which copies the host's value; 3: head 0, after the
//             schema's
//   launches  the fused kernel, which reads the decoded image and writes
//             fields 1 and 3; then each stage in order
//
// A group of rows is computed through a FusedGroup (group.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/gpu/device/address.h"
#include "worker/gpu/fused/chains.h"
#include "worker/gpu/fused/fields.h"
#include "worker/gpu/fused/scaled_table.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/gpu/layout/launch_config.h"
#include "worker/gpu/layout/whose.h"
#include "worker/gpu/stages/program.h"
#include "worker/image/program/program.h"
#include "worker/image/resample/dali_table.h"
#include "worker/image/resample/geometry.h"
#include "worker/image/resample/table.h"

namespace leat::worker {

class DeviceQueue;

// A thread's working memory for FusedGroup::PrepareRow. Reused.
struct FusedScratch {
  // One of a row's samples.
  struct Sample {
    std::vector<Tensor> values;                // ValueIndex
    std::vector<std::vector<std::byte>> host;  // borrowed by host values
  };
  ResampleTable horizontal, vertical;
  ScaledTable scaled_horizontal, scaled_vertical;
  DaliTable dali_across, dali_down;
  std::vector<View> chains;
  OfBoth<Sample> samples;
};

// The most work for the kernel; the CPU computes a row that exceeds it.
struct FusedLimits {
  // Resampling tables of an image, for all its views. 224 × 224 of a photo of
  // 12 megapixels: 90 KiB with lanczos3, 30 KiB with linear.
  size_t max_table_bytes = size_t{256} << 10;
  // Pixels that one thread adds up one after the other: tens of milliseconds.
  uint64_t max_taps = uint64_t{1} << 21;
  // A row's share of the memory for values between stages. It bounds those
  // values whose size differs from row to row.
  uint64_t value_bytes = uint64_t{256} << 10;
};

class FusedProgram {
 public:
  // kUnimplemented: the pipeline cannot be fused (names the node and its
  // operator), so the CPU computes such a job's rows.
  static absl::StatusOr<std::unique_ptr<FusedProgram>> Compile(
      const CheckedGraph& graph, const FusedLimits& limits = {});

  // How the image must be decoded: gray or RGB; whether EXIF turns it, which
  // PrepareRow takes into account.
  bool gray() const { return gray_; }
  bool orient() const { return orient_; }
  // True if the host decodes the image, in every class, at the scale that
  // PrepareRow chooses from the row's views.
  bool reduces() const { return reduces_; }
  int channels() const { return gray_ ? 1 : 3; }
  // True if a view is resampled by rule "dali", which does not support halved
  // images.
  bool dali() const { return dali_; }
  // Returns the number of views of the images: 1 unless they are used in
  // several ways.
  size_t views() const { return views_.size(); }
  // True if the row reads its partner, which is prepared before it.
  bool has_partner() const { return has_partner_; }
  // True if sizes of values differ from row to row. The CPU computes a row that
  // has no room for them, by FusedLimits.
  bool has_own_sizes() const { return has_own_sizes_; }
  uint64_t most_elements() const { return stages_->most_elements(); }
  // True if there are views of the image, so that it is decoded.
  bool decodes(Whose whose) const { return decodes_[whose]; }

  size_t fields() const { return fields_of_schema_; }
  // True if kernels write the field; otherwise the host computes its value.
  bool from_pixels(size_t field) const {
    return OfOutput(field).kind != FusedKind::kHost;
  }

  // Returns the encoded image of a row.
  std::span<const std::byte> EncodedOf(const RowInput& input) const {
    return input.fields[encoded_].bytes;
  }

  // Returns the bytes of the block of `rows` rows, each with the most tables
  // that the limits allow. Under 4 GiB for any reasonable group;
  // FusedGroup::Begin refuses larger ones.
  uint64_t BlockBytes(size_t rows) const;

  // The kernel and the launch for a group of `rows`.
  const char* kernel() const;
  size_t kernel_index() const;  // in kFusedKernels
  LaunchConfig launch(size_t rows) const;
  // The launches after the kernel, in order, and their needs of a slot's
  // memory.
  size_t stages() const { return stages_->stages().size(); }
  StageLaunch stage(size_t stage, size_t rows) const;
  uint64_t ValueBytes(size_t rows) const { return stages_->ValueBytes(rows); }
  // The part of that memory that holds a uint32_t per row, from FaultsAt on. It
  // must be set to 0 before the launches. If a row's word is not 0 after them,
  // the CPU computes the row, and reports what is wrong with it, if anything
  // is. 0 bytes: no row can fail in this way.
  uint64_t FaultBytes(size_t rows) const { return stages_->FaultBytes(rows); }
  uint64_t FaultsAt(size_t rows) const { return stages_->FaultsAt(rows); }
  // Puts all launches on the queue. `block`: the device's copy.
  absl::Status Launch(size_t rows, DeviceAddress block,
                      DeviceQueue* queue) const;

 private:
  friend class FusedGroup;
  friend class FusedCompiler;

  // A value of the host that is an output of the reader.
  struct StoredValue {
    uint32_t output;
    uint32_t value;  // index among the row's values
    DType dtype;
    size_t bytes;
  };

  FusedProgram() = default;
  // Lays out the common begin of all blocks, after everything else is set.
  // `tables`: the fields' offsets count from their begin.
  void LayOut(std::vector<ViewField> fields,
              const std::vector<std::byte>& tables);
  Whose WhoseView(size_t view) const {
    return chains_[views_[view].chain].whose;
  }
  const FusedField& OfOutput(size_t output) const {
    return fields_[field_of_output_[output]];
  }
  // Return the offset of the stages' part; and that of the first row's tables,
  // followed by those of the group's other rows.
  uint64_t StagesAt(FusedHeader* header) const;
  uint64_t TablesAt(FusedHeader* header) const;
  // Returns the most that one image of a row takes; 0 if no view resamples.
  uint64_t MostTableBytes() const;

  FusedLimits limits_;
  size_t values_ = 0;     // of a row
  uint32_t encoded_ = 0;  // the reader's output that is decoded
  std::vector<StoredValue> stored_;
  std::vector<Tensor> shapes_;  // of the values; without data
  bool gray_ = false, orient_ = true, dali_ = false, reduces_ = false;
  bool bgr_ = false;                // channels are taken backwards
  std::vector<FusedChain> chains_;  // in the order in which the CPU runs them
  std::vector<FusedImage> views_;
  bool has_partner_ = false, has_own_sizes_ = false;
  OfBoth<bool> decodes_;
  OfBoth<std::vector<Step>> host_steps_;
  std::vector<FusedField> fields_;  // as in the block: the schema's, and heads
  size_t fields_of_schema_ = 0;
  // read by stages; their fields follow the schema's
  std::vector<StageTensor> heads_;
  std::unique_ptr<StageProgram> stages_;
  uint64_t constants_at_ = 0;  // of the stages, in the prefix
  std::vector<uint32_t> field_of_output_;
  std::vector<uint32_t> output_values_;
  uint32_t host_stride_ = 0;
  // The common begin of every block: the header of no rows, views, fields,
  // tables.
  FusedHeader header_;
  uint32_t strips_ = 0;  // of the largest view
  std::vector<std::byte> prefix_;
};

}  // namespace leat::worker
