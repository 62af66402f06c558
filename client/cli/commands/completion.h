// SPDX-License-Identifier: Apache-2.0
//
// Completion scripts for bash, zsh and fish, generated from the command tree,
// so that no command is missing. Names of workers, jobs and so on are requested
// from the service at completion time (`leat get KIND -o name`, at most one
// second).
#pragma once

#include <string>

#include "client/cli/options/command_line.h"

namespace leat::cli {

std::string BashCompletion(const CommandNode& root);
std::string ZshCompletion(const CommandNode& root);
std::string FishCompletion(const CommandNode& root);

}  // namespace leat::cli
