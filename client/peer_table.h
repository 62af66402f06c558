// SPDX-License-Identifier: Apache-2.0
//
// PeerTable: who there is, and which worker a row is asked of.
//
// A row goes to its shard's first owner, or to another owner while the first
// one's backlog would take much longer (spilling); then to any worker. A worker
// that failed is left alone for a time that doubles. A worker that owes rows
// which are late, and has been silent all that time, is suspect, until it
// delivers again.
//
// Thread-compatible: the Fetcher's owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/assignment_table.h"
#include "client/fetcher_config.h"
#include "client/lane.h"
#include "client/window.h"
#include "core/clock.h"
#include "core/shard_table.h"

namespace leat::client {

class PeerTable {
 public:
  // All three outlive this.
  PeerTable(const FetcherConfig& config, const ShardTable& shards,
            Window* window);

  // Returns the lanes of peers that only the table before named.
  std::vector<std::shared_ptr<Lane>> SetTable(
      std::shared_ptr<const AssignmentTable> table);
  const AssignmentTable* table() const { return table_.get(); }
  const std::deque<Peer>& peers() const { return peers_; }
  Peer& at(uint16_t worker) { return peers_[worker]; }
  // Numbers of the peers that the table names, in its order.
  std::span<const uint16_t> named() const { return peer_of_; }

  // Who is to be asked for the row now; nullopt: nobody can be.
  std::optional<uint16_t> Choose(const Row& row, uint64_t sample,
                                 MonotonicTime now) const;
  // The peer's lane; a new one if it has none, and then `opened` is set.
  const std::shared_ptr<Lane>& LaneOf(uint16_t worker, bool* opened = nullptr);
  // When a peer that is avoided can be asked again; max: none is avoided. If
  // another one can be asked already, rows wait for room on lanes: *full.
  MonotonicTime NextUsable(MonotonicTime now, bool* full) const;

  // The peer failed, and is left alone for a while.
  void Avoid(Peer& peer, std::string_view error, MonotonicTime now);
  // The worker lives.
  void HeardFrom(Lane& lane, MonotonicTime now);
  // `rows` more have come, which were new, in a group of `group_rows`.
  void Delivered(Lane& lane, uint64_t rows, uint64_t bytes, size_t group_rows,
                 MonotonicTime now);
  // Whether the worker, which owes the head's row, becomes suspect by its
  // silence. If not yet, *due is when it may. Never the only one left.
  bool BecomesSuspect(uint16_t worker, const Row& row, MonotonicTime now,
                      MonotonicTime* due);
  // After which time a row of the head is late.
  Duration HedgeDelay() const;
  // Why every worker ends its streams for a reason that time does not mend; OK:
  // not every one does.
  absl::Status Refusal() const;
  // The peers and their errors, for people. `row`: of the head.
  std::string Describe(const Row& row) const;

 private:
  uint16_t PeerFor(const AssignmentTable::Worker& ref);
  bool Usable(uint16_t worker, const Row& row, bool again,
              MonotonicTime now) const;
  uint16_t Spill(uint16_t first, uint32_t shard, const Row& row,
                 MonotonicTime now) const;
  double Backlog(uint16_t worker, uint32_t more_rows) const;

  const FetcherConfig& config_;
  const ShardTable& shards_;
  Window& window_;
  std::shared_ptr<const AssignmentTable> table_;
  std::vector<uint16_t> peer_of_;  // by the table's index
  std::deque<Peer> peers_;
};

// Whether time may mend what the code says: it speaks of a worker, not of the
// sample.
bool OfWorker(absl::StatusCode code);

}  // namespace leat::client
