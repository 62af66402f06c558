// SPDX-License-Identifier: Apache-2.0
#include "server/calls/list_blocks.h"

#include <algorithm>
#include <string>
#include <variant>

#include "core/pipeline/long_list.h"
#include "core/plan/index_blocks.h"
#include "core/status.h"

namespace leat::server {
namespace {

constexpr int kMaxListBlocksToFind = 1024;

absl::StatusOr<IndexBlock> ListBlockFrom(const std::string& sha256,
                                         uint64_t bytes) {
  IndexBlock block;
  if (sha256.size() != block.sha256.size())
    return InvalidArgument("the sha256 of a block has {} bytes: want {}",
                           sha256.size(), block.sha256.size());
  if (bytes == 0 || bytes > kListBlockBytes)
    return InvalidArgument("a block of a list has {} bytes: want 1 to {}",
                           bytes, kListBlockBytes);
  std::copy(sha256.begin(), sha256.end(), block.sha256.begin());
  block.bytes = bytes;
  return block;
}

}  // namespace

absl::Status ListBlocks::Find(const v1::FindListBlocksRequest& request, Now now,
                              v1::FindListBlocksResponse* response) {
  if (request.blocks_size() > kMaxListBlocksToFind)
    return InvalidArgument("{} blocks: want at most {}", request.blocks_size(),
                           kMaxListBlocksToFind);
  for (const v1::ListBlock& each : request.blocks()) {
    ASSIGN_OR_RETURN(const IndexBlock block,
                     ListBlockFrom(each.sha256(), each.bytes()));
    response->add_present(coordinator_->FindBlock(block, now));
  }
  return absl::OkStatus();
}

absl::Status ListBlocks::Take(uint64_t bytes, Now now) {
  MutexLock lock(&mu_);
  if (now.mono >= window_ends_) {
    window_ends_ = now.mono + config_.window;
    new_bytes_ = 0;
  }
  if (bytes > config_.max_new_bytes - new_bytes_)
    return ResourceExhausted(
        "lists of {} bytes were brought lately: the limit is {} in {} s; try "
        "again later, or let the reader read the list from a file",
        new_bytes_, config_.max_new_bytes,
        std::chrono::duration_cast<std::chrono::seconds>(config_.window)
            .count());
  new_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status ListBlocks::Put(const v1::PutListBlockRequest& request, Now now) {
  ASSIGN_OR_RETURN(const IndexBlock block,
                   ListBlockFrom(request.sha256(), request.bytes().size()));
  if (HashOf(request.bytes()) != block.sha256)
    return DataLoss("block {} of a list arrived damaged: it has another hash",
                    ToHex(block.sha256));
  if (coordinator_->FindBlock(block, now)) return absl::OkStatus();
  RETURN_IF_ERROR(Take(block.bytes, now));
  return coordinator_->PutBlock(block, request.bytes(), now);
}

absl::Status ListBlocks::CheckThere(const Graph& pipeline, Now now) {
  for (const Node& node : pipeline.nodes)
    for (const auto& [name, value] : node.args) {
      const auto* const list = std::get_if<LongList>(&value);
      if (list == nullptr) continue;
      for (size_t i = 0; i < list->blocks.size(); ++i)
        if (!coordinator_->FindBlock(
                {.sha256 = list->blocks[i], .bytes = BlockBytes(*list, i)},
                now))
          return DataLoss(
              "{}: argument {}: block {} of a list of {} entries is not there",
              node.op, name, ToHex(list->blocks[i]), list->count);
    }
  return absl::OkStatus();
}

}  // namespace leat::server
