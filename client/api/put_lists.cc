// SPDX-License-Identifier: Apache-2.0
#include "client/api/put_lists.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/pipeline/long_list.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr size_t kBlocksACall = 1024;

struct Block {
  std::string sha256;
  std::string_view bytes;
};

// Returns each block once, in order.
std::vector<Block> BlocksIn(const Graph& pipeline) {
  std::vector<Block> blocks;
  std::set<Digest> seen;
  for (const Node& node : pipeline.nodes)
    for (const auto& [name, value] : node.args) {
      const auto* const list = std::get_if<LongList>(&value);
      if (list == nullptr || list->values == nullptr) continue;
      for (size_t i = 0; i < list->blocks.size(); ++i)
        if (seen.insert(list->blocks[i]).second)
          blocks.push_back({{list->blocks[i].begin(), list->blocks[i].end()},
                            BlockOf(*list, i)});
    }
  return blocks;
}

// An older coordinator has no such method.
absl::Status TooOld(const absl::Status& status) {
  if (!absl::IsUnimplemented(status) && !absl::IsFailedPrecondition(status))
    return status;
  return FailedPrecondition(
      "a list of more than {} numbers or {} texts wants a coordinator that "
      "takes lists in blocks, or a reader that reads the list from a file: {}",
      kMaxShortNumbers, kMaxShortTexts, Message(status));
}

}  // namespace

bool HasLists(const Graph& pipeline) { return !BlocksIn(pipeline).empty(); }

absl::Status PutLists(const Graph& pipeline, const Retry& retry,
                      absl::Time deadline, Control* control) {
  using Stub = v1::CoordinatorService::Stub;
  const std::vector<Block> blocks = BlocksIn(pipeline);
  for (size_t at = 0; at < blocks.size(); at += kBlocksACall) {
    const size_t end = std::min(blocks.size(), at + kBlocksACall);
    v1::FindListBlocksRequest find;
    for (size_t i = at; i < end; ++i) {
      v1::ListBlock* const block = find.add_blocks();
      block->set_sha256(blocks[i].sha256);
      block->set_bytes(blocks[i].bytes.size());
    }
    v1::FindListBlocksResponse found;
    RETURN_IF_ERROR(TooOld(retry.Run(deadline, [&](absl::Duration left) {
      return control->Call(&Stub::FindListBlocks, find, &found,
                           std::min(left, control->timeout()));
    })));
    for (size_t i = at; i < end; ++i) {
      const int number = static_cast<int>(i - at);
      if (number < found.present_size() && found.present(number)) continue;
      v1::PutListBlockRequest put;
      put.set_sha256(blocks[i].sha256);
      put.set_bytes(std::string(blocks[i].bytes));
      v1::PutListBlockResponse done;
      RETURN_IF_ERROR(retry.Run(deadline, [&](absl::Duration left) {
        return control->Call(&Stub::PutListBlock, put, &done,
                             std::min(left, control->timeout()));
      }));
    }
  }
  return absl::OkStatus();
}

}  // namespace leat::client
