// SPDX-License-Identifier: Apache-2.0
//
// Decisions: routing, hedging, time limits. What comes back is in
// client/fetcher_receive.cc, delivery in place in client/fetcher_lend.cc.
#include "client/fetcher.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {
constexpr uint64_t kColdRows = 32;      // p95 means nothing below
constexpr size_t kMaxPeers = 4096;      // then absent ones are forgotten
constexpr size_t kMaxNamedWorkers = 8;  // in an error
}  // namespace

Fetcher::Fetcher(const FetcherConfig& config, const ShardTable& shards)
    : config_(config), shards_(shards) {}

uint16_t Fetcher::PeerFor(const AssignmentTable::Worker& ref) {
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

void Fetcher::SetTable(std::shared_ptr<const AssignmentTable> table) {
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
  // What a lost or drained worker owes is asked elsewhere; if it still answers
  // first, so much the better.
  for (size_t i = 0; i < was_present.size(); ++i)
    if (was_present[i] != 0 && !peers_[i].present && peers_[i].lane)
      AskElsewhere(*peers_[i].lane);
  dirty_ = true;
}

void Fetcher::AddStep(std::shared_ptr<Step> step, MonotonicTime now) {
  if (steps_.empty()) head_since_ = now;
  for (const Peer& peer : peers_)
    if (peer.lane) OfferLoan(peer.lane, *step);
  steps_.push_back(std::move(step));
  dirty_ = true;
}

uint64_t Fetcher::brought_bytes() const {
  uint64_t bytes = 0;
  for (const std::shared_ptr<Step>& step : steps_)
    if (step->brought) bytes += step->brought->bytes();
  return bytes;
}

std::shared_ptr<Step> Fetcher::PopHead(MonotonicTime now) {
  std::shared_ptr<Step> step = std::move(steps_.front());
  steps_.pop_front();
  head_since_ = now;
  waiting_ = false;
  dirty_ = true;
  return step;
}

std::vector<Fetcher::Action> Fetcher::Decide(MonotonicTime now) {
  dirty_ = false;
  starved_ = false;
  due_ = MonotonicTime::max();
  if (!steps_.empty()) {
    CheckTimeout(now);
    if (waiting_) HedgeHead(now);
  }
  std::vector<Action> actions = std::exchange(withdrawals_, {});
  for (const std::shared_ptr<Step>& step : steps_)
    if (!step->pending.empty()) RouteStep(step, now, &actions);
  return actions;
}

bool Fetcher::Usable(uint16_t worker, const Row& row, bool again,
                     MonotonicTime now) const {
  const Peer& peer = peers_[worker];
  return peer.present && peer.avoid_until <= now && !row.AskedOf(worker) &&
         (again || !row.FailedAt(worker)) &&
         (!peer.lane ||
          (!peer.lane->broken && peer.lane->open_rows < config_.max_lane_rows &&
           peer.lane->open_bytes < config_.max_lane_bytes));
}

std::optional<uint16_t> Fetcher::Choose(const Row& row, uint64_t sample,
                                        MonotonicTime now) const {
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
double Fetcher::Backlog(uint16_t worker, uint32_t more_rows) const {
  const Peer& peer = peers_[worker];
  const size_t open = peer.lane ? peer.lane->open_rows : 0;
  return static_cast<double>(open + more_rows) * peer.row_ns;
}

// `first`, or the owner that will be done much sooner. Any owner gives the same
// bytes: where a row is asked decides only who is busy, and which cache is
// used.
uint16_t Fetcher::Spill(uint16_t first, uint32_t shard, const Row& row,
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

void Fetcher::RouteStep(const std::shared_ptr<Step>& step, MonotonicTime now,
                        std::vector<Action>* actions) {
  std::vector<uint32_t> pending = std::exchange(step->pending, {});
  const size_t first_action = actions->size();
  bool waits = false;
  for (const uint32_t index : pending) {
    Row& row = step->rows[index];
    if (row.settled()) {
      row.pending = false;
      continue;
    }
    const std::optional<uint16_t> worker =
        table_ ? Choose(row, step->samples[index], now) : std::nullopt;
    if (worker && row.leased) {
      WantMemory(step);
      step->pending.push_back(index);
      continue;
    }
    const Placement placement =
        worker ? PlacementOf(*step, row, *worker) : Placement::kBytes;
    if (placement == Placement::kWait) {
      OpenLane(*worker, actions);
      step->pending.push_back(index);
    } else if (worker) {
      row.pending = false;
      if (row.num_asked() > 0) ++counters_.hedged_rows;
      AddToAsk(step, index, *worker, placement == Placement::kInPlace, now,
               first_action, actions);
    } else if (row.num_asked() > 0) {
      row.pending = false;  // nobody else: the one that was asked must do
      row.asked_at = now;
    } else {
      step->pending.push_back(index);
      waits = true;
    }
  }
  if (!waits) return;
  for (const uint16_t worker : peer_of_) {
    const Peer& peer = peers_[worker];
    if (peer.avoid_until > now)
      due_ = std::min(due_, peer.avoid_until);
    else
      starved_ = true;
  }
}

void Fetcher::AddToAsk(const std::shared_ptr<Step>& step, uint32_t index,
                       uint16_t worker, bool in_place, MonotonicTime now,
                       size_t first_action, std::vector<Action>* actions) {
  OpenLane(worker, nullptr);
  const std::shared_ptr<Lane>& lane = peers_[worker].lane;
  Row& row = step->rows[index];
  if (!row.AddAsked(worker)) return;
  if (lane->open_rows == 0) lane->busy_since = now;
  if (row.FailedAt(worker)) row.ForgetFailed();
  row.asked_at = now;
  const std::shared_ptr<BatchMemory> part =
      in_place ? PartFor(*lane, *step->memory) : nullptr;
  const uint64_t memory_id = part ? part->id() : 0;
  const uint64_t bytes = step->BroughtBytes(index);
  const auto takes = [&](const Action& action) {
    return action.lane == lane && !action.rows.empty() &&
           action.memory_id == memory_id &&
           action.rows.size() < config_.max_ask_rows &&
           action.brought_bytes + bytes <= config_.max_ask_bytes;
  };
  size_t i = first_action;
  while (i < actions->size() && !takes((*actions)[i])) ++i;
  if (i == actions->size()) {
    const uint64_t id = next_ask_++;
    actions->push_back({.lane = lane,
                        .ask_id = id,
                        .epoch = step->epoch,
                        .step = step->step,
                        .memory_id = memory_id,
                        .brought = step->brought});
    OpenAsk& ask = lane->asks[id];
    ask.step = step;
    ask.asked_at = now;
    if (in_place) {
      ask.memory = step->memory;
      ask.on_device = part->kind() == BatchMemory::Kind::kDevice;
      ask.leased = true;
      ++step->memory->leases;
    }
  }
  Action& action = (*actions)[i];
  action.rows.push_back(step->globals[index]);
  action.samples.push_back(step->samples[index]);
  action.brought_bytes += bytes;
  if (in_place) {
    action.places.push_back(index);
    row.leased = true;
  }
  OpenAsk& ask = lane->asks[action.ask_id];
  ask.indices.push_back(index);
  ++ask.open;
  ask.open_bytes += bytes;
  ++lane->open_rows;
  lane->open_bytes += bytes;
}

Duration Fetcher::HedgeDelay() const {
  if (latency_.count() < kColdRows)
    return std::max(config_.hedge_min, config_.hedge_cold);
  const auto late = std::chrono::duration<double, std::nano>(
      config_.hedge_p95_factor *
      static_cast<double>(latency_.Quantile(0.95).count()));
  return std::max(config_.hedge_min,
                  std::chrono::duration_cast<Duration>(late));
}

void Fetcher::HedgeHead(MonotonicTime now) {
  Step& step = *steps_.front();
  const Duration delay = HedgeDelay();
  for (uint32_t index = 0; index < step.rows.size(); ++index) {
    Row& row = step.rows[index];
    if (row.settled() || row.pending || row.num_asked() == 0) continue;
    for (const uint16_t worker : row.asked)
      if (worker != Row::kNobody) SuspectIfSilent(worker, row, now);
    if (row.pending) continue;
    if (row.asked_at + delay > now) {
      due_ = std::min(due_, row.asked_at + delay);
      continue;
    }
    row.asked_at = now;
    due_ = std::min(due_, now + delay);
    if (row.num_asked() < Row::kMaxAsks) MakePending(step, index);
  }
}

// A worker that owes the head's row and has delivered nothing at all meanwhile
// is taken to have stopped, if there is another one.
void Fetcher::SuspectIfSilent(uint16_t worker, const Row& row,
                              MonotonicTime now) {
  Peer& peer = peers_[worker];
  if (peer.suspect || !peer.lane) return;
  const Duration silence =
      latency_.count() < kColdRows
          ? config_.hedge_cold
          : std::max(config_.silence_min, latency_.Quantile(0.95));
  const MonotonicTime at =
      std::max(row.asked_at, peer.lane->last_delivery) + silence;
  if (at > now) {
    due_ = std::min(due_, at);
    return;
  }
  const auto other = [&](uint16_t i) {
    return i != worker && peers_[i].avoid_until <= now;
  };
  if (std::none_of(peer_of_.begin(), peer_of_.end(), other)) return;
  peer.suspect = true;
  peer.avoid_until = now + std::max(config_.backoff_max, silence);
  peer.last_error = "silent";
  AskElsewhere(*peer.lane);
}

void Fetcher::AskElsewhere(Lane& lane) {
  for (auto& [id, ask] : lane.asks)
    for (const uint32_t index : ask.indices) {
      const Row& row = ask.step->rows[index];
      if (row.AskedOf(lane.worker) && row.num_asked() < Row::kMaxAsks)
        MakePending(*ask.step, index);
    }
}

void Fetcher::MakePending(Step& step, uint32_t index) {
  Row& row = step.rows[index];
  if (row.pending || row.settled()) return;
  row.pending = true;
  step.pending.push_back(index);
  dirty_ = true;
}

void Fetcher::CheckTimeout(MonotonicTime now) {
  Step& step = *steps_.front();
  if (step.ready() || !step.error.ok()) return;
  if (head_since_ + config_.row_timeout <= now)
    step.error = TimeoutError();
  else
    due_ = std::min(due_, head_since_ + config_.row_timeout);
}

absl::Status Fetcher::TimeoutError() const {
  const Step& step = *steps_.front();
  if (step.complete())
    return DeadlineExceeded(
        "epoch {} step {}: not copied to its device in time", step.epoch,
        step.step);
  size_t index = 0;
  while (index + 1 < step.rows.size() && step.rows[index].settled()) ++index;
  const double seconds =
      std::chrono::duration<double>(config_.row_timeout).count();
  std::string workers;
  size_t named = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (!peer.present && peer.last_error.empty()) continue;
    if (++named > kMaxNamedWorkers) continue;
    const bool asked = step.rows[index].AskedOf(static_cast<uint16_t>(i));
    workers += fmt::format("{}{} at {}: {}", workers.empty() ? "" : "; ",
                           peer.ref.name, peer.ref.address,
                           peer.last_error.empty()
                               ? (asked ? "asked, no answer" : "no error")
                               : peer.last_error);
  }
  if (named > kMaxNamedWorkers)
    workers += fmt::format("; and {} more", named - kMaxNamedWorkers);
  if (workers.empty())
    workers =
        table_ ? "the coordinator knows no ready worker" +
                     (config_.needed.empty() ? "" : " with " + config_.needed)
               : "no assignment has come from the coordinator";
  return DeadlineExceeded(
      "epoch {} step {}: row {} (sample {}) not delivered within {:g} s, nor "
      "{} others of {}; workers: {}",
      step.epoch, step.step, step.globals[index], step.samples[index], seconds,
      step.rows.size() - step.done - 1, step.rows.size(), workers);
}

}  // namespace leat::client
