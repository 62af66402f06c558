// SPDX-License-Identifier: Apache-2.0
//
// NumberedSource is a dataset's source whose samples have the numbers that a
// job gives them: a mixture numbers the samples of one dataset after those of
// another, so sample `first + i` of the job is sample i of the dataset. Records
// keep their numbers, which caches and other workers know.
//
// Thread-safe, as the source is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/status.h"
#include "worker/source/source.h"

namespace leat::worker {

class NumberedSource final : public Source {
 public:
  // Returns `source` itself if `first` is 0.
  static std::shared_ptr<const Source> Of(std::shared_ptr<const Source> source,
                                          uint64_t first) {
    if (first == 0) return source;
    return std::make_shared<const NumberedSource>(std::move(source), first);
  }
  NumberedSource(std::shared_ptr<const Source> source, uint64_t first)
      : source_(std::move(source)), first_(first) {}

  // Returns how many samples the dataset has: the last is number
  // first + num_samples() - 1.
  uint64_t num_samples() const override { return source_->num_samples(); }
  uint64_t RecordOf(uint64_t sample) const override {
    return source_->RecordOf(sample - first_);
  }
  absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const override {
    return source_->FindRecord(sample - first_);
  }
  uint64_t num_records() const override { return source_->num_records(); }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return source_->Read(sample - first_);
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    return source_->ReadMany(Own(samples));
  }
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override {
    std::vector<RecordPart> own(parts.begin(), parts.end());
    for (RecordPart& part : own) part.sample -= first_;
    return source_->ReadParts(own);
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override {
    return source_->Nearby(Own(samples), limits);
  }
  const Digest& fingerprint() const override { return source_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return source_->Describe(sample - first_);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return source_->Locate(sample - first_);
  }
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override {
    return source_->DocumentsOf(sample - first_, first, most);
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    return source_->IndexedColumn(column, sample - first_);
  }
  // kUnimplemented: conditions are about a dataset, before a job numbers it.
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string>) const override {
    return Unimplemented("the samples have the numbers of a job");
  }
  bool waits() const override { return source_->waits(); }

 private:
  std::vector<uint64_t> Own(std::span<const uint64_t> samples) const {
    std::vector<uint64_t> own;
    own.reserve(samples.size());
    for (const uint64_t sample : samples) own.push_back(sample - first_);
    return own;
  }

  const std::shared_ptr<const Source> source_;
  const uint64_t first_;
};

}  // namespace leat::worker
