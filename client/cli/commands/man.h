// SPDX-License-Identifier: Apache-2.0
//
// Manual pages, generated from the command tree, so that no command or option
// is missing. There is leat(1), and leat-COMMAND(1) for each command.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "client/cli/options/command_line.h"

namespace leat::cli {

// Returns the pages by file name, such as "leat-top.1". They are texts for
// groff's macros "man". The same tree and version give the same bytes.
std::map<std::string, std::string> ManPages(const CommandNode& root,
                                            std::string_view version);

}  // namespace leat::cli
