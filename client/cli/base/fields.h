// SPDX-License-Identifier: Apache-2.0
//
// Fields of the service's JSON, read so that an absent or odd one is a zero,
// never an exception: a newer or older coordinator must not break the CLI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace leat::cli {

// Keeps the order of the fields.
using Json = nlohmann::ordered_json;

// kInternal: `text` is not a JSON object; `what` names its source.
absl::StatusOr<Json> ParseObject(std::string_view text, std::string_view what);
// The same of an array.
absl::StatusOr<Json> ParseArray(std::string_view text, std::string_view what);

// `path` is "a.b.c". A null value if any part is absent.
const Json& At(const Json& json, std::string_view path);
// A string as it is; numbers and booleans as text; anything else "".
std::string Text(const Json& json, std::string_view path);
// 64-bit integers are strings in protobuf's JSON; both forms are read.
uint64_t Whole(const Json& json, std::string_view path);
double Number(const Json& json, std::string_view path);
// The array at `path`, empty if there is none.
const Json& Items(const Json& json, std::string_view path);
// The strings of an array.
std::vector<std::string> Strings(const Json& json, std::string_view path);

}  // namespace leat::cli
