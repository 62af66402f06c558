// SPDX-License-Identifier: Apache-2.0
//
// Who there is, and who is asked. How peers fare is in
// client/fetch/peer_health.cc.
#include "client/fetch/peer_table.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

// How much more than others the sample stays with its first owner, 2/3 to 4/3.
double Reluctance(uint64_t sample) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const auto place = static_cast<double>((sample * kGoldenRatio) >> 32);
  return (2 + 2 * place * 0x1p-32) / 3;
}

constexpr size_t kMaxPeers = 4096;    // then absent ones are forgotten
constexpr size_t kFullPeers = 60000;  // then former ones are, too

std::string KeyOf(const AssignmentTable::Worker& ref) {
  return ref.name + '\0' + ref.address;
}

}  // namespace

PeerTable::PeerTable(const FetcherConfig& config, const ShardTable& shards,
                     Window* window)
    : config_(config), shards_(shards), window_(*window) {}

// Makes a list of the numbers that nothing refers to any more.
void PeerTable::FreeUnused() {
  unused_.clear();
  if (peers_.size() < kMaxPeers) return;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    const bool known = peer.former && peers_.size() < kFullPeers;
    if (!peer.present && !known && !peer.lane && peer.leased_lanes == 0)
      unused_.push_back(static_cast<uint16_t>(i));
  }
}

// The number of the worker, or a new one. Row::kNobody: there is none left.
uint16_t PeerTable::PeerFor(const AssignmentTable::Worker& ref) {
  ++visited_;
  std::string key = KeyOf(ref);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  uint16_t number = 0;
  if (!unused_.empty()) {
    number = unused_.back();
    unused_.pop_back();
    numbers_.erase(KeyOf(peers_[number].ref));
    Trust(peers_[number]);
    peers_[number] = Peer();
  } else {
    if (peers_.size() >= Row::kNobody) return Row::kNobody;
    number = static_cast<uint16_t>(peers_.size());
    peers_.emplace_back();
  }
  peers_[number].ref = ref;
  peers_[number].who = std::hash<std::string>()(ref.name);
  numbers_.emplace(std::move(key), number);
  return number;
}

// Another process has the name and the address: what the one before did says
// nothing of it. A lane that is open stays the former one's.
void PeerTable::Renew(Peer& peer, const AssignmentTable::Worker& ref) {
  Trust(peer);
  peer.ref = ref;
  peer.avoid_until = peer.fault_until = {};
  peer.fault_backoff = Duration(0);
  peer.failures_in_row = 0;
  peer.faulty = false;
  peer.last_error.clear();
  peer.last_code = absl::StatusCode::kOk;
  peer.looked_at = false;
  Reached(peer);
}

std::vector<std::shared_ptr<Lane>> PeerTable::SetTable(
    std::shared_ptr<const AssignmentTable> table) {
  std::vector<std::shared_ptr<Lane>> lanes;
  if (table->workers().empty() && num_named() > 0) return lanes;
  table_ = std::move(table);
  for (Peer& peer : peers_) peer.former = std::exchange(peer.present, false);
  // Those that stay are marked first, so that no number of theirs is unused.
  for (const AssignmentTable::Worker& ref : table_->workers())
    if (const auto known = numbers_.find(KeyOf(ref)); known != numbers_.end())
      peers_[known->second].present = true;
  FreeUnused();
  peer_of_.clear();
  for (const AssignmentTable::Worker& ref : table_->workers()) {
    const uint16_t worker = PeerFor(ref);
    peer_of_.push_back(worker);
    if (worker == Row::kNobody) continue;
    peers_[worker].present = true;
    if (peers_[worker].ref.public_key != ref.public_key)
      Renew(peers_[worker], ref);
  }
  listed_ = false;
  window_.dirty = true;
  for (const Peer& peer : peers_)
    if (peer.former && !peer.present && peer.lane) lanes.push_back(peer.lane);
  return lanes;
}

bool PeerTable::HasRoom(const Peer& peer, MonotonicTime now) const {
  if (peer.avoided_until() > now) return false;
  if (!peer.lane) return true;
  const Lane& lane = *peer.lane;
  return !lane.broken && lane.open_rows < config_.max_lane_rows &&
         lane.open_bytes < config_.max_lane_bytes &&
         (peer.brought_bytes == 0 || lane.open_bytes < peer.brought_bytes);
}

// Whether the row is asked of the worker already, or failed there.
bool PeerTable::Takes(uint16_t worker, const Step& step, uint32_t index,
                      bool again) const {
  const Row& row = step.rows[index];
  return !row.AskedOf(worker) && (again || !row.FailedAt(worker));
}

bool PeerTable::Usable(uint16_t worker, const Step& step, uint32_t index,
                       bool again, MonotonicTime now) const {
  ++visited_;
  if (worker == Row::kNobody) return false;
  const Peer& peer = peers_[worker];
  return HasRoom(peer, now) && Takes(worker, step, index, again) &&
         (!step.rows[index].disputed ||
          step.absences->NotBefore(index, peer.who) <= now);
}

bool PeerTable::LastResort(const Peer& peer) const {
  if (peer.present) return false;
  return peer.former || (peer.lane && !peer.lane->broken &&
                         peer.lane->last_heard != MonotonicTime{});
}

void PeerTable::List(MonotonicTime now) {
  if (std::exchange(listed_, true)) return;
  can_.clear();
  last_.clear();
  for (const uint16_t worker : peer_of_)
    if (worker != Row::kNobody && HasRoom(peers_[worker], now))
      can_.push_back(worker);
  for (size_t i = 0; i < peers_.size(); ++i)
    if (LastResort(peers_[i]) && HasRoom(peers_[i], now))
      last_.push_back(static_cast<uint16_t>(i));
  visited_ += peer_of_.size() + peers_.size();
}

