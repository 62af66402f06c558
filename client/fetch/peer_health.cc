// SPDX-License-Identifier: Apache-2.0
//
// How the peers of a PeerTable fare: back-off, faults, silence, speed.
#include <algorithm>
#include <cmath>
#include <utility>

#include "client/fetch/peer_table.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr uint64_t kColdRows = 32;      // p95 means nothing below
constexpr size_t kMaxNamedWorkers = 8;  // in an error
constexpr double kRowTimeOf = 128;      // rows, of the newest
// Of the workers, one in so many may be taken to have stopped at a time. More
// are not silent by chance: storage, or a start, keeps them all.
constexpr size_t kStoppedShare = 10;
// So many of those that are left alone are asked early in `backoff_waiting`.
constexpr size_t kForgiven = 32;

}  // namespace

bool IsBug(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown;
}

bool IsPassing(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

Duration PeerTable::Jittered(Duration duration) const {
  if (!config_.random) return duration;
  return std::chrono::duration_cast<Duration>(duration *
                                              (1 - config_.random() / 2));
}

// The peer is not suspect any more.
void PeerTable::Trust(Peer& peer) {
  if (std::exchange(peer.suspect, false)) --suspects_;
  if (std::exchange(peer.stopped, false)) --stopped_;
}

void PeerTable::Avoid(Peer& peer, std::string_view error, bool ended,
                      MonotonicTime now) {
  if (ended || peer.suspect || peer.avoid_until <= now) {
    const int shift =
        static_cast<int>(std::min<uint32_t>(peer.failures_in_row, 16));
    peer.avoid_until =
        now + Jittered(std::min(config_.backoff_max,
                                config_.backoff_min * (1 << shift)));
    ++peer.failures_in_row;
    peer.early_at = now + Jittered(config_.backoff_waiting);
  }
  peer.last_error = std::string(error);
  Trust(peer);
  window_.dirty = true;
}

void PeerTable::Blame(Peer& peer, std::string_view error, MonotonicTime now) {
  peer.last_error = std::string(error);
  peer.faulty = true;
  window_.dirty = true;
  if (peer.fault_until > now) return;  // it was asked before
  // It grows unless the worker has been right for as long as the last time.
  const bool lasts = peer.fault_backoff > Duration(0) &&
                     now < peer.fault_until + peer.fault_backoff;
  peer.fault_backoff =
      lasts ? std::min(config_.fault_backoff_max, peer.fault_backoff * 2)
            : config_.fault_backoff_min;
  peer.fault_until = now + Jittered(peer.fault_backoff);
  peer.early_at = now + Jittered(config_.backoff_waiting);
}

bool PeerTable::Forgive(MonotonicTime now, MonotonicTime* due) {
  if (std::exchange(forgave_, true)) return false;
  if (now >= forgiving_since_ + config_.backoff_waiting) {
    forgiving_since_ = now;
    forgiven_ = 0;
  }
  std::vector<uint16_t> early;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (peer.avoided_until() <= now || (!peer.present && !LastResort(peer)))
      continue;
    if (peer.early_at <= now)
      early.push_back(static_cast<uint16_t>(i));
    else
      *due = std::min(*due, peer.early_at);
  }
  const auto sooner = [&](uint16_t a, uint16_t b) {
    return peers_[a].early_at < peers_[b].early_at;
  };
  const size_t count = std::min(early.size(), kForgiven - forgiven_);
  forgiven_ += count;
  if (count < early.size())
    *due = std::min(*due, forgiving_since_ + config_.backoff_waiting);
  std::partial_sort(early.begin(),
                    early.begin() + static_cast<ptrdiff_t>(count), early.end(),
                    sooner);
  for (size_t i = 0; i < count; ++i)
    peers_[early[i]].avoid_until = peers_[early[i]].fault_until = now;
  if (count > 0) listed_ = false;
  return count > 0;
}

bool PeerTable::AnyOther(const Row& row, MonotonicTime now) {
  List(now);
  const auto other = [&](uint16_t i) {
    return !row.AskedOf(i) && peers_[i].avoided_until() <= now;
  };
  return std::any_of(can_.begin(), can_.end(), other) ||
         std::any_of(last_.begin(), last_.end(), other);
}

bool PeerTable::AnyIdle(MonotonicTime now) {
  List(now);
  return std::any_of(can_.begin(), can_.end(), [&](uint16_t i) {
    const Peer& peer = peers_[i];
    return peer.rows > 0 && (!peer.lane || peer.lane->open_rows == 0);
  });
}

bool PeerTable::AllFaulty() const {
  const auto faulty = [&](uint16_t worker) {
    return worker != Row::kNobody && peers_[worker].faulty;
  };
  return !peer_of_.empty() &&
         std::all_of(peer_of_.begin(), peer_of_.end(), faulty);
}

void PeerTable::Squeeze(const Lane& lane) {
  Peer& peer = peers_[lane.worker];
  const uint64_t bound =
      peer.brought_bytes > 0 ? peer.brought_bytes : config_.max_lane_bytes;
  peer.brought_bytes =
      std::max<uint64_t>(1, std::min(bound, lane.open_bytes) / 2);
}

void PeerTable::HeardFrom(Lane& lane, MonotonicTime now) {
  lane.last_heard = now;
  Peer& peer = peers_[lane.worker];
  if (!lane.retired) Reached(peer);
  if (lane.retired || !peer.suspect) return;
  Trust(peer);
  peer.avoid_until = now;
  peer.last_error.clear();
  window_.dirty = true;
}

