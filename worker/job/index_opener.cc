// SPDX-License-Identifier: Apache-2.0
#include "worker/job/index_opener.h"

#include <optional>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/job/record_reader.h"
#include "worker/source/arranged/arranged_source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

// A dataset that cannot be opened here may be open elsewhere: this must not be
// a stream error that ends its consumer's job. A malformed index is one.
absl::Status OfOpening(const absl::Status& status) {
  const std::optional<Fault> fault = FaultOf(status);
  if (!fault.has_value() || fault == Fault::kSample) return status;
  return WithFault(Unavailable("{}", Message(status)), *fault);
}

// Returns whether these are the bytes of the blocks, one after the other.
bool AreOf(std::span<const IndexBlock> blocks, std::string_view bytes) {
  for (const IndexBlock& block : blocks) {
    if (block.bytes > bytes.size() ||
        HashOf(bytes.substr(0, block.bytes)) != block.sha256)
      return false;
    bytes.remove_prefix(block.bytes);
  }
  return bytes.empty();
}

// Returns the source together with the storage that it reads by.
std::shared_ptr<const Source> WithStorage(
    std::shared_ptr<const Storage> storage,
    std::shared_ptr<const Source> source) {
  struct Both {
    std::shared_ptr<const Storage> storage;
    std::shared_ptr<const Source> source;  // ends first
  };
  auto both =
      std::make_shared<Both>(Both{std::move(storage), std::move(source)});
  const Source* const at = both->source.get();
  return {std::move(both), at};
}

}  // namespace

// An index with one block beside its head is held as long as its source: a
// small dataset never waits for it again.
absl::StatusOr<std::shared_ptr<const Source>> IndexOpener::OpenBlocks(
    const DatasetInfo& dataset, const Node& reader, const SourceLimits& limits,
    std::shared_ptr<const Source> base, FetchedBlocks index) const {
  const absl::StatusOr<bool> checked =
      CheckIndexBlocks(index.blocks, dataset.shards.num_samples());
  if (!checked.ok())
    return DataLoss("dataset {}: {}", dataset.name, Message(checked.status()));
  if (IndexIdentity(dataset.fingerprint, dataset.shards, index.blocks) !=
      index.identity)
    return DataLoss("dataset {}: its blocks are not those of its index",
                    dataset.name);
  const bool by_block = *checked && index.blocks.size() > 2;
  std::string bytes = std::move(index.bytes);
  if (by_block || !AreOf(index.blocks, bytes)) {
    ASSIGN_OR_RETURN(
        bytes,
        FetchWhole(
            dataset,
            std::span(index.blocks).first(by_block ? 1 : index.blocks.size())));
  }
  if (by_block)
    return std::make_shared<const BlockSource>(
        reader, dataset, std::move(index.blocks), std::move(bytes), limits,
        uses_.cache, std::move(base));
  if (base != nullptr)
    return OpenArranged(bytes,
                        {.source = base,
                         .fingerprint = StoredDataset(dataset).fingerprint,
                         .limits = limits},
                        dataset.fingerprint);
  absl::StatusOr<std::shared_ptr<const Source>> opened =
      OpenSource(reader, bytes, limits);
  if (!opened.ok()) return OfOpening(opened.status());
  return opened;
}

absl::StatusOr<std::string> IndexOpener::FetchWhole(
    const DatasetInfo& dataset, std::span<const IndexBlock> blocks) const {
  if (TotalBytes(blocks) > uses_.limits.max_index_bytes)
    return ResourceExhausted(
        "the index of dataset {} has {} bytes: the limit "
        "is {}",
        dataset.name, TotalBytes(blocks), uses_.limits.max_index_bytes);
  std::string whole;
  whole.reserve(TotalBytes(blocks));
  for (const IndexBlock& block : blocks) {
    const absl::StatusOr<std::string> bytes =
        FetchWholeBlock(uses_.fetcher, block,
                        Clock::Real().Now() + uses_.block_timeout, pause_);
    if (!bytes.ok())  // without a fault: the load is tried again
      return Unavailable("{}", Message(bytes.status()));
    whole += *bytes;
  }
  return whole;
}

absl::StatusOr<std::shared_ptr<const Source>> IndexOpener::Open(
    const DatasetInfo& dataset, const Node& reader,
    std::shared_ptr<const Source> base,
    std::optional<FetchedBlocks> index) const {
  SourceLimits limits = uses_.limits;
  std::shared_ptr<const Storage> storage;
  if (limits.storage != nullptr)
    storage = limits.storage->ForDataset(
        DatasetKeyOf(dataset.fingerprint, reader), dataset.name);
  limits.storage = storage.get();
  if (!index) {
    const DatasetInfo* const only = &dataset;
    ASSIGN_OR_RETURN(index,
                     std::move(uses_.fetcher->FetchBlocks({&only, 1}).front()));
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<const Source> source,
      OpenBlocks(dataset, reader, limits, std::move(base), *std::move(index)));
  if (source->fingerprint() != dataset.fingerprint)
    return DataLoss("dataset {}: the index is not that of its fingerprint",
                    dataset.name);
  return WithStorage(std::move(storage), std::move(source));
}

}  // namespace leat::worker
