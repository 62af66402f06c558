// SPDX-License-Identifier: Apache-2.0
//
// Messages as JSON: proto field names, unset fields printed.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace leat::client {

// As protobuf's own JSON, with 64-bit numbers as numbers and not as text.
nlohmann::json ToJsonNumbers(const google::protobuf::Message& message);
// kInvalidArgument: the parser's message, after `what`.
absl::Status FromJson(std::string_view json, std::string_view what,
                      google::protobuf::Message* message);

}  // namespace leat::client
