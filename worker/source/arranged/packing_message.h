// SPDX-License-Identifier: Apache-2.0
//
// Converts a packing from and to the message in the head of its index.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/packing/pack_node.h"
#include "core/pipeline/operators.h"
#include "leat/stored/v1/indexes.pb.h"

namespace leat::worker {

// `types`: of the reader's outputs.
stored::v1::StoredPacking ToStored(const PackNode& pack,
                                   std::span<const ValueType> types);

struct StoredPack {
  PackNode pack;
  std::vector<ValueType> types;
};
// kDataLoss: a packing that CheckPackNode refuses, or values that are no open
// tensors of known types.
absl::StatusOr<StoredPack> FromStored(const stored::v1::StoredPacking& packing);

}  // namespace leat::worker