// The first of the list that takes the row, from a place that depends on its
// shard. Those without room for any row are taken from the list, so that a
// round looks at each of them once.
std::optional<uint16_t> PeerTable::FirstOf(std::vector<uint16_t>* list,
                                           uint32_t shard, const Step& step,
                                           uint32_t index, bool again,
                                           MonotonicTime now) {
  size_t at = list->empty() ? 0 : shard % list->size();
  for (size_t left = list->size(); left > 0 && !list->empty();) {
    if (at >= list->size()) at = 0;
    const uint16_t worker = (*list)[at];
    if (Usable(worker, step, index, again, now)) return worker;
    if (HasRoom(peers_[worker], now)) {
      ++at;
      --left;
    } else {
      (*list)[at] = list->back();
      list->pop_back();
    }
  }
  return std::nullopt;
}

std::optional<uint16_t> PeerTable::Choose(const Step& step, uint32_t index,
                                          MonotonicTime now) {
  if (!table_) return std::nullopt;
  const uint32_t shard = shards_.ShardOf(step.samples[index]);
  for (const bool again : {false, true}) {
    for (const uint16_t owner : table_->owners(shard))
      if (Usable(peer_of_[owner], step, index, again, now))
        return Spill(peer_of_[owner], shard, step, index, now);
    List(now);
    const auto worker = FirstOf(&can_, shard, step, index, again, now);
    if (worker) return worker;
  }
  // A row whose worker is only missing in the table stays where it is.
  const Row& row = step.rows[index];
  if (row.num_asked() > 0 && row.again == Row::Again::kNo) return std::nullopt;
  for (const bool again : {false, true}) {
    const auto worker = FirstOf(&last_, shard, step, index, again, now);
    if (worker) return worker;
  }
  return std::nullopt;
}

// How long the worker will be at what it owes and `more_rows`, in nanoseconds.
double PeerTable::Backlog(uint16_t worker, uint32_t more_rows) const {
  const Peer& peer = peers_[worker];
  const size_t open = peer.lane ? peer.lane->open_rows : 0;
  return static_cast<double>(open + more_rows) * peer.row_ns;
}

// `first`, or the owner that will be done much sooner. Any owner gives the same
// bytes: where a row is asked decides only who is busy, and which cache is
// used. How much sooner that must be differs between samples and not between
// consumers: the same samples spill first, so that other consumers, and later
// epochs, find them where they went.
uint16_t PeerTable::Spill(uint16_t first, uint32_t shard, const Step& step,
                          uint32_t index, MonotonicTime now) const {
  const double backlog = Backlog(first, 0);
  const double fair_rows =
      static_cast<double>(window_.steps.size() * step.rows.size()) /
      static_cast<double>(peer_of_.size());
  const double least =
      std::min(fair_rows * peers_[first].row_ns,
               static_cast<double>(config_.spill_least.count()));
  uint16_t best = first;
  double shortest = backlog;
  for (const uint16_t owner : table_->owners(shard)) {
    const uint16_t worker = peer_of_[owner];
    if (worker == first || worker == Row::kNobody ||
        peers_[worker].row_ns <= 0 || !Usable(worker, step, index, false, now))
      continue;
    const double other = config_.spill_factor *
                             Reluctance(step.samples[index]) *
                             Backlog(worker, config_.spill_rows) +
                         least;
    if (other < shortest) {
      shortest = other;
      best = worker;
    }
  }
  return best;
}

const std::shared_ptr<Lane>& PeerTable::LaneOf(uint16_t worker,
                                               MonotonicTime now,
                                               bool* opened) {
  std::shared_ptr<Lane>& lane = peers_[worker].lane;
  if (lane) return lane;
  lane = std::make_shared<Lane>();
  lane->worker = worker;
  lane->last_asked = now;
  idle_check_ = std::min(idle_check_, now + config_.lane_idle);
  if (opened != nullptr) *opened = true;
  return lane;
}

MonotonicTime PeerTable::NextUsable(MonotonicTime now, bool* full) const {
  MonotonicTime next = MonotonicTime::max();
  for (const Peer& peer : peers_) {
    if (!peer.present && !LastResort(peer)) continue;
    if (peer.avoided_until() > now)
      next = std::min(next, peer.avoided_until());
    else
      *full = true;
  }
  return next;
}

std::vector<std::shared_ptr<Lane>> PeerTable::TakeIdleLanes(
    MonotonicTime now, MonotonicTime* due) {
  std::vector<std::shared_ptr<Lane>> idle;
  if (now >= idle_check_) {
    idle_check_ = MonotonicTime::max();
    for (Peer& peer : peers_) {
      if (!peer.lane) continue;
      Lane& lane = *peer.lane;
      // Groups without an ask are of rows that have come from elsewhere.
      const bool busy =
          !lane.asks.empty() || !lane.ending.empty() || lane.broken;
      const MonotonicTime idle_at =
          (busy ? now : lane.last_asked) + config_.lane_idle;
      if (idle_at <= now) {
        lane.retired = true;
        lane.broken = true;
        Trust(peer);
        idle.push_back(std::exchange(peer.lane, nullptr));
        listed_ = false;
        continue;
      }
      // Not for each lane by itself: that would be a scan of all each time.
      idle_check_ =
          std::min(idle_check_, std::max(idle_at, now + config_.lane_idle / 4));
    }
  }
  *due = std::min(*due, idle_check_);
  return idle;
}

}  // namespace leat::client
