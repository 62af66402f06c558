// SPDX-License-Identifier: Apache-2.0
//
// Copies a state folder as of one moment, while a coordinator writes to it:
//
//   DIR/leat.db ── one read of SQLite ──► events up to n
//   events ── which datasets, jobs ──► their blocks, copied by name
//   n, and its hash ──► the copy's own high-water mark
//
// A coordinator started with the copy as --state begins in the same state as
// one started on the original folder at that moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::server {

struct BackedUp {
  uint64_t sequence = 0;  // the last event
  uint64_t datasets = 0, blocks = 0, block_bytes = 0;
  // Blocks that are missing or damaged in the original folder too. A
  // coordinator that uses the copy lists their datasets again.
  std::vector<std::string> without;
};

// Creates `to`, which exists afterwards only if the copy is complete. Any
// number of processes may write to `from` meanwhile. kNotFound: no state in
// `from`. kAlreadyExists: `to` exists. kDataLoss: `from` is damaged. Others
// name the file.
absl::StatusOr<BackedUp> BackUpState(const std::string& from,
                                     const std::string& to);

}  // namespace leat::server
