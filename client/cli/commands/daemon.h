// SPDX-License-Identifier: Apache-2.0
//
// RunDaemon runs a daemon's program for a command that needs what only this
// program can do: a worker lists datasets, and a coordinator copies its state.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/spawn.h"
#include "client/cli/session/session.h"

namespace leat::cli {

// Runs program `name` with `args`, as Spawn does. --daemon-dir names its
// folder; without it, the folders of this program are searched, then PATH.
// kNotFound: it is in none of them; the text names them and the flag.
absl::StatusOr<Ended> RunDaemon(
    const Session& session, const std::string& name,
    const std::vector<std::string>& args, absl::Duration limit,
    const std::function<void(std::string_view)>& on_err);

}  // namespace leat::cli
