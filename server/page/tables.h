// SPDX-License-Identifier: Apache-2.0
//
// The page as plain tables, for browsers that run no script.
#pragma once

#include <string>
#include <string_view>

#include "server/observe/cluster_events.h"
#include "server/page/model.h"

namespace leat::server {

// Bound on the rows of a table; a line says how many more there are.
inline constexpr size_t kMaxTableRows = 200;

// `events`: the newest last.
std::string TablesOf(const PageModel& model, const EventPage& events);

}  // namespace leat::server
