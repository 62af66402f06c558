// SPDX-License-Identifier: Apache-2.0
//
// Expands braces in names of files, as in WebDataset and shells:
// "train-{0000..0003}.tar", "{train,more}.tar".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::worker {

// Returns all names that `path` stands for, in its order; `path` itself if it
// has no braces with a range or a list in them. Numbers have as many digits as
// the longer bound if one of the two has a zero before other digits: {00..10},
// and not {0..10}. Several pairs are combined, the last one varying fastest.
// kInvalidArgument: braces within braces. kResourceExhausted: more than `most`.
absl::StatusOr<std::vector<std::string>> ExpandBraces(std::string_view path,
                                                      size_t most);

}  // namespace leat::worker
