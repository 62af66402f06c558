// SPDX-License-Identifier: Apache-2.0
//
// Asks, and answers that deliver. Failures are in
// client/fetch/deliveries_failed.cc.
#include "client/fetch/deliveries.h"

#include <algorithm>

#include "core/status.h"

namespace leat::client {
namespace {

constexpr uint64_t kFadeRows = 8192;  // then older latencies count half
constexpr size_t kNoMessage = ~size_t{0};

absl::Status NeverAsked(const v1::RowsResponse& header) {
  return InvalidArgument("rows of ask {}, which was never made",
                         header.ask_id());
}

}  // namespace

// The lane's message that takes the row, or a new one.
LaneMessage& Deliveries::MessageFor(const std::shared_ptr<Step>& step,
                                    uint32_t index,
                                    const std::shared_ptr<Lane>& lane,
                                    const BatchMemory* part, MonotonicTime now,
                                    std::vector<LaneMessage>* messages) {
  if (std::exchange(lane->message_round, round_) != round_)
    lane->messages[0] = lane->messages[1] = kNoMessage;
  size_t& open = lane->messages[part != nullptr ? 1 : 0];
  const uint64_t memory_id = part != nullptr ? part->id() : 0;
  const bool alone = !step->AbsentOf(index).empty();
  if (!alone && open != kNoMessage) {
    LaneMessage& message = (*messages)[open];
    if (message.memory_id == memory_id &&
        message.rows.size() < config_.max_ask_rows &&
        message.brought_bytes + step->BroughtBytes(index) <=
            config_.max_ask_bytes)
      return message;
  }
  const uint64_t id = next_ask_++;
  if (!alone) open = messages->size();
  messages->push_back({.lane = lane,
                       .ask_id = id,
                       .epoch = step->epoch,
                       .step = step->step,
                       .memory_id = memory_id,
                       .brought = step->brought});
  OpenAsk& ask = lane->asks[id];
  ask.step = step;
  ask.asked_at = now;
  if (part != nullptr) Leases::Begin(ask, *part);
  return messages->back();
}

void Deliveries::Ask(const std::shared_ptr<Step>& step, uint32_t index,
                     uint16_t worker, bool in_place, MonotonicTime now,
                     std::vector<LaneMessage>* messages) {
  const std::shared_ptr<Lane>& lane = peers_.LaneOf(worker, now);
  Row& row = step->rows[index];
  if (!row.AddAsked(worker)) return;
  if (lane->open_rows == 0) lane->busy_since = now;
  lane->last_asked = now;
  if (row.FailedAt(worker)) row.ForgetFailed();
  row.asked_at = now;
  const std::shared_ptr<BatchMemory> part =
      in_place ? leases_.PartFor(*lane, *step->memory) : nullptr;
  LaneMessage& message =
      MessageFor(step, index, lane, part.get(), now, messages);
  const uint64_t bytes = step->BroughtBytes(index);
  message.rows.push_back(step->globals[index]);
  message.samples.push_back(step->samples[index]);
  message.brought_bytes += bytes;
  const std::span<const uint64_t> absent = step->AbsentOf(index);
  message.absent.assign(absent.begin(), absent.end());
  if (in_place) {
    message.places.push_back(index);
    row.leased = true;
  }
  OpenAsk& ask = lane->asks[message.ask_id];
  ask.indices.push_back(index);
  ++ask.open;
  ask.open_bytes += bytes;
  ++lane->open_rows;
  lane->open_bytes += bytes;
}

void Deliveries::AskElsewhere(Lane& lane, Row::Again why, HedgeBudget* budget) {
  // The budget is for the rows that the consumer waits for, first.
  const Step* head =
      window_.steps.empty() ? nullptr : window_.steps.front().get();
  for (const bool of_head : {true, false})
    for (auto& [id, ask] : lane.asks) {
      if ((ask.step.get() == head) != of_head) continue;
      for (const uint32_t index : ask.indices) {
        Row& row = ask.step->rows[index];
        if (row.pending || row.settled() || !row.AskedOf(lane.worker) ||
            row.num_asked() >= Row::kMaxAsks)
          continue;
        if (why == Row::Again::kLate && !budget->Take()) return;
        row.again = why;
        window_.MakePending(*ask.step, index);
      }
    }
}

absl::StatusOr<std::optional<Piece>> Deliveries::Begin(
    Lane& lane, const v1::RowsResponse& header, size_t data_bytes,
    MonotonicTime now) {
  now_ = now;
  if (header.has_error()) {
    RETURN_IF_ERROR(RowError(lane, header, now));
    return std::nullopt;
  }
  if (header.ask_ended()) {
    const uint64_t id = header.ask_id();
    if (id >= next_ask_ || lane.asks.contains(id))
      return InvalidArgument("ask {} ended, which was not withdrawn", id);
    leases_.AskEnded(lane, id);
    return std::nullopt;
  }
  if (header.placed()) return Placed(lane, header, data_bytes, now);
  return BeginData(lane, header, data_bytes);
}

absl::StatusOr<std::optional<Piece>> Deliveries::BeginData(
    Lane& lane, const v1::RowsResponse& header, size_t data_bytes) {
  auto found = lane.groups.find(header.group_id());
  if (found == lane.groups.end()) {
    const auto ask = lane.asks.find(header.ask_id());
    if (ask == lane.asks.end()) {
      if (header.ask_id() >= next_ask_) return NeverAsked(header);
      if (lane.ending.contains(header.ask_id()))
        return InvalidArgument("data of ask {}, whose rows have places",
                               header.ask_id());
      // The ask was withdrawn, since its rows came from elsewhere.
      if (header.offset() == 0)
        window_.counters.duplicate_rows +=
            static_cast<uint64_t>(header.rows_size());
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

absl::StatusOr<std::shared_ptr<Group>> Deliveries::Claim(
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
  group->id = window_.next_group++;
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
      ++window_.counters.duplicate_rows;
      continue;
    }
    if (row.state == RowState::kClaimed) {  // begun by a group that stopped
      ++window_.counters.duplicate_rows;
      ++window_.counters.payload_copies;
    }
    row.group = group->id;
    row.state = RowState::kClaimed;
  }
  return group;
}

std::optional<Piece> Deliveries::End(Lane& lane, const Piece& piece,
                                     MonotonicTime now) {
  now_ = now;
  Group& group = *piece.group;
  if (group.source) return FinishMove(piece);
  Step& step = *group.step;
  // The step may have got other memory since the group began.
  const bool is_current = group.memory == step.memory;
  const RowState arrived = is_current ? RowState::kDone : RowState::kMoving;
  uint64_t rows = 0;
  for (size_t i = 0; i < group.indices.size(); ++i) {
    if (group.mine[i] == 0) continue;
    Row& row = step.rows[group.indices[i]];
    row.state = piece.last ? arrived : RowState::kClaimed;
    if (piece.last && is_current) row.group = 0;
    row.on_device = false;
    ++rows;
  }
  peers_.HeardFrom(lane, now);
  if (!piece.last) return std::nullopt;
  window_.counters.payload_copies += rows;
  peers_.at(lane.worker).plane = Plane::kGrpc;
  CountRows(lane, group, rows, now);
  Answered(lane, group.ask_id, group.indices);
  const std::shared_ptr<Group> keep = piece.group;
  lane.groups.erase(piece.peer_group);
  if (!is_current && rows > 0) {
    group.source = std::exchange(group.memory, step.memory);
    return Piece{keep, 0, 0, true};
  }
  step.done += rows;
  if (step.all_done() && rows > 0) Completed(&step);
  return std::nullopt;
}

std::optional<Piece> Deliveries::FinishMove(const Piece& piece) {
  Group& group = *piece.group;
  Step& step = *group.step;
  const bool is_current = group.memory == step.memory;
  uint64_t rows = 0;
  for (size_t i = 0; i < group.indices.size(); ++i) {
    if (group.mine[i] == 0) continue;
    ++rows;
    if (!is_current) continue;
    Row& row = step.rows[group.indices[i]];
    row.state = RowState::kDone;
    row.group = 0;
  }
  window_.counters.payload_copies += rows;
  if (!is_current) {
    leases_.Release(group.source);
    group.source = std::exchange(group.memory, step.memory);
    return piece;
  }
  step.done += rows;
  window_.dirty = true;
  if (step.all_done() && rows > 0) Completed(&step);
  return std::nullopt;
}

// The group of `rows` that have been written where their ask said.
absl::StatusOr<std::shared_ptr<Group>> Deliveries::PlacedGroup(
    const OpenAsk& ask, const v1::RowsResponse& header, size_t data_bytes) {
  const Step& step = *ask.step;
  const auto num_rows = static_cast<size_t>(header.rows_size());
  if (!ask.memory || data_bytes > 0 || header.payload_bytes() > 0 ||
      num_rows == 0 || num_rows > ask.indices.size())
    return InvalidArgument(
        "group {}: {} rows with places and {} bytes; want 1 to {} rows {}",
        header.group_id(), num_rows, data_bytes + header.payload_bytes(),
        ask.indices.size(), ask.memory ? "without data" : "by bytes");
  const bool is_current = ask.memory == step.memory;
  auto group = std::make_shared<Group>();
  group->id = window_.next_group++;
  group->ask_id = header.ask_id();
  group->step = ask.step;
  for (const uint32_t global : header.rows()) {
    const uint32_t index = step.IndexOf(global);
    if (index == RowMap::kAbsent ||
        (is_current && ask.leased && !step.rows[index].leased))
      return InvalidArgument("group {}: row {}, which was not asked for",
                             header.group_id(), global);
    group->indices.push_back(index);
  }
  group->source = ask.memory;
  group->memory = step.memory;
  return group;
}

absl::StatusOr<std::optional<Piece>> Deliveries::Placed(
    Lane& lane, const v1::RowsResponse& header, size_t data_bytes,
    MonotonicTime now) {
  const auto found = lane.asks.find(header.ask_id());
  if (found == lane.asks.end()) {
    if (header.ask_id() >= next_ask_) return NeverAsked(header);
    window_.counters.duplicate_rows +=
        static_cast<uint64_t>(header.rows_size());
    leases_.AnsweredEnding(lane, header);
    return std::nullopt;
  }
  const OpenAsk& ask = found->second;
  ASSIGN_OR_RETURN(std::shared_ptr<Group> group,
                   PlacedGroup(ask, header, data_bytes));
  const std::shared_ptr<Step> step = ask.step;
  const bool is_current = group->source == group->memory;
  uint64_t rows = 0;
  for (const uint32_t index : group->indices) {
    Row& row = step->rows[index];
    // A claim may be taken over only if nothing is written by halves.
    const bool mine = row.AskedOf(lane.worker) &&
                      (row.state == RowState::kWanted ||
                       (row.state == RowState::kClaimed && !is_current));
    group->mine.push_back(mine ? 1 : 0);
    if (!mine) {
      ++window_.counters.duplicate_rows;
      continue;
    }
    ++rows;
    row.state = is_current ? RowState::kDone : RowState::kMoving;
    row.group = is_current ? 0 : group->id;
    row.on_device = ask.on_device;
  }
  window_.counters.placed_rows += rows;
  peers_.at(lane.worker).plane =
      ask.on_device ? Plane::kDevice : Plane::kShared;
  peers_.HeardFrom(lane, now);
  CountRows(lane, *group, rows, now);
  Answered(lane, header.ask_id(), group->indices);
  if (!is_current && rows > 0) return Piece{std::move(group), 0, 0, true};
  step->done += rows;
  if (step->all_done() && rows > 0) Completed(step.get());
  return std::nullopt;
}

// `rows` of the group, which has come, were new.
void Deliveries::CountRows(Lane& lane, const Group& group, uint64_t rows,
                           MonotonicTime now) {
  const uint64_t bytes = rows * group.step->layout->row_bytes;
  window_.counters.rows += rows;
  window_.counters.bytes += bytes;
  peers_.Delivered(lane, rows, bytes, group.indices.size(), now);
  if (const auto ask = lane.asks.find(group.ask_id); ask != lane.asks.end()) {
    window_.latency.Add(now - ask->second.asked_at);
    if (window_.latency.count() >= kFadeRows) window_.latency.Fade();
  }
  if (window_.starved) window_.dirty = true;
}

// The lane owes these rows no longer.
void Deliveries::Answered(Lane& lane, uint64_t ask_id,
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
    if (row.num_asked() == 0) window_.MakePending(*ask.step, index);
  }
  if (ask.open > 0) return;
  if (ask.step->trace) TraceAsk(lane, ask_id, ask, false);
  leases_.EndLease(lane, ask);
  leases_.Release(ask.memory);
  lane.asks.erase(found);
}

void Deliveries::TraceAsk(const Lane& lane, uint64_t ask_id, const OpenAsk& ask,
                          bool failed) const {
  const TracedStep& trace = *ask.step->trace;
  trace.Record({.of = nullptr,
                .kind = SpanKind::kAsk,
                .failed = failed,
                .id = trace.AskId(ask_id),
                .parent = trace.StepId(),
                .begin_ns = trace.Unix(ask.asked_at),
                .end_ns = trace.Unix(std::max(now_, ask.asked_at)),
                .rows = ask.indices.size(),
                .worker = peers_.at(lane.worker).ref.name});
}

// Withdraws what is still asked of a step that has all its rows.
void Deliveries::Completed(const Step* step) {
  for (const Peer& peer : peers_.peers()) {
    if (!peer.lane) continue;
    for (auto it = peer.lane->asks.begin(); it != peer.lane->asks.end();) {
      if (it->second.step.get() != step) {
        ++it;
        continue;
      }
      if (step->trace) TraceAsk(*peer.lane, it->first, it->second, false);
      peer.lane->open_rows -= it->second.open;
      peer.lane->open_bytes -= it->second.open_bytes;
      withdrawals_.push_back({.lane = peer.lane, .ask_id = it->first});
      leases_.KeepLease(*peer.lane, it->first, it->second);
      leases_.Release(it->second.memory);
      it = peer.lane->asks.erase(it);
      window_.dirty = true;
    }
  }
}

}  // namespace leat::client
