// SPDX-License-Identifier: Apache-2.0
//
// Whole small files, with the system's reason in every error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

// What the file or pipe holds, at most `most` + 1 bytes of it, so that whoever
// has more knows that it is too long. kFailedPrecondition: names the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most);

// In the place of what was there. kFailedPrecondition: names the path.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace leat::cli