void PeerTable::Delivered(Lane& lane, uint64_t rows, uint64_t bytes,
                          size_t group_rows, MonotonicTime now) {
  Peer& peer = peers_[lane.worker];
  delivered_at_ = now;
  peer.rows += rows;
  peer.bytes += bytes;
  peer.failures_in_row = 0;
  peer.faulty = false;
  if (peer.brought_bytes > 0) {  // there is room again
    peer.brought_bytes += config_.max_ask_bytes;
    if (peer.brought_bytes >= config_.max_lane_bytes) peer.brought_bytes = 0;
  }
  // The worker spent the time on the group since the group before, or since it
  // had something to do.
  const Duration spent = now - std::exchange(lane.busy_since, now);
  // Groups come in bursts, so that the time of one says little: the sums of
  // the newest rows do, to which a slow row adds its whole time.
  const auto number = static_cast<double>(group_rows);
  const double kept = std::exp(-number / kRowTimeOf);
  peer.spent_ns = peer.spent_ns * kept + static_cast<double>(spent.count());
  peer.spent_rows = peer.spent_rows * kept + number;
  peer.row_ns = peer.spent_ns / peer.spent_rows;
}

Duration PeerTable::HedgeDelay() const {
  if (window_.latency.count() < kColdRows)
    return std::max(config_.hedge_min, config_.hedge_cold);
  const auto late = std::chrono::duration<double, std::nano>(
      config_.hedge_p95_factor *
      static_cast<double>(window_.latency.Quantile(0.95).count()));
  return std::max(config_.hedge_min,
                  Patience(std::chrono::duration_cast<Duration>(late)));
}

Duration PeerTable::Patience(Duration wanted) const {
  const auto most = std::chrono::duration_cast<Duration>(
      config_.patience_median_factor * window_.latency.Quantile(0.5));
  return std::min(wanted, std::max(config_.hedge_cold, most));
}

PeerTable::Silence PeerTable::Listen(uint16_t worker, const Row& row,
                                     MonotonicTime now, MonotonicTime* due) {
  Peer& peer = peers_[worker];
  if (!peer.lane) return Silence::kNone;
  // A worker that has not delivered yet may have to load the job.
  const Duration silence =
      peer.rows == 0 || window_.latency.count() < kColdRows
          ? config_.hedge_cold
          : std::max(config_.silence_min,
                     Patience(window_.latency.Quantile(0.95)));
  const MonotonicTime since = std::max(row.asked_at, peer.lane->last_heard);
  if (since + silence > now) {
    if (!peer.stopped) *due = std::min(*due, since + silence);
    return Silence::kNone;
  }
  const size_t most = std::max<size_t>(1, num_named() / kStoppedShare);
  const bool others = DeliveredSince(since);
  const bool stops = others && (peer.stopped || stopped_ < most);
  const bool told =
      (stops ? peer.stopped : peer.suspect) && peer.avoid_until > now;
  // While nobody delivers, it is not the worker that is slow.
  if (told || (!others && !peer.suspect && suspects_ >= most))
    return Silence::kNone;
  Row mine;
  mine.AddAsked(worker);
  if (!AnyOther(mine, now) && !Forgive(now, due)) return Silence::kNone;
  if (!std::exchange(peer.suspect, true)) ++suspects_;
  if (stops && !std::exchange(peer.stopped, true)) ++stopped_;
  peer.avoid_until = now + std::max(config_.backoff_max, silence);
  peer.early_at = now + Jittered(config_.backoff_waiting);
  peer.last_error = "silent";
  return stops ? Silence::kStopped : Silence::kSuspect;
}

std::string PeerTable::Describe(const Row& row) const {
  std::string workers;
  size_t named = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (!peer.present && peer.last_error.empty()) continue;
    if (++named > kMaxNamedWorkers) continue;
    const bool asked = row.AskedOf(static_cast<uint16_t>(i));
    const std::string_view error =
        peer.hindrance.empty() ? peer.last_error : peer.hindrance;
    workers += fmt::format(
        "{}{} at {}: {}", workers.empty() ? "" : "; ", peer.ref.name,
        peer.ref.address,
        error.empty() ? (asked ? "asked, no answer" : "no error") : error);
  }
  if (named > kMaxNamedWorkers)
    workers += fmt::format("; and {} more", named - kMaxNamedWorkers);
  if (!workers.empty()) return workers;
  return table_ ? "the coordinator knows no ready worker" +
                      (config_.needed.empty() ? "" : " with " + config_.needed)
                : "no assignment has come from the coordinator";
}

std::string PeerTable::DescribeAll(const Step& step, MonotonicTime now) const {
  std::string text =
      fmt::format("late after {:.0f} ms; workers:", Milliseconds(HedgeDelay()));
  size_t named = 0;
  for (size_t i = 0; i < peers_.size() && named < kMaxNamedWorkers; ++i) {
    const Peer& peer = peers_[i];
    if (!peer.present && !LastResort(peer)) continue;
    ++named;
    size_t asked = 0;
    for (const Row& row : step.rows)
      if (!row.settled() && row.AskedOf(static_cast<uint16_t>(i))) ++asked;
    text += fmt::format(" {}: asked for {}", peer.ref.name, asked);
    if (!peer.present) text += ", not in the assignment";
    if (peer.lane) text += fmt::format(", owes {}", peer.lane->open_rows);
    if (peer.lane && peer.lane->last_heard != MonotonicTime{})
      text += fmt::format(", heard {:.0f} ms ago",
                          Milliseconds(now - peer.lane->last_heard));
    if (peer.avoided_until() > now)
      text += fmt::format(", left alone for {:.0f} ms more",
                          Milliseconds(peer.avoided_until() - now));
    if (peer.stopped) text += ", taken to have stopped";
    if (!peer.hindrance.empty())
      text += ", " + peer.hindrance;
    else if (!peer.last_error.empty())
      text += ", " + peer.last_error;
    text += ';';
  }
  return text;
}

}  // namespace leat::client
