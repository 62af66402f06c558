// SPDX-License-Identifier: Apache-2.0
//
// The blocks of indexes and of long lists: uploads by listings and clients,
// reads by workers, and the removal of unreferenced blocks.
#include <algorithm>
#include <set>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/parts.h"
#include "server/state/list_blocks.h"

namespace leat::server {
namespace {

constexpr Duration kCollectEvery = std::chrono::hours(1);

// Removes unreferenced blocks that are older than `before`. It is a Write
// because it waits for the disk, so the writing thread does it. A listing in
// progress puts or finds its blocks within keep_blocks, or uploads them again.
class CollectTransaction final : public Transaction {
 public:
  CollectTransaction(const Parts* parts, BlockStore* blocks, WallTime before)
      : parts_(parts), blocks_(blocks), before_(before) {}

  absl::StatusOr<std::optional<Event>> Decide(
      DeferredActions* deferred) override {
    deferred->Add([blocks = blocks_, live = Live(), before = before_] {
      const absl::StatusOr<uint64_t> removed = blocks->Collect(live, before);
      if (!removed.ok())
        LOG_WARN("blocks.not_collected {}", Message(removed.status()));
      else if (*removed > 0)
        LOG_INFO("blocks.collected removed={} kept={}", *removed, live.size());
    });
    return std::nullopt;
  }
  void Applied(DeferredActions*) override {}
  void Failed(const absl::Status&, DeferredActions*) override {}

 private:
  std::set<Digest> Live() const {
    ListBlocks blocks = parts_->state.BlocksInUse();
    for (const auto& [id, request] : parts_->datasets.indexing().requests()) {
      for (const auto& [name, value] : request.reader.args)
        if (const auto* list = std::get_if<LongList>(&value))
          AddBlocks(*list, &blocks);
      for (const IndexBlock& part : request.trail)
        blocks[part.sha256] = part.bytes;
    }
    std::set<Digest> live;
    for (const auto& [name, bytes] : blocks) live.insert(live.end(), name);
    return live;
  }

