// SPDX-License-Identifier: Apache-2.0
//
// What comes back from workers: rows by bytes, errors, the end of a stream.
#include <algorithm>
#include <utility>

#include "client/fetcher.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr double kRowTimeGain = 0.2;
constexpr uint64_t kFadeRows = 8192;  // then older latencies count half

// Whether an error speaks of the worker, not of the sample.
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

}  // namespace

absl::StatusOr<std::optional<Fetcher::Piece>> Fetcher::Begin(
    Lane& lane, const v1::RowsResponse& header, size_t data_bytes,
    MonotonicTime now) {
  if (header.has_error()) {
    RETURN_IF_ERROR(RowError(lane, header, now));
    return std::nullopt;
  }
  if (header.ask_ended()) {
    RETURN_IF_ERROR(AskEnded(lane, header.ask_id()));
    return std::nullopt;
  }
  if (header.placed()) return Placed(lane, header, data_bytes, now);
  auto found = lane.groups.find(header.group_id());
  if (found == lane.groups.end()) {
    const auto ask = lane.asks.find(header.ask_id());
    if (ask == lane.asks.end()) {
      if (header.ask_id() >= next_ask_)
        return InvalidArgument("rows of ask {}, which was never made",
                               header.ask_id());
      if (lane.ending.contains(header.ask_id()))
        return InvalidArgument("data of ask {}, whose rows have places",
                               header.ask_id());
      // Of an ask that was withdrawn: its rows came from elsewhere.
      if (header.offset() == 0)
        counters_.duplicate_rows += static_cast<uint64_t>(header.rows_size());
      return std::nullopt;
    }
    if (header.offset() != 0)
      return InvalidArgument("group {} begins at offset {}", header.group_id(),
                             header.offset());
    ASSIGN_OR_RETURN(std::shared_ptr<Group> group,
                     Claim(lane, ask->second, header));
    found = lane.groups.emplace(header.group_id(), std::move(group)).first;
  }
  Group& group = *found->second;
  if (header.offset() != group.received || data_bytes == 0 ||
      data_bytes > group.payload_bytes - group.received)
    return InvalidArgument(
        "group {}: {} bytes at offset {}; want offset {} of {} bytes",
        header.group_id(), data_bytes, header.offset(), group.received,
        group.payload_bytes);
  for (size_t i = 0; i < group.indices.size(); ++i) {
    Row& row = group.step->rows[group.indices[i]];
    group.mine[i] = row.group == group.id ? 1 : 0;
    if (group.mine[i] != 0) row.state = RowState::kCopying;
  }
  Piece piece{found->second, header.group_id(), group.received, false};
  group.received += data_bytes;
  piece.last = group.received == group.payload_bytes;
  return piece;
}

absl::StatusOr<std::shared_ptr<Group>> Fetcher::Claim(
    Lane& lane, OpenAsk& ask, const v1::RowsResponse& header) {
  Step& step = *ask.step;
  if (ask.memory)
    return InvalidArgument("data of ask {}, whose rows have places",
                           header.ask_id());
  const auto num_rows = static_cast<size_t>(header.rows_size());
  if (num_rows == 0 || num_rows > ask.indices.size() ||
      header.payload_bytes() != num_rows * step.layout->row_bytes)
    return InvalidArgument(
        "group {}: {} rows and {} bytes; want 1 to {} rows of {} bytes",
        header.group_id(), num_rows, header.payload_bytes(), ask.indices.size(),
        step.layout->row_bytes);
  if (lane.groups.size() >= config_.max_lane_groups)
    return InvalidArgument("{} groups begun and not finished: the limit",
                           lane.groups.size());
  auto group = std::make_shared<Group>();
  group->id = next_group_++;
  group->ask_id = header.ask_id();
  group->step = ask.step;
  group->payload_bytes = header.payload_bytes();
  group->memory = step.memory;
  group->mine.resize(num_rows);
  for (const uint32_t global : header.rows()) {
    const uint32_t index = step.IndexOf(global);
    if (index == RowMap::kAbsent) {
      Abandon(*group);
      return InvalidArgument("group {}: row {}, which was not asked for",
                             header.group_id(), global);
    }
    Row& row = step.rows[index];
    if (row.group == group->id) {
      Abandon(*group);
      return InvalidArgument("group {}: row {} twice", header.group_id(),
                             global);
    }
    group->indices.push_back(index);
    if (!row.AskedOf(lane.worker) || row.leased || row.settled() ||
        row.state == RowState::kCopying) {
      ++counters_.duplicate_rows;
      continue;
    }
    if (row.state == RowState::kClaimed) {  // begun by a group that stopped
      ++counters_.duplicate_rows;
      ++counters_.payload_copies;
    }
    row.group = group->id;
    row.state = RowState::kClaimed;
  }
  return group;
}

