// SPDX-License-Identifier: Apache-2.0
//
// Converts blocks of an index from and to messages. Messages are untrusted:
// call CheckIndexBlocks on the result.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/index_blocks.h"
#include "core/status.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::rpc {

inline v1::IndexBlock ToProto(const IndexBlock& block) {
  v1::IndexBlock proto;
  proto.set_sha256(BytesOf(block.sha256));
  proto.set_bytes(block.bytes);
  proto.set_samples(block.samples);
  return proto;
}

// kInvalidArgument: the digest has another length.
inline absl::StatusOr<IndexBlock> FromProto(const v1::IndexBlock& proto) {
  IndexBlock block;
  ASSIGN_OR_RETURN(block.sha256,
                   DigestOf("the sha256 of a block", proto.sha256()));
  block.bytes = proto.bytes();
  block.samples = proto.samples();
  return block;
}

template <class Blocks>
absl::StatusOr<std::vector<IndexBlock>> BlocksFrom(const Blocks& protos) {
  std::vector<IndexBlock> blocks;
  blocks.reserve(static_cast<size_t>(protos.size()));
  for (const v1::IndexBlock& proto : protos) {
    ASSIGN_OR_RETURN(blocks.emplace_back(), FromProto(proto));
  }
  return blocks;
}

}  // namespace leat::rpc
