// SPDX-License-Identifier: Apache-2.0
//
// StateDirectory: the folder of a durable store. It admits one process at a
// time, and keeps a high-water mark beside the database.
//
// DIR/lock holds the owner's process ID, under flock. DIR/high-water holds the
// last event that the store has reported as durable. It has two slots of 64
// bytes, written in turn, each with a checksum: a torn write spoils only one of
// them. A database that is behind the mark has lost events, which SQLite can do
// without noticing. Thread-compatible.
//
//   slot: "LEATHW01", sequence (8 bytes, little-endian), hash of the last event
//   (32 bytes), 12 zero bytes, CRC-32C of the first 60 bytes (4 bytes)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"

namespace leat::server {

struct HighWater {
  uint64_t sequence = 0;
  Digest hash{};
  friend bool operator==(const HighWater&, const HighWater&) = default;
};

class StateDirectory {
 public:
  // Creates the folder (its parent must exist), and locks it.
  // kFailedPrecondition: another process uses it (names the process).
  // kPermissionDenied, kNotFound, kInvalidArgument: cannot be created or
  // written (names the path and the reason).
  static absl::StatusOr<StateDirectory> Open(const std::string& path);
  StateDirectory(StateDirectory&& other) noexcept;
  StateDirectory& operator=(StateDirectory&&) = delete;
  ~StateDirectory();  // unlocks

  const std::string& path() const { return path_; }

  // Returns nullopt if there is none. kDataLoss: both slots are damaged.
  absl::StatusOr<std::optional<HighWater>> ReadHighWater();
  // Durable on return.
  absl::Status WriteHighWater(const HighWater& mark);

 private:
  StateDirectory(std::string path, int lock_fd);
  std::string path_;
  int lock_fd_ = -1;
  int mark_fd_ = -1;
  int next_slot_ = 0;
};

// Returns the status of a failed system call: "cannot make DIR: Permission
// denied".
absl::Status ErrnoStatus(int error, const std::string& what);

}  // namespace leat::server
