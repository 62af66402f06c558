// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the names closest to one that nothing has, and names found
// by a unique beginning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::cli {

// At most three of `names`, nearest first, within a third of the word's length
// in edits (at least two; one of a word below four letters), or that begin with
// it.
std::vector<std::string> Near(std::string_view word,
                              const std::vector<std::string>& names);
// "; did you mean a, b?" or "".
std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& names);

// The index of `word` in `names`: equal, or the only one that begins with it.
// kNotFound: none (names near ones); kInvalidArgument: several begin with it
// (lists them). `kind` is the word for the thing: "job".
absl::StatusOr<size_t> FindName(std::string_view kind, std::string_view word,
                                const std::vector<std::string>& names);

}  // namespace leat::cli
