// SPDX-License-Identifier: Apache-2.0
//
// The libraries that decode images, as loaded by this process.
#pragma once

#include <string>

namespace leat::worker {

// Returns their names and versions, for people: "libjpeg-turbo 2.1.5, libpng
// 1.6.39".
std::string DecoderLibraries();

}  // namespace leat::worker
