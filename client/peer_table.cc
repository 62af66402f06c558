// SPDX-License-Identifier: Apache-2.0
#include "client/peer_table.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

constexpr uint64_t kColdRows = 32;      // p95 means nothing below
constexpr size_t kMaxPeers = 4096;      // then absent ones are forgotten
constexpr size_t kMaxNamedWorkers = 8;  // in an error
constexpr double kRowTimeGain = 0.2;

}  // namespace

bool OfWorker(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

PeerTable::PeerTable(const FetcherConfig& config, const ShardTable& shards,
                     Window* window)
    : config_(config), shards_(shards), window_(*window) {}

uint16_t PeerTable::PeerFor(const AssignmentTable::Worker& ref) {
  std::optional<size_t> unused;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].ref.name == ref.name && peers_[i].ref.address == ref.address)
      return static_cast<uint16_t>(i);
    if (!peers_[i].present && !peers_[i].lane) unused = i;
  }
  if (peers_.size() < kMaxPeers || !unused) {
    unused = peers_.size();
    peers_.emplace_back();
  } else {
    peers_[*unused] = Peer();
  }
  peers_[*unused].ref = ref;
  return static_cast<uint16_t>(*unused);
}

std::vector<std::shared_ptr<Lane>> PeerTable::SetTable(
    std::shared_ptr<const AssignmentTable> table) {
  table_ = std::move(table);
  std::vector<uint8_t> was_present(peers_.size());
  for (size_t i = 0; i < peers_.size(); ++i)
    was_present[i] = std::exchange(peers_[i].present, false);
  peer_of_.clear();
  for (const AssignmentTable::Worker& ref : table_->workers()) {
    const uint16_t worker = PeerFor(ref);
    peers_[worker].present = true;
    peer_of_.push_back(worker);
  }
  window_.dirty = true;
  std::vector<std::shared_ptr<Lane>> lanes;
  for (size_t i = 0; i < was_present.size(); ++i)
    if (was_present[i] != 0 && !peers_[i].present && peers_[i].lane)
      lanes.push_back(peers_[i].lane);
  return lanes;
}

bool PeerTable::Usable(uint16_t worker, const Row& row, bool again,
                       MonotonicTime now) const {
  const Peer& peer = peers_[worker];
  return peer.present && peer.avoid_until <= now && !row.AskedOf(worker) &&
         (again || !row.FailedAt(worker)) &&
         (!peer.lane ||
          (!peer.lane->broken && peer.lane->open_rows < config_.max_lane_rows &&
           peer.lane->open_bytes < config_.max_lane_bytes));
}

