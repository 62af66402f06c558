// SPDX-License-Identifier: Apache-2.0
//
// Completion scripts for bash, zsh and fish, made from the command tree, so
// that they cannot miss a command. Names of workers, jobs and so on are asked
// of the service at completion time (`leat get KIND -o name`, one second at
// most).
#pragma once

#include <string>

#include "client/cli/options/command_line.h"

namespace leat::cli {

std::string BashCompletion(const CommandNode& root);
std::string ZshCompletion(const CommandNode& root);
std::string FishCompletion(const CommandNode& root);

}  // namespace leat::cli
