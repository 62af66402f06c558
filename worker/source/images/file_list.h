// SPDX-License-Identifier: Apache-2.0
//
// readers.file_list and readers.files: single files with labels, each a sample.
//
// A list is text, one line per file: its name, blanks, its label. A line is
// parsed from its end, so that names may contain blanks; blanks before a name
// belong to it. Lines of blanks are skipped. Names are absolute paths or URIs,
// or relative to `root`, which is the list's folder if not given.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/source.h"

namespace leat::worker {

struct LabelledFile {
  std::string name;
  int32_t label = 0;
};

// kInvalidArgument: a line without a name or a label of 0 to 2^31 - 1; reports
// its number and its size. kResourceExhausted: over max_files lines.
absl::StatusOr<std::vector<LabelledFile>> ParseFileList(std::string_view text,
                                                        uint64_t max_files);

// Returns one group for each label, whose name is the label, if all files of
// each label follow one another. Otherwise, or if there are more than kMaxGroups
// labels, it returns none.
std::vector<Group> GroupsOfLabels(std::span<const int32_t> labels);

}  // namespace leat::worker
