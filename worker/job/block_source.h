// SPDX-License-Identifier: Apache-2.0
//
// BlockSource: a dataset whose index is in blocks; only the blocks that rows
// need are held (worker/job/index_cache.h).
//
// The head and any one block open as a source of that block's samples. So
// sample 70 of an index whose blocks have 50 and 30 samples is sample 20 of
// block 1's source. A reader that walks its files several times over (`repeat`)
// has a multiple of the blocks' samples: sample i is record i mod records.
//
// An arrangement (worker/source/arranged/) has blocks, too: each opens as a
// source over the base.
//
// Reads wait for blocks, and are called by threads that may wait. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/job.h"
#include "worker/job/index_cache.h"
#include "worker/source/source.h"

namespace leat::worker {

class BlockSource final : public Source {
 public:
  // `blocks`: those of `dataset`, checked by CheckIndexBlocks, with samples.
  // `head`: the bytes of the first. `base`: the opened base of an arrangement;
  // nullptr: the dataset is none.
  BlockSource(Node reader, const DatasetInfo& dataset,
              std::vector<IndexBlock> blocks, std::string head,
              const SourceLimits& limits, std::shared_ptr<IndexCache> cache,
              std::shared_ptr<const Source> base = nullptr);
  ~BlockSource() override;

  uint64_t num_samples() const override { return num_samples_; }
  uint64_t RecordOf(uint64_t sample) const override;
  absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const override;
  uint64_t num_records() const override {
    return own_records_ ? first_.back() : base_->num_records();
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override;
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override;
  // Counts the samples that are in the block of the first, if it is here.
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override;
  const Digest& fingerprint() const override { return fingerprint_; }
  // Without its path if the block is not here.
  std::string Describe(uint64_t sample) const override;
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override;
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override;
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override;
  // kUnimplemented: no format with columns has its index in blocks.
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string> names) const override;
  bool waits() const override { return true; }

 private:
  // Returns the index of the sample's block in `blocks_`.
  size_t BlockOf(uint64_t sample) const;
  uint64_t Local(uint64_t sample, size_t block) const {
    return sample % first_.back() - first_[block - 1];
  }
  // Returns how many of `samples`, from the first on, are in its block.
  size_t Together(std::span<const uint64_t> samples) const;
  absl::StatusOr<std::shared_ptr<const Source>> Get(size_t block) const;
  absl::StatusOr<std::shared_ptr<const Source>> Open(
      const std::string& bytes) const;

  const Node reader_;
  const std::string name_;
  const Digest fingerprint_;
  const uint64_t num_samples_;
  const std::shared_ptr<const Source> base_;
  const Digest base_fingerprint_;
  // True if records have the samples' numbers, and not those of the base.
  const bool own_records_;
  const std::vector<IndexBlock> blocks_;  // the first is the head
  const std::string head_;
  SourceLimits limits_;
  const std::shared_ptr<IndexCache> cache_;  // shared with the job table
  const uint64_t number_;                    // in the cache
  // The first record of block i + 1; the last entry: all records.
  std::vector<uint64_t> first_;
};

}  // namespace leat::worker
