// SPDX-License-Identifier: Apache-2.0
//
// Answers that deliver. Rows come in one of three ways:
//
//   as bytes            Begin ─► frame ─► End ─────────────┬──────────► kDone
//                                                          │ the step moved
//   in place            Begin ───────────────────► kDone   ▼
//   in former memory    Begin ─► move ─► FinishMove ◄──── move
#include <algorithm>
#include <chrono>
#include <utility>

#include "client/fetch/deliveries.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr uint64_t kFadeRows = 8192;  // after this, older latencies count half
// A busy processor makes an answer as late as this.
constexpr Duration kShortTrip = std::chrono::milliseconds(10);

absl::Status NeverRequested(const v1::RowsResponse& header) {
  return InvalidArgument("rows of request {}, which was never made",
                         header.request_id());
}

}  // namespace

absl::StatusOr<Deliveries::Arrival> Deliveries::Begin(
    WorkerStream& stream, const v1::RowsResponse& header, size_t data_bytes,
    MonotonicTime now) {
  now_ = now;
  if (header.has_error()) {
    RETURN_IF_ERROR(RowError(stream, header, now));
    return Arrival();
  }
  if (header.request_ended()) {
    const uint64_t id = header.request_id();
    if (id >= next_request_ || stream.requests.open.contains(id))
      return InvalidArgument("request {} ended, which was not withdrawn", id);
    leases_.RequestEnded(stream, id);
    return Arrival();
  }
  if (header.placed()) return Placed(stream, header, data_bytes, now);
  return BeginData(stream, header, data_bytes);
}

absl::StatusOr<Deliveries::Arrival> Deliveries::BeginData(
    WorkerStream& stream, const v1::RowsResponse& header, size_t data_bytes) {
  StreamRequests& requests = stream.requests;
  auto found = requests.groups.find(header.group_id());
  if (found == requests.groups.end()) {
    const auto request = requests.open.find(header.request_id());
    if (request == requests.open.end()) {
      if (header.request_id() >= next_request_) return NeverRequested(header);
      if (stream.sharing.ending.contains(header.request_id()))
        return InvalidArgument("data of request {}, whose rows have slots",
                               header.request_id());
      // The request was withdrawn, since its rows came from elsewhere.
      if (header.offset() == 0)
        in_flight_.counters.duplicate_rows +=
            static_cast<uint64_t>(header.rows_size());
      return Arrival();
    }
    if (header.offset() != 0)
      return InvalidArgument("group {} begins at offset {}", header.group_id(),
                             header.offset());
    ASSIGN_OR_RETURN(std::shared_ptr<FrameGroup> group,
                     Claim(stream, request->second, header));
    found = requests.groups.emplace(header.group_id(), std::move(group)).first;
  }
  FrameGroup& group = *found->second;
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
  FramePiece piece{found->second, header.group_id(), group.received, false};
  group.received += data_bytes;
  piece.last = group.received == group.payload_bytes;
  return Arrival{.frame = std::move(piece), .move = std::nullopt};
}

absl::StatusOr<std::shared_ptr<FrameGroup>> Deliveries::Claim(
    WorkerStream& stream, OpenRequest& request,
    const v1::RowsResponse& header) {
  Step& step = *request.step;
  if (request.lease.memory)
    return InvalidArgument("data of request {}, whose rows have slots",
                           header.request_id());
  const auto num_rows = static_cast<size_t>(header.rows_size());
  if (num_rows == 0 || num_rows > request.indices.size() ||
      header.payload_bytes() != num_rows * step.layout->row_bytes)
    return InvalidArgument(
        "group {}: {} rows and {} bytes; want 1 to {} rows of {} bytes",
        header.group_id(), num_rows, header.payload_bytes(),
        request.indices.size(), step.layout->row_bytes);
  if (stream.requests.groups.size() >= config_.max_stream_groups)
    return InvalidArgument("{} groups begun and not finished: the limit",
                           stream.requests.groups.size());
  auto group = std::make_shared<FrameGroup>();
  group->id = in_flight_.next_group++;
  group->at_worker = std::chrono::microseconds(header.worker_us());
  group->request_id = header.request_id();
  group->step = request.step;
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
    if (!row.AskedOf(stream.worker) || row.leased || row.settled() ||
        row.state == RowState::kCopying) {
      ++in_flight_.counters.duplicate_rows;
      continue;
    }
    if (row.state == RowState::kClaimed) {  // begun by a group that stopped
      ++in_flight_.counters.duplicate_rows;
      ++in_flight_.counters.payload_copies;
    }
    row.group = group->id;
    row.state = RowState::kClaimed;
  }
  return group;
}

