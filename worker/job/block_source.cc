// SPDX-License-Identifier: Apache-2.0
#include "worker/job/block_source.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "worker/source/arranged/arranged_source.h"

namespace leat::worker {

BlockSource::BlockSource(Node reader, const DatasetInfo& dataset,
                         std::vector<IndexBlock> blocks, std::string head,
                         const SourceLimits& limits,
                         std::shared_ptr<IndexCache> cache,
                         std::shared_ptr<const Source> base)
    : reader_(std::move(reader)),
      name_(dataset.name),
      fingerprint_(dataset.fingerprint),
      num_samples_(dataset.shards.num_samples()),
      base_(std::move(base)),
      base_fingerprint_(StoredDataset(dataset).fingerprint),
      own_records_(base_ == nullptr || PacksRows(dataset.arrangement)),
      blocks_(std::move(blocks)),
      head_(std::move(head)),
      limits_(limits),
      cache_(std::move(cache)),
      number_(cache_->NewSource()) {
  limits_.one_of_many = true;
  first_.push_back(0);
  for (size_t i = 1; i < blocks_.size(); ++i)
    first_.push_back(first_.back() + blocks_[i].samples);
}

BlockSource::~BlockSource() { cache_->Forget(number_); }

size_t BlockSource::BlockOf(uint64_t sample) const {
  const auto after =
      std::upper_bound(first_.begin(), first_.end(), sample % first_.back());
  return static_cast<size_t>(after - first_.begin());
}

uint64_t BlockSource::RecordOf(uint64_t sample) const {
  if (own_records_) return sample % first_.back();
  const size_t block = BlockOf(sample);
  const std::shared_ptr<const Source> source = cache_->Peek(number_, block);
  return source == nullptr ? kNoRecord : source->RecordOf(Local(sample, block));
}

absl::StatusOr<uint64_t> BlockSource::FindRecord(uint64_t sample) const {
  if (own_records_) return sample % first_.back();
  const size_t block = BlockOf(sample);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source, Get(block));
  return source->RecordOf(Local(sample, block));
}

absl::StatusOr<std::shared_ptr<const Source>> BlockSource::Open(
    const std::string& bytes) const {
  if (base_ == nullptr) return OpenSource(reader_, head_ + bytes, limits_);
  return OpenArranged(
      head_ + bytes,
      {.source = base_, .fingerprint = base_fingerprint_, .limits = limits_},
      fingerprint_);
}

absl::StatusOr<std::shared_ptr<const Source>> BlockSource::Get(
    size_t block) const {
  return cache_->Get(
      number_, block, blocks_[block],
      [&](const std::string& bytes)
          -> absl::StatusOr<std::shared_ptr<const Source>> {
        ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, Open(bytes));
        const uint64_t wanted =
            blocks_[block].samples * (num_samples_ / first_.back());
        if (source->num_samples() == wanted) return source;
        return DataLoss(
            "the index of dataset {} says that its block {} has {} "
            "samples, and the block has {}",
            name_, block, wanted, source->num_samples());
      });
}

absl::StatusOr<StoredSample> BlockSource::Read(uint64_t sample) const {
  const size_t block = BlockOf(sample);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source, Get(block));
  return source->Read(Local(sample, block));
}

size_t BlockSource::Together(std::span<const uint64_t> samples) const {
  const size_t block = BlockOf(samples.front());
  size_t count = 1;
  while (count < samples.size() && BlockOf(samples[count]) == block) ++count;
  return count;
}

std::vector<absl::StatusOr<StoredSample>> BlockSource::ReadMany(
    std::span<const uint64_t> samples) const {
  std::vector<absl::StatusOr<StoredSample>> stored;
  stored.reserve(samples.size());
  while (!samples.empty()) {
    const size_t count = Together(samples), block = BlockOf(samples.front());
    const absl::StatusOr<std::shared_ptr<const Source>> source = Get(block);
    std::vector<uint64_t> locals;
    for (const uint64_t sample : samples.first(count))
      locals.push_back(Local(sample, block));
    if (source.ok()) {
      for (absl::StatusOr<StoredSample>& each : (*source)->ReadMany(locals))
        stored.push_back(std::move(each));
    } else {
      stored.resize(stored.size() + count, source.status());
    }
    samples = samples.subspan(count);
  }
  return stored;
}

std::vector<absl::StatusOr<StoredPart>> BlockSource::ReadParts(
    std::span<const RecordPart> parts) const {
  std::vector<absl::StatusOr<StoredPart>> stored;
  stored.reserve(parts.size());
  while (!parts.empty()) {
    const size_t block = BlockOf(parts.front().sample);
    std::vector<RecordPart> locals;
    for (const RecordPart& part : parts) {
      if (BlockOf(part.sample) != block) break;
      locals.push_back({Local(part.sample, block), part.begin, part.count});
    }
    const absl::StatusOr<std::shared_ptr<const Source>> source = Get(block);
    if (source.ok()) {
      for (absl::StatusOr<StoredPart>& each : (*source)->ReadParts(locals))
        stored.push_back(std::move(each));
    } else {
      stored.resize(stored.size() + locals.size(), source.status());
    }
    parts = parts.subspan(locals.size());
  }
  return stored;
}

size_t BlockSource::Nearby(std::span<const uint64_t> samples,
                           const NearbyLimits& limits) const {
  const size_t block = BlockOf(samples.front());
  const std::shared_ptr<const Source> source = cache_->Peek(number_, block);
  if (source == nullptr) return 1;
  std::vector<uint64_t> locals;
  for (const uint64_t sample : samples.first(Together(samples)))
    locals.push_back(Local(sample, block));
  return source->Nearby(locals, limits);
}

std::string BlockSource::Describe(uint64_t sample) const {
  const size_t block = BlockOf(sample);
  if (const auto source = cache_->Peek(number_, block))
    return source->Describe(Local(sample, block));
  return fmt::format("sample {} of {}", sample, name_);
}

absl::StatusOr<int64_t> BlockSource::IndexedColumn(std::string_view column,
                                                   uint64_t sample) const {
  const size_t block = BlockOf(sample);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source, Get(block));
  return source->IndexedColumn(column, Local(sample, block));
}

absl::StatusOr<std::unique_ptr<StoredColumns>> BlockSource::OpenColumns(
    std::span<const std::string>) const {
  return Unimplemented("records have no columns");
}

absl::StatusOr<RecordPlace> BlockSource::Locate(uint64_t sample) const {
  const size_t block = BlockOf(sample);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source, Get(block));
  return source->Locate(Local(sample, block));
}

absl::StatusOr<std::optional<RowDocuments>> BlockSource::DocumentsOf(
    uint64_t sample, uint64_t first, uint64_t most) const {
  const size_t block = BlockOf(sample);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source, Get(block));
  return source->DocumentsOf(Local(sample, block), first, most);
}

}  // namespace leat::worker