std::optional<uint16_t> PeerTable::Choose(const Row& row, uint64_t sample,
                                          MonotonicTime now) const {
  if (!table_) return std::nullopt;
  const uint32_t shard = shards_.ShardOf(sample);
  for (const bool again : {false, true}) {
    for (const uint16_t owner : table_->owners(shard))
      if (Usable(peer_of_[owner], row, again, now))
        return Spill(peer_of_[owner], shard, row, now);
    const size_t n = peer_of_.size();
    for (size_t i = 0; i < n; ++i) {
      const uint16_t worker = peer_of_[(shard + i) % n];
      if (Usable(worker, row, again, now)) return worker;
    }
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
// used.
uint16_t PeerTable::Spill(uint16_t first, uint32_t shard, const Row& row,
                          MonotonicTime now) const {
  const double backlog = Backlog(first, 0);
  uint16_t best = first;
  double least = backlog;
  for (const uint16_t owner : table_->owners(shard)) {
    const uint16_t worker = peer_of_[owner];
    if (worker == first || peers_[worker].row_ns <= 0 ||
        !Usable(worker, row, false, now))
      continue;
    const double other =
        config_.spill_factor * Backlog(worker, config_.spill_rows);
    if (other < least) {
      least = other;
      best = worker;
    }
  }
  return best;
}

const std::shared_ptr<Lane>& PeerTable::LaneOf(uint16_t worker, bool* opened) {
  std::shared_ptr<Lane>& lane = peers_[worker].lane;
  if (lane) return lane;
  lane = std::make_shared<Lane>();
  lane->worker = worker;
  if (opened != nullptr) *opened = true;
  return lane;
}

MonotonicTime PeerTable::NextUsable(MonotonicTime now, bool* full) const {
  MonotonicTime next = MonotonicTime::max();
  for (const uint16_t worker : peer_of_) {
    const Peer& peer = peers_[worker];
    if (peer.avoid_until > now)
      next = std::min(next, peer.avoid_until);
    else
      *full = true;
  }
  return next;
}

void PeerTable::Avoid(Peer& peer, std::string_view error, MonotonicTime now) {
  const int shift =
      static_cast<int>(std::min<uint32_t>(peer.failures_in_row, 16));
  peer.avoid_until =
      now + std::min(config_.backoff_max, config_.backoff_min * (1 << shift));
  ++peer.failures_in_row;
  peer.last_error = std::string(error);
  peer.suspect = false;
  window_.dirty = true;
}

void PeerTable::HeardFrom(Lane& lane, MonotonicTime now) {
  Peer& peer = peers_[lane.worker];
  lane.last_delivery = now;
  if (!peer.suspect) return;
  peer.suspect = false;
  peer.avoid_until = now;
  peer.last_error.clear();
  window_.dirty = true;
}

void PeerTable::Delivered(Lane& lane, uint64_t rows, uint64_t bytes,
                          size_t group_rows, MonotonicTime now) {
  Peer& peer = peers_[lane.worker];
  peer.rows += rows;
  peer.bytes += bytes;
  peer.failures_in_row = 0;
  // The worker spent the time on the group since the group before, or since it
  // had something to do.
  const Duration spent = now - std::exchange(lane.busy_since, now);
  const double row_ns =
      static_cast<double>(spent.count()) / static_cast<double>(group_rows);
  if (peer.row_ns <= 0)
    peer.row_ns = row_ns;
  else
    peer.row_ns += (row_ns - peer.row_ns) * kRowTimeGain;
}

Duration PeerTable::HedgeDelay() const {
  if (window_.latency.count() < kColdRows)
    return std::max(config_.hedge_min, config_.hedge_cold);
  const auto late = std::chrono::duration<double, std::nano>(
      config_.hedge_p95_factor *
      static_cast<double>(window_.latency.Quantile(0.95).count()));
  return std::max(config_.hedge_min,
                  std::chrono::duration_cast<Duration>(late));
}

bool PeerTable::BecomesSuspect(uint16_t worker, const Row& row,
                               MonotonicTime now, MonotonicTime* due) {
  Peer& peer = peers_[worker];
  if (peer.suspect || !peer.lane) return false;
  const Duration silence =
      window_.latency.count() < kColdRows
          ? config_.hedge_cold
          : std::max(config_.silence_min, window_.latency.Quantile(0.95));
  const MonotonicTime at =
      std::max(row.asked_at, peer.lane->last_delivery) + silence;
  if (at > now) {
    *due = std::min(*due, at);
    return false;
  }
  const auto other = [&](uint16_t i) {
    return i != worker && peers_[i].avoid_until <= now;
  };
  if (std::none_of(peer_of_.begin(), peer_of_.end(), other)) return false;
  peer.suspect = true;
  peer.avoid_until = now + std::max(config_.backoff_max, silence);
  peer.last_error = "silent";
  return true;
}

absl::Status PeerTable::Refusal() const {
  if (peer_of_.empty()) return absl::OkStatus();
  for (const uint16_t worker : peer_of_) {
    const Peer& peer = peers_[worker];
    if (peer.failures_in_row < config_.max_refusals ||
        peer.last_code == absl::StatusCode::kOk || OfWorker(peer.last_code))
      return absl::OkStatus();
  }
  const Peer& peer = peers_[peer_of_.front()];
  return MakeStatus(peer.last_code, "every worker refuses; {}: {}",
                    peer.ref.name, peer.last_error);
}

std::string PeerTable::Describe(const Row& row) const {
  std::string workers;
  size_t named = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (!peer.present && peer.last_error.empty()) continue;
    if (++named > kMaxNamedWorkers) continue;
    const bool asked = row.AskedOf(static_cast<uint16_t>(i));
    workers += fmt::format("{}{} at {}: {}", workers.empty() ? "" : "; ",
                           peer.ref.name, peer.ref.address,
                           peer.last_error.empty()
                               ? (asked ? "asked, no answer" : "no error")
                               : peer.last_error);
  }
  if (named > kMaxNamedWorkers)
    workers += fmt::format("; and {} more", named - kMaxNamedWorkers);
  if (!workers.empty()) return workers;
  return table_ ? "the coordinator knows no ready worker" +
                      (config_.needed.empty() ? "" : " with " + config_.needed)
                : "no assignment has come from the coordinator";
}

}  // namespace leat::client
