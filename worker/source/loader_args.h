// SPDX-License-Identifier: Apache-2.0
//
// Reads a reader node's arguments. Only arguments with defaults may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"

namespace leat::worker {

// Returns the argument, or `fallback` if the node has none. kInvalidArgument:
// of another type, or with a byte 0; names reader and argument.
absl::StatusOr<std::string> TextArg(const Node& reader, const char* name,
                                    std::string fallback = {});
// For a LongList without values, as on a worker that does not list, returns the
// first entries.
absl::StatusOr<std::vector<std::string>> TextsArg(const Node& reader,
                                                  const char* name);
absl::StatusOr<std::vector<int64_t>> IntsArg(const Node& reader,
                                             const char* name);

// Returns the text that stands for a LongList in an index; empty: the argument
// is not one.
std::string LongListKey(const Node& reader, const char* name);

// kInternal: a LongList without values, whose dataset cannot be listed.
absl::Status WantValues(const Node& reader);

}  // namespace leat::worker