  const Parts* const parts_;
  BlockStore* const blocks_;
  const WallTime before_;
};

}  // namespace

absl::StatusOr<IndexBlocks> Coordinator::BlocksOf(
    std::string_view dataset_id) const {
  MutexLock lock(&mu_);
  const DatasetRecord* dataset = parts_->state.FindDataset(dataset_id);
  if (dataset == nullptr) return NotFound("no index of dataset {}", dataset_id);
  return IndexBlocks{dataset->blocks, dataset->index_sha256};
}

absl::StatusOr<std::string> Coordinator::ReadBlock(const Digest& name,
                                                   uint64_t offset, Now now) {
  absl::Status sound = offset == 0
                           ? store_->blocks().Check(name, /*again=*/false)
                           : absl::OkStatus();
  absl::StatusOr<std::string> bytes =
      sound.ok() ? store_->blocks().Read(name, offset, kIndexChunkBytes)
                 : std::move(sound);
  if (!bytes.ok()) NoteBlock(name, bytes.status(), /*lists=*/true, now);
  return bytes;
}

absl::Status Coordinator::DoubtBlock(const Digest& name, std::string_view text,
                                     Now now) {
  absl::Status sound = store_->blocks().Check(name, /*again=*/true);
  if (!sound.ok())
    NoteBlock(name, sound, /*lists=*/true, now);
  else if (!text.empty())
    NoteBlock(name,
              DataLoss("block {} is as it was listed, but a worker cannot use "
                       "it: {}",
                       ToHex(name), text),
              /*lists=*/false, now);
  return sound;
}

// Searches the datasets of a block without the lock, since there may be many
// blocks: only their lists are copied under it.
void Coordinator::NoteBlock(const Digest& name, const absl::Status& why,
                            bool lists, Now now) {
  struct Listed {
    std::string id;
    SharedBlocks blocks;
    std::optional<IndexBlock> look;
  };
  std::vector<Listed> datasets;
  {
    MutexLock lock(&mu_);
    if (parts_->damaged.Renew(name, now.mono)) return;
    for (const auto& [id, dataset] : parts_->state.datasets())
      datasets.push_back({id, dataset.blocks, dataset.look});
  }
  std::erase_if(datasets, [&](const Listed& each) {
    return !(each.look && each.look->sha256 == name) &&
           std::ranges::find(*each.blocks, name, &IndexBlock::sha256) ==
               each.blocks->end();
  });
  // A temporary shortage on this machine is not damage.
  lists = lists && (absl::IsDataLoss(why) || absl::IsNotFound(why));
  for (const Listed& each : datasets) {
    {
      DeferredActions deferred;
      MutexLock lock(&mu_);
      const DatasetRecord* dataset = parts_->state.FindDataset(each.id);
      if (dataset == nullptr) continue;
      if (!parts_->damaged.all().contains(each.id))
        parts_->announcer.Tell({"dataset.index_damaged",
                                "error",
                                {"dataset/" + dataset->info->name},
                                fmt::format("the index of dataset {}: {}",
                                            dataset->info->name, Message(why))},
                               &deferred);
      if (!parts_->damaged.Note(each.id, name, Message(why), lists, now.mono))
        continue;
    }
    RefreshDataset(each.id, now,
                   [this, id = each.id, now](const absl::Status& status) {
                     MutexLock lock(&mu_);
                     parts_->damaged.Listed(id, status, now.mono);
                   });
  }
}

absl::Status Coordinator::CheckBlock(const std::string& dataset_id,
                                     uint64_t request_id,
                                     const IndexBlock& block, Now now) {
  const uint64_t limit = std::min(config_.max_index_bytes, kMaxIndexBlockBytes);
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(parts_->datasets.Prolong(dataset_id, request_id, now));
  if (block.bytes == 0)
    return InvalidArgument("block {} is empty", ToHex(block.sha256));
  if (block.bytes > limit)
    return ResourceExhausted("block {} has {} bytes: the limit is {}",
                             ToHex(block.sha256), block.bytes, limit);
  return absl::OkStatus();
}

bool Coordinator::FindBlock(const IndexBlock& block, Now now) {
  const absl::Status found =
      store_->blocks().Find(block.sha256, block.bytes, now.wall);
  // If the block is missing, a listing uploads it.
  if (!found.ok() && !absl::IsNotFound(found))
    NoteBlock(block.sha256, found, /*lists=*/false, now);
  return found.ok();
}

absl::Status Coordinator::PutBlock(const IndexBlock& block,
                                   std::string_view bytes, Now now) {
  if (bytes.size() != block.bytes || HashOf(bytes) != block.sha256)
    return DataLoss("block {} arrived damaged: {} bytes of {}, or another hash",
                    ToHex(block.sha256), bytes.size(), block.bytes);
  RETURN_IF_ERROR(store_->blocks().Put(block.sha256, bytes, now.wall));
  DeferredActions deferred;
  MutexLock lock(&mu_);
  for (const std::string& id : parts_->damaged.Restored(block.sha256)) {
    const std::string dataset = parts_->state.NameOf(id);
    parts_->announcer.Tell(
        {"dataset.index_restored",
         "info",
         {"dataset/" + dataset},
         fmt::format("the index of dataset {} is whole again", dataset)},
        &deferred);
  }
  return absl::OkStatus();
}

absl::Status Coordinator::CheckArrived(const IndexHeader& header, Now now) {
  if (header.look && !FindBlock(*header.look, now))
    return DataLoss(
        "block {}, what the listing of dataset {} saw, is not there",
        ToHex(header.look->sha256), header.dataset_id);
  if (IndexIdentity(header.fingerprint, header.shards, header.blocks) !=
      header.index_sha256)
    return DataLoss("the index of dataset {} has not its header's identity",
                    header.dataset_id);
  for (const IndexBlock& block : header.blocks)
    if (!FindBlock(block, now))
      return DataLoss(
          "block {} of the index of dataset {}, of {} bytes, is not there",
          ToHex(block.sha256), header.dataset_id, block.bytes);
  return absl::OkStatus();
}

absl::Status Coordinator::NoteProgress(const IndexProgress& progress, Now now) {
  if (progress.trail && !FindBlock(*progress.trail, now))
    return InvalidArgument(
        "block {}, part {} of the trail of dataset {}, is not there",
        ToHex(progress.trail->sha256), progress.part, progress.dataset_id);
  MutexLock lock(&mu_);
  return parts_->datasets.NoteProgress(progress, now);
}

void Coordinator::CollectBlocks(Now now, DeferredActions* deferred) {
  if (now.mono < parts_->collect_at) return;
  parts_->collect_at = now.mono + kCollectEvery;
  parts_->damaged.Expire(now.mono);
  parts_->transactions.Enqueue(
      std::make_unique<CollectTransaction>(parts_.get(), &store_->blocks(),
                                           now.wall - config_.keep_blocks),
      deferred);
}

}  // namespace leat::server
