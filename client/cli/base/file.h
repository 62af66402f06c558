// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes whole small files, with the system's reason in every error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

// Returns the content of the file or pipe, at most `most` + 1 bytes of it, so
// that the caller can tell that it is too long. kFailedPrecondition: names the
// path.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most);

// Replaces the file. kFailedPrecondition: names the path.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace leat::cli
