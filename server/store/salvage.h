// SPDX-License-Identifier: Apache-2.0
//
// Reading the events of a database: all of them, or what is left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/state/state.h"
#include "server/store/sqlite.h"
#include "server/store/state_directory.h"

namespace leat::server {

// The chain: SHA-256(previous hash, sequence, record).
Digest ChainHash(const Digest& previous, uint64_t sequence,
                 std::string_view record);

// The event before the first one, as the meta row says; zeros: it cannot be
// read.
HighWater BaseOf(Database* database);

struct EventLog {
  std::vector<Event> events;  // up to the first damage
  HighWater head;             // the last good one
  absl::Status damage;        // kDataLoss: why it ended early
};

// Follows the chain from `base`. Errors: of SQLite.
absl::Status ReadEvents(Database* database, const HighWater& base,
                        EventLog* log);

struct Salvaged {
  std::vector<Event> events;  // that fit together
  HighWater last;             // where the chain ends
};

// Never fails: what cannot be read is left out, with what needs it.
Salvaged Salvage(Database* database);

}  // namespace leat::server
