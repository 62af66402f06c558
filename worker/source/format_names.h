// SPDX-License-Identifier: Apache-2.0
//
// Which reader a file is for, by its name alone.
#pragma once

#include <string>
#include <string_view>

namespace leat::worker {

// Returns "webdataset" for "s3://b/train-{000}.tar"; empty if the name says
// nothing.
std::string FormatOfName(std::string_view uri);

}  // namespace leat::worker
