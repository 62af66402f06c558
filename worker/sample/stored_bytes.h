// SPDX-License-Identifier: Apache-2.0
//
// A StoredSample as bytes, for a disk of this worker's.
//
// The layout, numbers in little-endian order: u32 magic "LeR1", u32 fields; of
// each field u32 bytes, u32 axes, i64 × axes sizes; then the fields' bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/pipeline/operators.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

constexpr size_t kMaxStoredFields = 256, kMaxStoredAxes = 32;

// Empty: it has more fields or axes than that, or more than 4 GiB.
std::vector<std::byte> PackSample(const StoredSample& sample);
// nullopt: not what PackSample made.
std::optional<StoredSample> UnpackSample(std::vector<std::byte> bytes);
// Whether its fields are values of these types, one of each.
bool FitsTypes(const StoredSample& sample, std::span<const ValueType> types);

}  // namespace leat::worker
