// SPDX-License-Identifier: Apache-2.0
//
// A reader node's arguments, where none may be missing by accident: a node may
// come without those that have defaults.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph.h"

namespace leat::worker {

// The argument, or `fallback` where the node has none. kInvalidArgument: of
// another type, or with a byte 0; names reader and argument.
absl::StatusOr<std::string> TextArg(const Node& reader, const char* name,
                                    std::string fallback = {});
absl::StatusOr<std::vector<std::string>> TextsArg(const Node& reader,
                                                  const char* name);

}  // namespace leat::worker
