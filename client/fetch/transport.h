// SPDX-License-Identifier: Apache-2.0
//
// Transport names the ways in which rows may reach a consumer. LEAT_TRANSPORT
// chooses one.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat::client {

enum class Transport : uint8_t {
  kAuto,    // in place if available
  kGrpc,    // as bytes only
  kShared,  // in place, in shared memory, or fail
  kDevice,  // in place, in a GPU's memory, or fail
};
std::string_view Name(Transport transport);
// kInvalidArgument: `name` is not a transport.
absl::StatusOr<Transport> TransportOf(std::string_view name);

}  // namespace leat::client
