// SPDX-License-Identifier: Apache-2.0
//
// ItemWriter writes the index of an arrangement from the samples that it
// chooses: it makes items of them, cuts these into blocks, and hashes them all.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/plan/passed_over.h"
#include "core/plan/selection.h"
#include "core/status.h"
#include "leat/stored/v1/indexes.pb.h"
#include "worker/source/arranged/chosen_samples.h"
#include "worker/source/index_blob.h"

namespace leat::worker {

class ItemWriter {
 public:
  virtual ~ItemWriter() = default;
  // Writes the head: the arrangement's text, and the base's fingerprint.
  virtual absl::Status Begin(const std::string& text, const Digest& base) = 0;
  // Takes the next sample of the base.
  virtual absl::Status Add(uint64_t sample) = 0;
  // Returns the index, or "" if it went to SourceLimits::blocks.
  virtual absl::StatusOr<std::string> Finish() = 0;

  virtual uint64_t items() const = 0;
  virtual uint64_t chosen() const = 0;  // samples
  // Returns the hash of all items. REQUIRES: called once, last.
  virtual Digest TakeDigest() = 0;
  virtual std::vector<PassedOver> TakePassedOver() { return {}; }
  virtual std::vector<Group> TakeGroups() { return {}; }
};

// Writes the samples themselves (chosen_samples.h).
class ChosenWriter final : public ItemWriter {
 public:
  explicit ChosenWriter(const SourceLimits& limits)
      : blob_(limits),
        in_blocks_(limits.blocks != nullptr),
        // A message has more than its gaps.
        block_bytes_(limits.blocks == nullptr
                         ? std::numeric_limits<uint64_t>::max()
                         : std::max<uint64_t>(limits.block_bytes, 64) - 32) {}

  absl::Status Begin(const std::string& text, const Digest& base) override {
    stored::v1::ArrangedHead head;
    head.set_text(text);
    head.set_base_fingerprint(BytesOf(base));
    return blob_.Add(head);
  }
  absl::Status Add(uint64_t sample) override {
    ChosenSamples::Append(sample, std::exchange(before_, sample), &gaps_);
    ++in_block_;
    ++items_;
    hashed_.push_back(sample);
    if (hashed_.size() == kHashedAtATime) HashMore();
    return gaps_.size() < block_bytes_ ? absl::OkStatus() : EndBlock();
  }
  absl::StatusOr<std::string> Finish() override {
    if (in_block_ > 0) RETURN_IF_ERROR(EndBlock());
    HashMore();
    return blob_.Finish();
  }

  uint64_t items() const override { return items_; }
  uint64_t chosen() const override { return items_; }
  Digest TakeDigest() override { return hash_.Finish(); }

 private:
  static constexpr size_t kHashedAtATime = 8192;

  void HashMore() {
    hash_.Update(std::as_bytes(std::span(hashed_)));
    hashed_.clear();
  }
  absl::Status EndBlock() {
    stored::v1::ChosenSamples block;
    block.set_samples(in_block_);
    block.set_gaps(std::exchange(gaps_, {}));
    before_ = 0;
    RETURN_IF_ERROR(blob_.Add(block, std::exchange(in_block_, 0)));
    // A block has one message, also where two would fit.
    return in_blocks_ ? blob_.Finish().status() : absl::OkStatus();
  }

  BlobWriter blob_;
  const bool in_blocks_;
  const uint64_t block_bytes_;
  Sha256 hash_;
  std::vector<uint64_t> hashed_;  // not yet
  std::string gaps_;
  uint64_t before_ = 0, in_block_ = 0, items_ = 0;
};

}  // namespace leat::worker
