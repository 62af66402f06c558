// SPDX-License-Identifier: Apache-2.0
//
// Small image files that tell decoders apart: some of every format.
#pragma once

#include <string>
#include <vector>

namespace leat::worker {

// Returns files that are the same in every build of a release. The first is a
// JPEG 4:2:0, the second a progressive JPEG 4:2:2.
std::vector<std::string> KnownImages();

}  // namespace leat::worker
