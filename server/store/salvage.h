// SPDX-License-Identifier: Apache-2.0
//
// Reads the events of a database: all of them, or what is left of a damaged
// one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/state/state.h"
#include "server/store/sqlite.h"
#include "server/store/state_directory.h"

namespace leat::server {

// Returns the next hash of the chain: SHA-256(previous hash, sequence, record).
Digest ChainHash(const Digest& previous, uint64_t sequence,
                 std::string_view record);

// Returns the event before the first one, from the meta row; zeros: unreadable.
HighWater BaseOf(Database* database);

struct EventLog {
  std::vector<Event> events;  // up to the first damage
  HighWater head;             // the last good one
  absl::Status damage;        // kDataLoss: why it ended early
};

// Reads events along the chain from `base`. Errors: of SQLite.
absl::Status ReadEvents(Database* database, const HighWater& base,
                        EventLog* log);

struct Salvaged {
  std::vector<Event> events;  // consistent with each other
  HighWater last;             // where the chain ends
};

// Never fails: unreadable events are left out, as are events that need them.
Salvaged Salvage(Database* database);

}  // namespace leat::server
