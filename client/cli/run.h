// SPDX-License-Identifier: Apache-2.0
//
// RunCli is the program `leat` as a function, which main and the tests call. It
// runs on the calling thread. Output, errors and connections go through the
// Environment, so a failure is a line on its `err`, and an ExitCode.
#pragma once

#include <string>
#include <vector>

#include "client/cli/base/environment.h"

namespace leat::cli {

// `args` are without the program's name. Returns an ExitCode.
int RunCli(std::vector<std::string> args, const Environment& environment);

}  // namespace leat::cli