std::optional<MovePiece> Deliveries::End(WorkerStream& stream,
                                         const FramePiece& piece,
                                         MonotonicTime now) {
  now_ = now;
  FrameGroup& group = *piece.group;
  Step& step = *group.step;
  // The step may have moved to other memory since the group began.
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
  endpoints_.HeardFrom(stream, now);
  if (!piece.last) return std::nullopt;
  in_flight_.counters.payload_copies += rows;
  endpoints_.at(stream.worker).transport = Transport::kGrpc;
  CountTrip(stream, group, now);
  CountRows(stream, group.request_id, group.indices.size(), rows, step, now);
  Answered(stream, group.request_id, group.indices);
  stream.requests.groups.erase(piece.number);
  if (!is_current && rows > 0)
    return MovePiece{.id = group.id,
                     .request_id = group.request_id,
                     .step = group.step,
                     .indices = group.indices,
                     .mine = group.mine,
                     .from = group.memory,
                     .to = step.memory};
  AddDone(step, rows);
  return std::nullopt;
}

bool Deliveries::FinishMove(MovePiece& piece, MonotonicTime now) {
  now_ = now;
  Step& step = *piece.step;
  const bool is_current = piece.to == step.memory;
  uint64_t rows = 0;
  for (size_t i = 0; i < piece.indices.size(); ++i) {
    if (piece.mine[i] == 0) continue;
    ++rows;
    if (!is_current) continue;
    Row& row = step.rows[piece.indices[i]];
    row.state = RowState::kDone;
    row.group = 0;
  }
  in_flight_.counters.payload_copies += rows;
  if (!is_current) {
    leases_.Release(piece.from);
    piece.from = std::exchange(piece.to, step.memory);
    return false;
  }
  in_flight_.dirty = true;
  AddDone(step, rows);
  return true;
}

// Returns the rows that were written where their request said, as a move from
// there to the step's memory, which may be the same.
absl::StatusOr<MovePiece> Deliveries::PlacedRows(const OpenRequest& request,
                                                 const v1::RowsResponse& header,
                                                 size_t data_bytes) {
  const Step& step = *request.step;
  const std::shared_ptr<StepMemory>& memory = request.lease.memory;
  const auto num_rows = static_cast<size_t>(header.rows_size());
  if (!memory || data_bytes > 0 || header.payload_bytes() > 0 ||
      num_rows == 0 || num_rows > request.indices.size())
    return InvalidArgument(
        "group {}: {} rows with slots and {} bytes; want 1 to {} rows {}",
        header.group_id(), num_rows, data_bytes + header.payload_bytes(),
        request.indices.size(), memory ? "without data" : "by bytes");
  const bool is_current = memory == step.memory;
  MovePiece piece{.id = in_flight_.next_group++,
                  .request_id = header.request_id(),
                  .step = request.step,
                  .indices = {},
                  .mine = {},
                  .from = memory,
                  .to = step.memory};
  for (const uint32_t global : header.rows()) {
    const uint32_t index = step.IndexOf(global);
    if (index == RowMap::kAbsent ||
        (is_current && request.lease.lives && !step.rows[index].leased))
      return InvalidArgument("group {}: row {}, which was not asked for",
                             header.group_id(), global);
    piece.indices.push_back(index);
  }
  return piece;
}

