// SPDX-License-Identifier: Apache-2.0
//
// Plane: how rows may come to a consumer (LEAT_PLANE).
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::client {

enum class Plane : uint8_t {
  kAuto,    // in place where that can be had
  kGrpc,    // by bytes only
  kShared,  // in place, in shared memory, or not at all
  kDevice,  // in place, in a GPU's memory, or not at all
};
std::string_view Name(Plane plane);
// kInvalidArgument: not a plane.
absl::StatusOr<Plane> PlaneOf(std::string_view name);

}  // namespace leat::client
