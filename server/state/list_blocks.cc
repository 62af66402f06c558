// SPDX-License-Identifier: Apache-2.0
#include "server/state/list_blocks.h"

#include <algorithm>
#include <string>
#include <variant>

#include "leat/stored/v1/records.pb.h"
#include "leat/v1/types.pb.h"

namespace leat::server {
namespace {

void AddBlocks(const leat::v1::LongList& list, ListBlocks* to) {
  uint64_t left = list.bytes();
  for (const std::string& block : list.blocks()) {
    const uint64_t bytes = std::min(left, kListBlockBytes);
    left -= bytes;
    Digest name;
    if (block.size() != name.size()) continue;  // no block of any store
    std::ranges::copy(block, name.begin());
    (*to)[name] = bytes;
  }
}

void AddBlocks(const leat::v1::Graph& graph, ListBlocks* to) {
  for (const leat::v1::Node& node : graph.nodes())
    for (const auto& [name, value] : node.args())
      if (value.has_list_value()) AddBlocks(value.list_value(), to);
}

}  // namespace

void AddBlocks(const LongList& list, ListBlocks* to) {
  for (size_t i = 0; i < list.blocks.size(); ++i)
    (*to)[list.blocks[i]] = BlockBytes(list, i);
}

void AddBlocks(const JobSpec& spec, ListBlocks* to) {
  for (size_t i = 0; i < NumSources(spec); ++i)
    for (const Node& node : PipelineOf(spec, i).nodes)
      for (const auto& [name, value] : node.args)
        if (const auto* list = std::get_if<LongList>(&value))
          AddBlocks(*list, to);
}

ListBlocks BlocksOfRecord(std::string_view record) {
  ListBlocks blocks;
  stored::v1::Event event;
  leat::v1::JobSpec spec;
  if (!event.ParseFromArray(record.data(), static_cast<int>(record.size())) ||
      !spec.ParseFromString(event.job_created().spec()))
    return blocks;
  AddBlocks(spec.pipeline(), &blocks);
  for (const leat::v1::MixedSource& source : spec.sources())
    AddBlocks(source.pipeline(), &blocks);
  return blocks;
}

}  // namespace leat::server
