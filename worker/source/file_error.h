// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace leat::worker {

// errno as a status that names what was tried and the path. What is not the
// file's fault (EIO, EMFILE, ...) is kUnavailable: worth another try.
absl::Status FileError(int error, std::string_view what, std::string_view path);

}  // namespace leat::worker
