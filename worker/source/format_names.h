// SPDX-License-Identifier: Apache-2.0
//
// What the name of a file says: which reader it is for, and whether it stands
// for several files.
#pragma once

#include <string>
#include <string_view>

namespace leat::worker {

// Returns "webdataset" for "s3://b/train-{000}.tar"; empty if the name says
// nothing.
std::string FormatOfName(std::string_view uri);

// Whether `uri` names several files by *, ?, [ ] or { }.
bool IsPattern(std::string_view uri);

}  // namespace leat::worker
