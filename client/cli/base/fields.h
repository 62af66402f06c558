// SPDX-License-Identifier: Apache-2.0
//
// Reads fields of the service's JSON. A field that is absent or has another
// type reads as zero, and never throws: a newer or older coordinator must not
// break the CLI.
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
// The same for an array.
absl::StatusOr<Json> ParseArray(std::string_view text, std::string_view what);

// `path` is "a.b.c". Returns a null value if any part is absent.
const Json& At(const Json& json, std::string_view path);
// Returns a string as it is; numbers and booleans as text; anything else as "".
std::string Text(const Json& json, std::string_view path);
// Reads 64-bit integers as numbers or as strings, their form in protobuf's
// JSON.
uint64_t Whole(const Json& json, std::string_view path);
double Number(const Json& json, std::string_view path);
// Returns the array at `path`, empty if there is none.
const Json& Items(const Json& json, std::string_view path);
// Returns the strings of an array.
std::vector<std::string> Strings(const Json& json, std::string_view path);

}  // namespace leat::cli
