// SPDX-License-Identifier: Apache-2.0
//
// The program `leat`, as a function: arguments in, exit code out.
#pragma once

#include <string>
#include <vector>

#include "client/cli/base/environment.h"

namespace leat::cli {

// `args` are without the program's name. Returns an ExitCode.
int RunCli(std::vector<std::string> args, const Environment& environment);

}  // namespace leat::cli
