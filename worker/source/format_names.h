// SPDX-License-Identifier: Apache-2.0
//
// Derives from a file's name which reader it is for, and whether it stands for
// several files.
#pragma once

#include <string>
#include <string_view>

namespace leat::worker {

// Returns "webdataset" for "s3://b/train-{000}.tar"; empty if the name reveals
// nothing.
std::string FormatOfName(std::string_view uri);

// True if `uri` names several files by *, ?, [ ] or { }.
bool IsPattern(std::string_view uri);

}  // namespace leat::worker