std::optional<Fetcher::Piece> Fetcher::End(Lane& lane, const Piece& piece,
                                           MonotonicTime now) {
  Group& group = *piece.group;
  if (group.source) return Moved(piece);
  Step& step = *group.step;
  // The step may have got other memory since the group began.
  const bool home = group.memory == step.memory;
  const RowState arrived = home ? RowState::kDone : RowState::kMoving;
  uint64_t rows = 0;
  for (size_t i = 0; i < group.indices.size(); ++i) {
    if (group.mine[i] == 0) continue;
    Row& row = step.rows[group.indices[i]];
    row.state = piece.last ? arrived : RowState::kClaimed;
    if (piece.last && home) row.group = 0;
    row.on_device = false;
    ++rows;
  }
  HeardFrom(lane, now);
  if (!piece.last) return std::nullopt;
  counters_.payload_copies += rows;
  peers_[lane.worker].plane = Plane::kGrpc;
  CountRows(lane, group, rows, now);
  Answered(lane, group.ask_id, group.indices);
  const std::shared_ptr<Group> keep = piece.group;
  lane.groups.erase(piece.peer_group);
  if (!home && rows > 0) {
    group.source = std::exchange(group.memory, step.memory);
    return Piece{keep, 0, 0, true};
  }
  step.done += rows;
  if (step.all_done() && rows > 0) Completed(&step);
  return std::nullopt;
}

// The worker lives.
void Fetcher::HeardFrom(Lane& lane, MonotonicTime now) {
  Peer& peer = peers_[lane.worker];
  lane.last_delivery = now;
  if (!peer.suspect) return;
  peer.suspect = false;
  peer.avoid_until = now;
  peer.last_error.clear();
  dirty_ = true;
}

// `rows` of the group, which has come, were new.
void Fetcher::CountRows(Lane& lane, const Group& group, uint64_t rows,
                        MonotonicTime now) {
  Peer& peer = peers_[lane.worker];
  const uint64_t bytes = rows * group.step->layout->row_bytes;
  peer.rows += rows;
  peer.bytes += bytes;
  peer.failures_in_row = 0;
  counters_.rows += rows;
  counters_.bytes += bytes;
  MeasureRow(lane, peer, group.indices.size(), now);
  if (const auto ask = lane.asks.find(group.ask_id); ask != lane.asks.end()) {
    latency_.Add(now - ask->second.asked_at);
    if (latency_.count() >= kFadeRows) latency_.Fade();
  }
  if (starved_) dirty_ = true;
}

// A group of `rows` has come after the time that the worker spent on it: since
// the group before, or since it had something to do.
void Fetcher::MeasureRow(Lane& lane, Peer& peer, size_t rows,
                         MonotonicTime now) const {
  const Duration spent = now - std::exchange(lane.busy_since, now);
  const double row_ns =
      static_cast<double>(spent.count()) / static_cast<double>(rows);
  if (peer.row_ns <= 0)
    peer.row_ns = row_ns;
  else
    peer.row_ns += (row_ns - peer.row_ns) * kRowTimeGain;
}

// The lane owes these rows no longer.
void Fetcher::Answered(Lane& lane, uint64_t ask_id,
                       std::span<const uint32_t> indices) {
  const auto found = lane.asks.find(ask_id);
  if (found == lane.asks.end()) return;
  OpenAsk& ask = found->second;
  for (const uint32_t index : indices) {
    Row& row = ask.step->rows[index];
    if (!row.AskedOf(lane.worker)) continue;
    row.RemoveAsked(lane.worker);
    --ask.open;
    --lane.open_rows;
    const uint64_t bytes = ask.step->BroughtBytes(index);
    ask.open_bytes -= bytes;
    lane.open_bytes -= bytes;
    if (row.num_asked() == 0) MakePending(*ask.step, index);
  }
  if (ask.open > 0) return;
  EndLease(lane, ask);
  lane.asks.erase(found);
}

// Withdraws what is still asked of a step that has all its rows.
void Fetcher::Completed(const Step* step) {
  for (Peer& peer : peers_) {
    if (!peer.lane) continue;
    for (auto it = peer.lane->asks.begin(); it != peer.lane->asks.end();) {
      if (it->second.step.get() != step) {
        ++it;
        continue;
      }
      peer.lane->open_rows -= it->second.open;
      peer.lane->open_bytes -= it->second.open_bytes;
      withdrawals_.push_back({.lane = peer.lane, .ask_id = it->first});
      KeepLease(*peer.lane, it->first, it->second);
      it = peer.lane->asks.erase(it);
      dirty_ = true;
    }
  }
}

