// SPDX-License-Identifier: Apache-2.0
//
// RowProgram: a checked pipeline compiled for the CPU; computes one row at a
// time.
//
// Operators that follow a decode and look at a window of it
// (random_resized_crop, crop, resize, flip) are fused into one partial decode;
// the bytes are those of decoding everything first. Only what the outputs need
// of a row is computed: where a sample's flag chooses between two values
// (`where`), the other one is not, nor is anything that only it needs.
// Immutable after Compile; Run is thread-safe, with a Scratch of its own for
// each thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "worker/image/image_formats.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

class ScratchBudget;
class WholeDecodes;

struct ImageLimits {
  uint64_t max_pixels = 100'000'000;  // of a stored image
  uint32_t max_side = 65'500;
  // Work, so that no file keeps a thread for long: scans of a JPEG, scans times
  // pixels of it, and what all strips or tiles of a TIFF hold.
  int max_scans = 64;
  uint64_t max_scan_pixels = 2'000'000'000;
  uint64_t max_unpacked_bytes = 2ull << 30;
  uint64_t max_scratch_bytes = 2ull << 30;  // of one row, on one thread
  // What a thread holds between rows, and a row may have without asking the
  // budget: an image of 40 megapixels.
  uint64_t kept_scratch_bytes = 128ull << 20;
  // The working memory of all threads beside that; null: unbounded. Outlives
  // every Scratch.
  ScratchBudget* budget = nullptr;
  // Counts the images that were to be reduced and have no scales; null: nobody
  // does. Outlives every Scratch.
  WholeDecodes* whole_decodes = nullptr;
  // The worker's own, where the rest is the release's.
  ImageFormats formats;
};

class FormKeeper;
class PartnerRow;

// One sample as stored: a field for each of the reader's outputs. Read only
// during Run.
struct RowInput {
  uint64_t epoch = 0;  // of the sample's own draws: of a stream, its pass
  uint64_t sample = 0;
  std::span<const StoredField> fields;
  // What a whole batch shares is drawn by these: the same in all rows of a
  // step.
  uint64_t step = 0;
  uint64_t step_epoch = 0;
  PartnerRow* partner =
      nullptr;  // of programs with `partner`; others ignore it
  // The row only fills the batch: where there is a kValidField, it says false.
  bool padding = false;
  // Who keeps forms of the sample's JPEG (jpeg_forms/form_keeper.h); null:
  // nobody.
  FormKeeper* forms = nullptr;
};

// The row of the same step that `partner` looks at.
class PartnerRow {
 public:
  using Compute = std::function<absl::Status(const RowInput& partner)>;

  virtual ~PartnerRow() = default;
  // The input of the partner's own sample, for who wants to look at it first:
  // whatever is wrong with it is With's to deal with. Valid until With is
  // called, and as long as this. Errors: why the sample cannot be read.
  virtual absl::StatusOr<RowInput> Input() = 0;
  // Calls `compute` with the partner's input: of its sample or, where that
  // turns out to be bad and the job says so, of what takes its place. Returns
  // what the last call did; what that was given stays valid as long as this.
  // Called at most once in a Run, and not if no value of the partner's is
  // needed.
  virtual absl::Status With(const Compute& compute) = 0;
};

// A thread's working memory: decoder, rows, coefficients. It stays from row to
// row; after a row that made it larger than kept_scratch_bytes it is freed, so
// that a few huge images do not keep memory on every thread.
class Scratch {
 public:
  explicit Scratch(const ImageLimits& limits);
  ~Scratch();
  struct State;
  State* state() { return state_.get(); }
  // Takes of the budget what the row lacked when it was tried before, or else,
  // if that is there at once, what the row before needed. Errors: as
  // ScratchBudget::Take's.
  absl::Status BeginRow();
  // Whether the row lacked working memory: it is to be computed again then.
  bool EndRow();

 private:
  std::unique_ptr<State> state_;
  uint64_t taken_ = 0;         // of the budget
  uint64_t taken_before_ = 0;  // by the row's last try
  uint64_t lacked_ = 0;        // what it needed in all
  uint64_t needed_ = 0;        // by the last row
};

// What a random operator draws for a row.
struct NodeDraw {
  uint32_t node = 0;
  // A number, a flag as 0 or 1; of a window y, x, height and width in pixels of
  // the image that it is cut from.
  std::vector<double> values;
  std::string text;     // of operations
  std::string unknown;  // why there is neither
};

class RowProgram {
 public:
  // kUnimplemented: an operator without a CPU kernel. `seed` is the job's.
  // `fuse` false: every operator by itself, whole images decoded; slow, with
  // the same bytes (for tests).
  static absl::StatusOr<std::unique_ptr<RowProgram>> Compile(
      const CheckedGraph& graph, uint64_t seed, bool fuse = true);
  ~RowProgram();

  // Computes a row: outputs[f] receives field f of the schema, exactly
  // row_bytes long, decoded straight into place. kDataLoss: a corrupt or
  // truncated image. kInvalidArgument: not an image that can be decoded (says
  // what it looks like). kResourceExhausted: over a limit (names it). What
  // `outputs` hold after an error is unspecified. May wait for working memory
  // and compute the row again (scratch_budget.h): errors of ScratchBudget::Take
  // too.
  absl::Status Run(const RowInput& input, Scratch& scratch,
                   std::span<const std::span<std::byte>> outputs) const;

  // What Run draws for this row, by node, in the order of nodes; also what it
  // draws in vain, because nothing needs it. Without fields in `input` all that
  // depends on the sample is unknown. No partner is looked at.
  std::vector<NodeDraw> Draws(const RowInput& input, Scratch& scratch) const;
  // Whether fields would make more of them known.
  bool draws_need_fields() const;

  struct State;

 private:
  explicit RowProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
