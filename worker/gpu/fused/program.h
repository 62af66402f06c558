// SPDX-License-Identifier: Apache-2.0
//
// FusedProgram: a checked pipeline compiled for the fused kernel.
//
// There is one decode, of whose value there are views: what chains of geometric
// operators make of it (as RowProgram fuses them); and from there any tree of
// normalize, cast and transpose. This is the fused kernel's. Other operators on
// pixels are stages behind it (stages/), which read what it has written to the
// slot's memory; small values that no pixel has a part in are the host's.
//
// Where the row looks at its partner, what is upstream of `partner` is there
// twice: with the row's sample and with the partner's. Chains, stages and
// values of the host say whose they are; views, heads and places do not differ.
//
// Views of a size that is the row's own are stages, too, since the fused kernel
// has one size for all rows. Immutable; thread-safe.
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
//   stages    brightness, normalize; what fields need of host and stages
//   fields    0 "image": a stage's; 1 "plain": view 0 and its tail; 2 "label":
//             a stage's, which copies the host's value; 3: head 0, behind the
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
    std::vector<std::vector<std::byte>> host;  // what those of the host borrow
  };
  ResampleTable horizontal, vertical;
  ScaledTable scaled_horizontal, scaled_vertical;
  DaliTable dali_across, dali_down;
  std::vector<View> chains;
  OfBoth<Sample> samples;
};

// What the kernel is asked to do at most; beyond, a row is for the CPU.
struct FusedLimits {
  // Resampling tables of an image, of all its views. 224 × 224 of a photo of 12
  // megapixels: 90 KiB with lanczos3, 30 KiB with linear.
  size_t max_table_bytes = size_t{256} << 10;
  // Pixels that one thread adds up one after the other: tens of milliseconds.
  uint64_t max_taps = uint64_t{1} << 21;
  // A row's share of the memory for values between stages: what those whose
  // size is the row's own may take.
  uint64_t value_bytes = uint64_t{256} << 10;
};

class FusedProgram {
 public:
  // kUnimplemented: cannot be fused (names the node and its operator): the CPU
  // computes such a job's rows.
  static absl::StatusOr<std::unique_ptr<FusedProgram>> Compile(
      const CheckedGraph& graph, uint64_t seed, const FusedLimits& limits = {});

  // How the image must be decoded: gray or RGB; whether EXIF turns it (already
  // taken care of by PrepareRow).
  bool gray() const { return gray_; }
  bool orient() const { return orient_; }
  // The host decodes the image, in every class, at the scale that PrepareRow
  // chooses by the row's views.
  bool reduces() const { return reduces_; }
  int channels() const { return gray_ ? 1 : 3; }
  // Whether a view is resampled by rule "dali", which knows no halved images.
  bool dali() const { return dali_; }
  // Views of the images: 1 unless they are looked at in several ways.
  size_t views() const { return views_.size(); }
  // The row looks at its partner, which is prepared before it.
  bool has_partner() const { return has_partner_; }
  // Values have sizes of the row's own. A row that has no room for them, by
  // FusedLimits, is the CPU's.
  bool has_own_sizes() const { return has_own_sizes_; }
  uint64_t most_elements() const { return stages_->most_elements(); }
  // There are views of the image, so that it is decoded.
  bool decodes(Whose whose) const { return decodes_[whose]; }

  size_t fields() const { return fields_of_schema_; }
  // Whether kernels write the field; otherwise it is a value of the host's.
  bool from_pixels(size_t field) const {
    return OfOutput(field).kind != FusedKind::kHost;
  }

  // What is to be decoded of a row.
  std::span<const std::byte> EncodedOf(const RowInput& input) const {
    return input.fields[encoded_].bytes;
  }

  // Bytes of the block of `rows` rows, each with the most tables that the
  // limits allow. Under 4 GiB for any group that makes sense; larger ones are
  // refused by FusedGroup::Begin.
  uint64_t BlockBytes(size_t rows) const;
  // A bound on the tables of any row of stored images with sides up to
  // `max_side`, rounded up for the limits: to choose max_table_bytes by.
  uint64_t TableBytesBound(int64_t max_side) const;

  // The kernel and the launch for a group of `rows`.
  const char* kernel() const;
  size_t kernel_index() const;  // of kFusedKernels
  LaunchConfig launch(size_t rows) const;
  // The launches behind it, in order, and what they need of a slot's memory.
  size_t stages() const { return stages_->stages().size(); }
  StageLaunch stage(size_t stage, size_t rows) const;
  uint64_t ValueBytes(size_t rows) const { return stages_->ValueBytes(rows); }
  // The part of that memory that holds a uint32_t a row, from FaultsAt on,
  // which is to be set to 0 before the launches. A row whose word is not 0
  // behind them is for the CPU, which says what is wrong with it, if anything
  // is. 0 bytes: no row can fail so.
  uint64_t FaultBytes(size_t rows) const { return stages_->FaultBytes(rows); }
  uint64_t FaultsAt(size_t rows) const { return stages_->FaultsAt(rows); }
  // Puts all of them on the queue. `block`: the device's copy.
  absl::Status Launch(size_t rows, DeviceAddress block,
                      DeviceQueue* queue) const;

 private:
  friend class FusedGroup;
  friend class FusedCompiler;

  // An output of the reader that is the host's.
  struct StoredValue {
    uint32_t output;
    uint32_t value;  // its index among the row's values
    DType dtype;
    size_t bytes;
  };

  FusedProgram() = default;
  // Lays out what every block begins with, once all else is there. `tables`:
  // where the fields' places count from.
  void LayOut(std::vector<ViewField> fields,
              const std::vector<std::byte>& tables);
  Whose WhoseView(size_t view) const {
    return chains_[views_[view].chain].whose;
  }
  const FusedField& OfOutput(size_t output) const {
    return fields_[field_of_output_[output]];
  }
  // Offset of what the stages read; then of the first row's tables, which those
  // of a group's other rows follow.
  uint64_t StagesAt(FusedHeader* header) const;
  uint64_t TablesAt(FusedHeader* header) const;
  // The most that one image of a row takes; 0 where no view resamples.
  uint64_t MostTableBytes() const;

  uint64_t seed_ = 0;
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
  std::vector<StageTensor> heads_;  // that stages read; fields behind those
  std::unique_ptr<StageProgram> stages_;
  uint64_t constants_at_ = 0;  // of the stages, in the prefix
  std::vector<uint32_t> field_of_output_;
  std::vector<uint32_t> output_values_;
  uint32_t host_stride_ = 0;
  // How every block begins: the header of no rows, views, fields, tables.
  FusedHeader header_;
  uint32_t strips_ = 0;  // of the largest view
  std::vector<std::byte> prefix_;
};

}  // namespace leat::worker
