// SPDX-License-Identifier: Apache-2.0
//
// GetEnv: reads the process's environment, or a test's.
#pragma once

#include <functional>

namespace leat::worker {

// As getenv(3).
using GetEnv = std::function<const char*(const char*)>;

}  // namespace leat::worker