absl::StatusOr<Deliveries::Arrival> Deliveries::Placed(
    WorkerStream& stream, const v1::RowsResponse& header, size_t data_bytes,
    MonotonicTime now) {
  const auto found = stream.requests.open.find(header.request_id());
  if (found == stream.requests.open.end()) {
    if (header.request_id() >= next_request_) return NeverRequested(header);
    in_flight_.counters.duplicate_rows +=
        static_cast<uint64_t>(header.rows_size());
    leases_.AnsweredEnding(stream, header);
    return Arrival();
  }
  const bool on_device = found->second.lease.on_device;
  ASSIGN_OR_RETURN(MovePiece piece,
                   PlacedRows(found->second, header, data_bytes));
  Step& step = *piece.step;
  const bool is_current = piece.from == piece.to;
  uint64_t rows = 0;
  for (const uint32_t index : piece.indices) {
    Row& row = step.rows[index];
    // A claim may be taken over only while no piece is being written.
    const bool mine = row.AskedOf(stream.worker) &&
                      (row.state == RowState::kWanted ||
                       (row.state == RowState::kClaimed && !is_current));
    piece.mine.push_back(mine ? 1 : 0);
    if (!mine) {
      ++in_flight_.counters.duplicate_rows;
      continue;
    }
    ++rows;
    row.state = is_current ? RowState::kDone : RowState::kMoving;
    row.group = is_current ? 0 : piece.id;
    row.on_device = on_device;
  }
  in_flight_.counters.placed_rows += rows;
  endpoints_.at(stream.worker).transport =
      on_device ? Transport::kDevice : Transport::kShared;
  endpoints_.HeardFrom(stream, now);
  CountRows(stream, piece.request_id, piece.indices.size(), rows, step, now);
  Answered(stream, piece.request_id, piece.indices);
  if (!is_current && rows > 0)
    return Arrival{.frame = std::nullopt, .move = std::move(piece)};
  AddDone(step, rows);
  return Arrival();
}

// Counts the time that a received group spent on the network. If a link is slow
// its answers wait for each other, and take longer than the first one did; over
// a long distance all take as long.
void Deliveries::CountTrip(WorkerStream& stream, const FrameGroup& group,
                           MonotonicTime now) {
  StreamRequests& requests = stream.requests;
  const auto request = requests.open.find(group.request_id);
  if (request == requests.open.end() || group.at_worker == Duration(0)) return;
  const OpenRequest& asked = request->second;
  const Duration all = now - asked.asked_at;
  const Duration trip = std::max(all - group.at_worker, Duration(0));
  requests.least_trip = std::min(requests.least_trip, trip);
  const Duration queued =
      std::max(trip - std::max(requests.least_trip, kShortTrip), Duration(0));
  const auto rows = static_cast<int64_t>(group.indices.size());
  const auto of = static_cast<int64_t>(asked.indices.size());
  for (AnswerTimes* const to :
       {&in_flight_.counters.answers, &endpoints_.at(stream.worker).answers}) {
    to->all += all * rows / of;
    to->queued += queued * rows / of;
  }
}

// Counts `rows` new rows of a received group of `group_rows`.
void Deliveries::CountRows(WorkerStream& stream, uint64_t request_id,
                           size_t group_rows, uint64_t rows, const Step& step,
                           MonotonicTime now) {
  const uint64_t bytes = rows * step.layout->row_bytes;
  in_flight_.counters.rows += rows;
  in_flight_.counters.bytes += bytes;
  endpoints_.Delivered(stream, rows, bytes, group_rows, now);
  const auto& requests = stream.requests.open;
  if (const auto request = requests.find(request_id);
      request != requests.end()) {
    in_flight_.latency.Add(now - request->second.asked_at);
    if (in_flight_.latency.count() >= kFadeRows) in_flight_.latency.Fade();
  }
  if (in_flight_.starved) in_flight_.dirty = true;
}

}  // namespace leat::client
