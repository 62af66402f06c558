// SPDX-License-Identifier: Apache-2.0
//
// Parses the JSON options of the C interface. kInvalidArgument: not JSON, an
// unknown key (names the nearest known ones), a value of another type or out of
// range.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "client/leat/client.h"

namespace leat::client {

// Empty text gives the defaults.
absl::StatusOr<ConnectOptions> ConnectOptionsFromJson(std::string_view json);
absl::StatusOr<BatchesOptions> BatchesOptionsFromJson(std::string_view json);

// Parses options_json, and adds the other arguments of the C functions.
absl::StatusOr<BatchesOptions> BatchesOptionsFromC(const char* options_json,
                                                   const void* position,
                                                   size_t position_bytes,
                                                   const uint32_t* rows,
                                                   size_t num_rows);

}  // namespace leat::client