// Gives the group's claims back.
void Fetcher::Abandon(Group& group) {
  for (const uint32_t index : group.indices) {
    Row& row = group.step->rows[index];
    if (row.group != group.id) continue;
    if (group.received > 0) ++counters_.payload_copies;
    row.group = 0;
    row.state = RowState::kWanted;
  }
}

absl::Status Fetcher::RowError(Lane& lane, const v1::RowsResponse& header,
                               MonotonicTime now) {
  const auto found = lane.asks.find(header.ask_id());
  if (found == lane.asks.end()) {  // withdrawn
    AnsweredEnding(lane, header);
    return absl::OkStatus();
  }
  if (const auto group = lane.groups.find(header.group_id());
      group != lane.groups.end() && group->second->ask_id == header.ask_id()) {
    Abandon(*group->second);
    lane.groups.erase(group);
  }
  const std::shared_ptr<Step> step = found->second.step;
  std::vector<uint32_t> failed;
  for (const uint32_t global : header.rows()) {
    const uint32_t index = step->IndexOf(global);
    if (index == RowMap::kAbsent)
      return InvalidArgument("an error of row {}, which was not asked for",
                             global);
    failed.push_back(index);
  }
  if (failed.empty()) failed = found->second.indices;
  auto code = static_cast<absl::StatusCode>(header.error().code());
  if (code == absl::StatusCode::kOk) code = absl::StatusCode::kUnknown;
  Peer& peer = peers_[lane.worker];
  bool avoid = false;
  for (const uint32_t index : failed) {
    Row& row = step->rows[index];
    if (!row.AskedOf(lane.worker) || row.settled()) continue;
    // A worker that has taken its end of the lending socket back knows the
    // memory no longer.
    const bool taken_back = found->second.memory && !found->second.leased;
    if ((OfWorker(code) || taken_back) &&
        ++row.errors < config_.max_row_errors) {
      row.AddFailed(lane.worker);
      avoid = true;
      ++counters_.failed_over_rows;
    } else if (step->error.ok()) {
      // The worker's text names the sample: which of the group's rows it is,
      // only the worker knows.
      step->error =
          MakeStatus(code, "epoch {} step {}: {} (worker {})", step->epoch,
                     step->step, header.error().message(), peer.ref.name);
      dirty_ = true;
    }
  }
  if (avoid) Avoid(peer, header.error().message(), now);
  Answered(lane, header.ask_id(), failed);
  return absl::OkStatus();
}

void Fetcher::Avoid(Peer& peer, std::string_view error, MonotonicTime now) {
  const int shift =
      static_cast<int>(std::min<uint32_t>(peer.failures_in_row, 16));
  peer.avoid_until =
      now + std::min(config_.backoff_max, config_.backoff_min * (1 << shift));
  ++peer.failures_in_row;
  peer.last_error = std::string(error);
  peer.suspect = false;
  dirty_ = true;
}

void Fetcher::Break(Lane& lane) {
  lane.broken = true;
  dirty_ = true;
}

void Fetcher::Closed(Lane& lane, const absl::Status& status,
                     MonotonicTime now) {
  Peer& peer = peers_[lane.worker];
  lane.closed = true;
  for (auto& [id, group] : lane.groups) Abandon(*group);
  lane.groups.clear();
  for (auto& [id, ask] : lane.asks) KeepLease(lane, id, ask);
  if (HasLeases(lane)) closed_lanes_.push_back(peer.lane);
  for (auto& [id, ask] : lane.asks)
    for (const uint32_t index : ask.indices) {
      Row& row = ask.step->rows[index];
      if (!row.AskedOf(lane.worker)) continue;
      row.RemoveAsked(lane.worker);
      row.AddFailed(lane.worker);
      if (row.settled()) continue;
      ++counters_.failed_over_rows;
      if (row.num_asked() == 0) MakePending(*ask.step, index);
    }
  lane.asks.clear();
  lane.open_rows = 0;
  lane.open_bytes = 0;
  ++peer.failures;
  Avoid(peer,
        status.ok() ? std::string_view("the worker ended the stream")
                    : Message(status),
        now);
  peer.last_code = status.code();
  peer.lane.reset();
  dirty_ = true;
  CheckRefusals();
}

void Fetcher::CheckRefusals() {
  if (steps_.empty() || peer_of_.empty()) return;
  for (const uint16_t worker : peer_of_) {
    const Peer& peer = peers_[worker];
    if (peer.failures_in_row < config_.max_refusals ||
        peer.last_code == absl::StatusCode::kOk || OfWorker(peer.last_code))
      return;
  }
  Step& head = *steps_.front();
  const Peer& peer = peers_[peer_of_.front()];
  if (head.error.ok() && !head.complete())
    head.error = MakeStatus(
        peer.last_code, "epoch {} step {}: every worker refuses; {}: {}",
        head.epoch, head.step, peer.ref.name, peer.last_error);
}

}  // namespace leat::client
