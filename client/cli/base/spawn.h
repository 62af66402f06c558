// SPDX-License-Identifier: Apache-2.0
//
// Spawn: runs a program to its end. The program gets no input and no shell.
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

// The most bytes of each output; it is an error if a program prints more.
inline constexpr size_t kMaxSpawnOutput = 16 << 20;

// `argv[0]` is found on PATH. kNotFound: there is no such program.
// kDeadlineExceeded: it was ended, since it took longer. kResourceExhausted:
// it printed too much, or no process can be had. `on_err`, unless it is null,
// is told what the program writes to its error output, as it comes.
absl::StatusOr<Ended> Spawn(
    const std::vector<std::string>& argv, absl::Duration limit,
    const std::function<void(std::string_view)>& on_err = nullptr);

}  // namespace leat::cli
