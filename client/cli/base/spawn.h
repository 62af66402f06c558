// SPDX-License-Identifier: Apache-2.0
//
// Spawn runs a program to its end. The program gets no input and no shell.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace leat::cli {

struct Ended {
  int exit_code = 0;  // 128 + N: by signal N
  std::string out, err;
};

// Bound on the bytes of each output; a program that prints more is an error.
inline constexpr size_t kMaxSpawnOutput = 16 << 20;

// `argv[0]` is searched on PATH. kNotFound: there is no such program.
// kDeadlineExceeded: it took longer, and was ended. kResourceExhausted: it
// printed too much, or no process can be started. `on_err`, unless it is null,
// gets what the program writes to its error output, as it comes.
absl::StatusOr<Ended> Spawn(
    const std::vector<std::string>& argv, absl::Duration limit,
    const std::function<void(std::string_view)>& on_err = nullptr);

}  // namespace leat::cli
