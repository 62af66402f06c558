// SPDX-License-Identifier: Apache-2.0
//
// IndexBlock is a part of a dataset's index, named by the SHA-256 of its bytes.
//
// An index is the concatenation of its blocks. Either no block has samples, and
// only the whole can be parsed; or the first block has none and is the head,
// and each other block together with the head describes its own samples: then a
// worker reads only the blocks that its rows need.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/plan/shard_table.h"

namespace leat {

// A listing ends a block before it exceeds this size.
inline constexpr uint64_t kIndexBlockBytes = 4 << 20;
// A block may be larger if the entries of one shard cannot be divided, but not
// larger than this.
inline constexpr uint64_t kMaxIndexBlockBytes = 64 << 20;
inline constexpr size_t kMaxIndexBlocks = 65'536;

struct IndexBlock {
  Digest sha256{};
  uint64_t bytes = 0;
  uint64_t samples = 0;
  friend bool operator==(const IndexBlock&, const IndexBlock&) = default;
};

uint64_t TotalBytes(std::span<const IndexBlock> blocks);

// Returns the name of all blocks together. It depends on the data and on the
// division into blocks, not on the worker that listed it, nor on how it was
// sent.
Digest IndexIdentity(const Digest& fingerprint, const ShardTable& shards,
                     std::span<const IndexBlock> blocks);

// Returns whether samples are looked up in single blocks. kInvalidArgument: no
// blocks, too many, one that is empty or over kMaxIndexBlockBytes, only some
// with samples, or a sum of samples that does not divide `num_samples`.
absl::StatusOr<bool> CheckIndexBlocks(std::span<const IndexBlock> blocks,
                                      uint64_t num_samples);

}  // namespace leat
