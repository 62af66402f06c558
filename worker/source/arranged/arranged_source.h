// SPDX-License-Identifier: Apache-2.0
//
// ArrangedSource: an arrangement's samples, whose records are those of the
// base. Sample i is the base's sample `chosen.At(i)`, and its record has the
// base's number, so that a subset, its complement and the whole share what is
// cached.
//
// It is opened of the whole index, or of the head and one block, which has the
// samples of that block alone (worker/job/block_source.h).
//
// Immutable; thread-safe, as the base is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/arranged/chosen_samples.h"
#include "worker/source/source.h"

namespace leat::worker {

// The dataset that is arranged: its opened index, and what identifies it.
struct ArrangedBase {
  std::shared_ptr<const Source> source;
  Digest fingerprint{};
  SourceLimits limits{};
};

// Opens what Arrange made (arrange.h). `fingerprint`: the arranged dataset's.
// kDataLoss: a malformed index, or one of another base.
absl::StatusOr<std::unique_ptr<Source>> OpenArranged(std::string_view blob,
                                                     const ArrangedBase& base,
                                                     const Digest& fingerprint);

class ArrangedSource final : public Source {
 public:
  ArrangedSource(std::shared_ptr<const Source> base, ChosenSamples chosen,
                 const Digest& fingerprint)
      : base_(std::move(base)),
        chosen_(std::move(chosen)),
        fingerprint_(fingerprint) {}

  uint64_t num_samples() const override { return chosen_.size(); }
  uint64_t num_records() const override { return base_->num_records(); }
  uint64_t RecordOf(uint64_t sample) const override {
    return base_->RecordOf(chosen_.At(sample));
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return base_->Read(chosen_.At(sample));
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    return base_->ReadMany(OfBase(samples));
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override {
    return base_->Nearby(OfBase(samples), limits);
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return base_->Describe(chosen_.At(sample));
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return base_->Locate(chosen_.At(sample));
  }
  bool waits() const override { return base_->waits(); }

 private:
  std::vector<uint64_t> OfBase(std::span<const uint64_t> samples) const {
    std::vector<uint64_t> own;
    own.reserve(samples.size());
    for (const uint64_t sample : samples) own.push_back(chosen_.At(sample));
    return own;
  }

  const std::shared_ptr<const Source> base_;
  const ChosenSamples chosen_;
  const Digest fingerprint_;
};

}  // namespace leat::worker
