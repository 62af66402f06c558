// SPDX-License-Identifier: Apache-2.0
//
// A reader node's arguments, where none may be missing by accident: a node may
// come without those that have defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"

namespace leat::worker {

// The argument, or `fallback` where the node has none. kInvalidArgument: of
// another type, or with a byte 0; names reader and argument.
absl::StatusOr<std::string> TextArg(const Node& reader, const char* name,
                                    std::string fallback = {});
// Of a LongList without values, as a worker has it that does not list, the
// first entries.
absl::StatusOr<std::vector<std::string>> TextsArg(const Node& reader,
                                                  const char* name);
absl::StatusOr<std::vector<int64_t>> IntsArg(const Node& reader,
                                             const char* name);

// What stands for a LongList in an index; empty: the argument is none.
std::string LongListKey(const Node& reader, const char* name);

// kInternal: a LongList without values, whose dataset cannot be listed.
absl::Status WantValues(const Node& reader);

}  // namespace leat::worker
