// SPDX-License-Identifier: Apache-2.0
//
// readers.file_list and readers.files: single files with labels, each a sample.
//
// A list is text, a line a file: its name, blanks, its label. A line is read
// from its end, so that names may have blanks in them; blanks before a name are
// its own. Lines of blanks are passed over. Names are absolute paths or URIs,
// or below `root`, which is the list's folder if not given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::worker {

struct LabelledFile {
  std::string name;
  int32_t label = 0;
};

// kInvalidArgument: a line without a name or a label of 0 to 2^31 - 1; says its
// number and shows it. kResourceExhausted: over max_files lines.
absl::StatusOr<std::vector<LabelledFile>> ParseFileList(std::string_view text,
                                                        uint64_t max_files);

}  // namespace leat::worker
