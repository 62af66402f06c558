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

// The same, and what C gives beside it.
absl::StatusOr<BatchesOptions> BatchesOptionsFromC(const char* options_json,
                                                   const void* token,
                                                   size_t token_bytes,
                                                   const uint32_t* rows,
                                                   size_t num_rows);

}  // namespace leat::client
