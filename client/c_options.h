// SPDX-License-Identifier: Apache-2.0
//
// The JSON options of the C interface. kInvalidArgument: not JSON, an unknown
// key (names the nearest known ones), a value of another type or out of range.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "client/leat/client.h"

namespace leat::client {

// Empty text: the defaults.
absl::StatusOr<ConnectOptions> ConnectOptionsFromJson(std::string_view json);
absl::StatusOr<BatchesOptions> BatchesOptionsFromJson(std::string_view json);

}  // namespace leat::client
