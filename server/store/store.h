// SPDX-License-Identifier: Apache-2.0
//
// Store keeps the coordinator's events, and the blocks of the datasets'
// indexes.
//
// Events are numbered 1, 2, 3 … for the life of the store; the numbers never go
// back, so a client that remembers a larger one than the store has knows that
// the store lost events. A change whose call returned OK survives a crash.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "server/state/state.h"
#include "server/store/block_store.h"

namespace leat::server {

// A block is sent in pieces of this size; the last may be shorter.
inline constexpr size_t kIndexChunkBytes = 1 << 20;

class Store {
 public:
  virtual ~Store() = default;

  // "sqlite DIR", "memory".
  virtual std::string description() const = 0;
  // False if the content ends with the process.
  virtual bool durable() const = 0;
  // Returns what was lost, and its consequences, when a damaged store was
  // opened with what could be read; empty: nothing. Constant after opening.
  virtual std::string losses() const { return {}; }
  // Returns the number of the last event; 0: there is none yet. Never waits for
  // another call.
  virtual uint64_t sequence() const = 0;

  // Calls `apply` for each event, oldest first, until it returns an error.
  // kDataLoss: damaged.
  virtual absl::Status Replay(
      const std::function<absl::Status(const Event&)>& apply) = 0;

  // Appends an event; blocks until it is durable. kResourceExhausted: no room
  // (nothing was changed; the caller may retry). kInternal: the store has
  // failed permanently.
  virtual absl::Status Append(const Event& event) = 0;

  // Drops the history: replaces all events by `live` (State::Events), if that
  // makes the log much shorter.
  virtual absl::Status Compact(std::span<const Event> live) = 0;

  virtual BlockStore& blocks() = 0;
};

// Bound on the blocks of indexes in memory.
inline constexpr uint64_t kMaxMemoryBlockBytes = 2ull << 30;

// MemoryStore keeps everything in memory: for tests, and for services that live
// as long as one script.
class MemoryStore : public Store {
 public:
  std::string description() const override { return "memory"; }
  bool durable() const override { return false; }
  uint64_t sequence() const override { return sequence_; }
  absl::Status Replay(
      const std::function<absl::Status(const Event&)>& apply) override;
  absl::Status Append(const Event& event) override;
  absl::Status Compact(std::span<const Event> live) override;
  BlockStore& blocks() override { return blocks_; }

 private:
  mutable Mutex mu_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> sequence_ = 0;
  MemoryBlocks blocks_{kMaxMemoryBlockBytes};  // synchronises itself
};

}  // namespace leat::server
