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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/status.h"
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
  absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const override {
    return base_->FindRecord(chosen_.At(sample));
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return base_->Read(chosen_.At(sample));
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    return base_->ReadMany(OfBase(samples));
  }
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override {
    std::vector<RecordPart> own(parts.begin(), parts.end());
    for (RecordPart& part : own) part.sample = chosen_.At(part.sample);
    return base_->ReadParts(own);
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
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override {
    return base_->DocumentsOf(chosen_.At(sample), first, most);
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    return base_->IndexedColumn(column, chosen_.At(sample));
  }
  // kUnimplemented: conditions choose among the samples of the base.
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string>) const override {
    return Unimplemented("the samples are those of an arrangement");
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
