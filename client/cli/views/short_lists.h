// SPDX-License-Identifier: Apache-2.0
//
// Shows a message's lists to people. Long ones are cut as the lists of a
// canonical text are (core/plan/short_lists.h).
#pragma once

#include <string>

#include "client/cli/base/fields.h"

namespace leat::cli {

// Returns "[a, b, c, and 4997 more (digest 1a2b3c4d5e6f)]".
std::string ShortList(const Json& items);

}  // namespace leat::cli
