// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the names closest to an unknown one, and lookup of names by a
// unique prefix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::cli {

// Returns at most three of `names`, nearest first: those within an edit
// distance of a third of the word's length (at least two; one for a word below
// four letters), or that begin with it.
std::vector<std::string> Suggestions(std::string_view word,
                                     const std::vector<std::string>& names);
// Returns "; did you mean a, b?" or "".
std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& names);

// Returns the index in `names` of `word`, or of the only name that begins with
// it. kNotFound: none (names near ones); kInvalidArgument: several begin with
// it (lists them). `kind` is the word for the entity: "job".
absl::StatusOr<size_t> FindName(std::string_view kind, std::string_view word,
                                const std::vector<std::string>& names);

}  // namespace leat::cli
