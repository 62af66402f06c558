// SPDX-License-Identifier: Apache-2.0
//
// IndexBlock: a part of a dataset's index, named by the SHA-256 of its bytes.
//
// An index is the bytes of its blocks, one after the other. Either no block has
// samples, and only the whole says anything; or the first block has none, and
// is the head, and each of the others says, together with the head, all about
// its own samples: then a worker reads only those that its rows need.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/plan/shard_table.h"

namespace leat {

// A listing ends a block before it has more bytes than this.
inline constexpr uint64_t kIndexBlockBytes = 4 << 20;
// What one shard says is not cut everywhere, so that a block may be larger; but
// not larger than this.
inline constexpr uint64_t kMaxIndexBlockBytes = 64 << 20;
inline constexpr size_t kMaxIndexBlocks = 65'536;

struct IndexBlock {
  Digest sha256{};
  uint64_t bytes = 0;
  uint64_t samples = 0;
  friend bool operator==(const IndexBlock&, const IndexBlock&) = default;
};

uint64_t TotalBytes(std::span<const IndexBlock> blocks);

// Returns the one name of all blocks together. It depends on the data and on
// where the index was cut; not on who listed it, nor on how it was sent.
Digest IndexIdentity(const Digest& fingerprint, const ShardTable& shards,
                     std::span<const IndexBlock> blocks);

// Whether samples are looked up in single blocks. kInvalidArgument: no blocks,
// too many, one that is empty or over kMaxIndexBlockBytes, only some with
// samples, or samples that `num_samples` is no multiple of.
absl::StatusOr<bool> CheckIndexBlocks(std::span<const IndexBlock> blocks,
                                      uint64_t num_samples);

}  // namespace leat
