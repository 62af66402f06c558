// SPDX-License-Identifier: Apache-2.0
#include "core/plan/index_blocks.h"

#include <string_view>

#include "core/status.h"

namespace leat {
uint64_t TotalBytes(std::span<const IndexBlock> blocks) {
  uint64_t sum = 0;
  for (const IndexBlock& block : blocks) sum += block.bytes;
  return sum;
}

Digest IndexIdentity(const Digest& fingerprint, const ShardTable& shards,
                     std::span<const IndexBlock> blocks) {
  Sha256 hash;
  hash.UpdateField("leat.index.v1").UpdateField(AsText(fingerprint));
  hash.UpdateU64(shards.num_samples()).UpdateU64(shards.num_shards());
  for (uint32_t i = 0; i < shards.num_shards(); ++i)
    hash.UpdateU64(shards.range(i).end);
  hash.UpdateU64(blocks.size());
  for (const IndexBlock& block : blocks)
    hash.UpdateField(AsText(block.sha256))
        .UpdateU64(block.bytes)
        .UpdateU64(block.samples);
  return hash.Finish();
}

absl::StatusOr<bool> CheckIndexBlocks(std::span<const IndexBlock> blocks,
                                      uint64_t num_samples) {
  if (blocks.empty() || blocks.size() > kMaxIndexBlocks)
    return InvalidArgument("an index of {} blocks: want 1 to {}", blocks.size(),
                           kMaxIndexBlocks);
  size_t with_samples = 0;
  uint64_t sum = 0;
  for (const IndexBlock& block : blocks) {
    if (block.bytes == 0 || block.bytes > kMaxIndexBlockBytes)
      return InvalidArgument("block {} of an index has {} bytes: want 1 to {}",
                             ShortHex(block.sha256), block.bytes,
                             kMaxIndexBlockBytes);
    if (block.samples > kMaxSamples)
      return InvalidArgument("block {} of an index has {} samples",
                             ShortHex(block.sha256), block.samples);
    with_samples += block.samples > 0 ? 1 : 0;
    sum += block.samples;
  }
  if (with_samples == 0) return false;
  if (blocks[0].samples != 0 || with_samples + 1 != blocks.size())
    return InvalidArgument(
        "{} of the {} blocks of an index have samples: want none, or all but "
        "the first",
        with_samples, blocks.size());
  if (num_samples == 0 || num_samples % sum != 0)
    return InvalidArgument(
        "the blocks of an index have {} samples, its shards {}: want a "
        "multiple",
        sum, num_samples);
  return true;
}

}  // namespace leat
