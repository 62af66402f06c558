// SPDX-License-Identifier: Apache-2.0
//
// MappedSource passes calls on to another source, whose samples have other
// numbers: sample i is the base's sample `map.At(i)`. Records keep the base's
// numbers, which caches and other workers know.
//
// Thread-safe, as the base is.
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
#include "worker/source/source.h"

namespace leat::worker {

template <class Map>
class MappedSource : public Source {
 public:
  MappedSource(std::shared_ptr<const Source> base, Map map)
      : base_(std::move(base)), map_(std::move(map)) {}

  uint64_t num_records() const override { return base_->num_records(); }
  uint64_t RecordOf(uint64_t sample) const override {
    return base_->RecordOf(map_.At(sample));
  }
  absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const override {
    return base_->FindRecord(map_.At(sample));
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return base_->Read(map_.At(sample));
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    return base_->ReadMany(OfBase(samples));
  }
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override {
    std::vector<RecordPart> own(parts.begin(), parts.end());
    for (RecordPart& part : own) part.sample = map_.At(part.sample);
    return base_->ReadParts(own);
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override {
    return base_->Nearby(OfBase(samples), limits);
  }
  std::string Describe(uint64_t sample) const override {
    return base_->Describe(map_.At(sample));
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return base_->Locate(map_.At(sample));
  }
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override {
    return base_->DocumentsOf(map_.At(sample), first, most);
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    return base_->IndexedColumn(column, map_.At(sample));
  }
  bool waits() const override { return base_->waits(); }

 protected:
  const std::shared_ptr<const Source> base_;
  const Map map_;

 private:
  std::vector<uint64_t> OfBase(std::span<const uint64_t> samples) const {
    std::vector<uint64_t> own;
    own.reserve(samples.size());
    for (const uint64_t sample : samples) own.push_back(map_.At(sample));
    return own;
  }
};

}  // namespace leat::worker
