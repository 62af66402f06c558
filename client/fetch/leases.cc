// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/leases.h"

#include <algorithm>

#include "core/status.h"

namespace leat::client {

absl::StatusOr<bool> Leases::Opened(WorkerStream& stream,
                                    const v1::Opened& opened,
                                    MonotonicTime now) {
  endpoints_.HeardFrom(stream, now);
  StreamRequests& requests = stream.requests;
  if (requests.busy_since != MonotonicTime{})
    requests.least_trip =
        std::min(requests.least_trip, Duration(now - requests.busy_since));
  if (stream.retired) return false;
  if (stream.sharing.state != StreamSharing::State::kUnknown)
    return InvalidArgument("an `opened` that is not the first");
  in_flight_.dirty = true;
  if (config_.transport == Transport::kGrpc ||
      opened.memory_address().empty()) {
    SharingFailed(stream, Unimplemented("it takes no memory of consumers"));
    return false;
  }
  stream.sharing.state = StreamSharing::State::kOpening;
  stream.sharing.device_uuids.assign(opened.device_uuids().begin(),
                                     opened.device_uuids().end());
  return true;
}

void Leases::SharingReady(WorkerStream& stream) {
  stream.sharing.state = StreamSharing::State::kReady;
  const std::shared_ptr<WorkerStream>& shared =
      endpoints_.at(stream.worker).stream;
  if (shared.get() == &stream)
    for (const std::shared_ptr<Step>& step : in_flight_.steps)
      OfferMemory(shared, *step);
  in_flight_.dirty = true;
}

void Leases::SharingFailed(WorkerStream& stream, const absl::Status& status) {
  const StreamSharing::State before =
      std::exchange(stream.sharing.state, StreamSharing::State::kNone);
  in_flight_.dirty = true;
  if (!Forced() || stream.closed || stream.retired || !transport_error_.ok())
    return;
  // A worker that ends closes its streams too, which is no reason to give up.
  if (before == StreamSharing::State::kReady && absl::IsUnavailable(status))
    return;
  const WorkerEndpoint& endpoint = endpoints_.at(stream.worker);
  transport_error_ = FailedPrecondition(
      "LEAT_TRANSPORT={}: worker {} at {}: {}", Name(config_.transport),
      endpoint.ref.name, endpoint.ref.address, Message(status));
}

std::shared_ptr<BatchMemory> Leases::PartFor(const WorkerStream& stream,
                                             const StepMemory& memory) const {
  const std::shared_ptr<BatchMemory>& whole = memory.buffer.memory();
  if (whole->kind() != BatchMemory::Kind::kDevice) return whole;
  const std::vector<std::string>& uuids = stream.sharing.device_uuids;
  const bool same_gpu =
      whole->fd() >= 0 && std::find(uuids.begin(), uuids.end(),
                                    whole->device_uuid()) != uuids.end();
  if (config_.transport == Transport::kDevice)
    return same_gpu ? whole : nullptr;
  if (!same_gpu || config_.transport == Transport::kShared ||
      stream.sharing.refused.contains(whole->id()))
    return whole->host_part();
  return whole;
}

void Leases::OfferToAll(const Step& step) {
  for (const WorkerEndpoint& endpoint : endpoints_.endpoints())
    if (endpoint.stream) OfferMemory(endpoint.stream, step);
}

void Leases::OfferMemory(const std::shared_ptr<WorkerStream>& stream,
                         const Step& step) {
  StreamSharing& sharing = stream->sharing;
  if (sharing.state != StreamSharing::State::kReady || stream->closed) return;
  const std::shared_ptr<BatchMemory> memory = PartFor(*stream, *step.memory);
  if (!memory) {  // only if forced
    SharingFailed(*stream, FailedPrecondition(
                               "it has no GPU {} for its rows",
                               step.memory->buffer.memory()->device_uuid()));
    return;
  }
  if (memory->fd() < 0 || sharing.shared.contains(memory->id()) ||
      sharing.asked.contains(memory->id()) ||
      sharing.refused.contains(memory->id()))
    return;
  sharing.asked.insert(memory->id());
  in_flight_.decided.offers.push_back({stream, memory});
}

void Leases::Shared(WorkerStream& stream, uint64_t memory_id,
                    const absl::Status& status) {
  stream.sharing.asked.erase(memory_id);
  in_flight_.dirty = true;
  if (status.ok()) {
    stream.sharing.shared.insert(memory_id);
    stream.sharing.refused.erase(memory_id);
    return;
  }
  stream.sharing.refused.insert(memory_id);
  // Rows of a worker that has stopped, or has enough memory, come as bytes.
  if (Forced() && !absl::IsDeadlineExceeded(status) &&
      !absl::IsResourceExhausted(status))
    SharingFailed(stream, status);
}

void Leases::Returned(WorkerStream& stream, uint64_t memory_id) {
  stream.sharing.shared.erase(memory_id);
  stream.sharing.refused.clear();  // there is room again
}

Leases::Placement Leases::PlacementOf(const Step& step, const Row& row,
                                      uint16_t worker) {
  if (config_.transport == Transport::kGrpc || row.num_asked() > 0)
    return Placement::kBytes;
  const Placement other = Forced() ? Placement::kWait : Placement::kBytes;
  const std::shared_ptr<WorkerStream>& stream = endpoints_.at(worker).stream;
  if (!stream || stream->sharing.state != StreamSharing::State::kReady)
    return other;
  // A worker that does not return memory gets no more of it.
  if (quarantined_ >= config_.max_quarantined || stream->sharing.stale > 0 ||
      endpoints_.at(worker).leased_streams > 0)
    return Placement::kBytes;
  const std::shared_ptr<BatchMemory> part = PartFor(*stream, *step.memory);
  if (part && (part->fd() < 0 || stream->sharing.refused.contains(part->id())))
    return Placement::kBytes;
  if (part && stream->sharing.shared.contains(part->id()))
    return Placement::kInPlace;
  OfferMemory(stream, step);
  return other;
}

void Leases::WantMemory(const std::shared_ptr<Step>& step) {
  if (std::exchange(step->wants_memory, true)) return;
  in_flight_.decided.to_move.push_back(step);
}

bool Leases::NeedsToMove(const std::shared_ptr<Step>& step) const {
  const auto waits = [](const Row& row) { return row.pending && row.leased; };
  return std::find(in_flight_.steps.begin(), in_flight_.steps.end(), step) !=
             in_flight_.steps.end() &&
         std::any_of(step->rows.begin(), step->rows.end(), waits);
}

void Leases::CountStale(const std::shared_ptr<StepMemory>& memory) {
  const auto count = [&](WorkerStream& stream) {
    for (const auto* requests : {&stream.requests.open, &stream.sharing.ending})
      for (const auto& [id, request] : *requests)
        if (request.lease.lives && request.lease.memory == memory)
          ++stream.sharing.stale;
  };
  for (const WorkerEndpoint& endpoint : endpoints_.endpoints())
    if (endpoint.stream) count(*endpoint.stream);
  for (const std::shared_ptr<WorkerStream>& stream : closed_streams_)
    count(*stream);
}

std::optional<MovePiece> Leases::MoveToNewBuffer(
    const std::shared_ptr<Step>& step, BatchPool::Buffer* buffer) {
  // 1. A step that is gone, or that no row waits for any more, does not move.
  step->wants_memory = false;
  in_flight_.dirty = true;
  if (!NeedsToMove(step)) return std::nullopt;
  // 2. The step gets the new memory.
  MovePiece piece{
      .id = in_flight_.next_group++,
      .step = step,
      .indices = {},
      .mine = {},
      .from = std::exchange(step->memory,
                            std::make_shared<StepMemory>(std::move(*buffer))),
      .to = step->memory};
  ++in_flight_.counters.moved_steps;
  // 3. The old memory has leases, since a waiting row is leased: it is
  // quarantined, and its leases are stale.
  piece.from->quarantined = true;
  ++quarantined_;
  CountStale(piece.from);
  // 4. In the new memory no row is leased, and rows that had arrived are
  // moving.
  for (uint32_t index = 0; index < step->rows.size(); ++index) {
    Row& row = step->rows[index];
    row.leased = false;
    if (row.state != RowState::kDone) continue;
    row.state = RowState::kMoving;
    row.group = piece.id;
    piece.indices.push_back(index);
    --step->done;
  }
  if (piece.indices.empty()) return std::nullopt;
  piece.mine.assign(piece.indices.size(), 1);
  return piece;
}

void Leases::Begin(OpenRequest& request, const BatchMemory& part) {
  request.lease.memory = request.step->memory;
  request.lease.on_device = part.kind() == BatchMemory::Kind::kDevice;
  request.lease.lives = true;
  ++request.lease.memory->leases;
}

void Leases::RequestEnded(WorkerStream& stream, uint64_t request_id) {
  const auto found = stream.sharing.ending.find(request_id);
  if (found == stream.sharing.ending.end()) return;
  EndLease(stream, found->second);
  Release(found->second.lease.memory);
  stream.sharing.ending.erase(found);
}

void Leases::AnsweredEnding(WorkerStream& stream,
                            const v1::RowsResponse& header) {
  const auto found = stream.sharing.ending.find(header.request_id());
  if (found == stream.sharing.ending.end()) return;
  OpenRequest& request = found->second;
  if (header.rows().empty()) request.lease.unanswered.clear();
  for (const uint32_t global : header.rows())
    std::erase(request.lease.unanswered, request.step->IndexOf(global));
  if (!request.lease.unanswered.empty()) return;
  EndLease(stream, request);
  Release(request.lease.memory);
  stream.sharing.ending.erase(found);
}

void Leases::KeepLease(WorkerStream& stream, uint64_t request_id,
                       OpenRequest request) {
  if (!request.lease.lives) return;
  for (const uint32_t index : request.indices)
    if (request.step->rows[index].AskedOf(stream.worker))
      request.lease.unanswered.push_back(index);
  stream.sharing.ending.emplace(request_id, std::move(request));
}

void Leases::KeepClosed(const std::shared_ptr<WorkerStream>& stream) {
  if (!HasLeases(*stream)) return;
  closed_streams_.push_back(stream);
  ++endpoints_.at(stream->worker).leased_streams;
}

void Leases::EndLease(WorkerStream& stream, OpenRequest& request) {
  if (!std::exchange(request.lease.lives, false)) return;
  StepMemory& memory = *request.lease.memory;
  --memory.leases;
  in_flight_.dirty = true;
  if (memory.quarantined) {
    --stream.sharing.stale;
    if (memory.leases == 0) --quarantined_;
    return;
  }
  for (const uint32_t index : request.indices)
    request.step->rows[index].leased = false;
}

bool Leases::HasLeases(const WorkerStream& stream) {
  const auto leased = [](const auto& request) {
    return request.second.lease.lives;
  };
  return !stream.sharing.ending.empty() ||
         std::any_of(stream.requests.open.begin(), stream.requests.open.end(),
                     leased);
}

void Leases::SharingClosed(WorkerStream& stream) {
  for (auto& [id, request] : stream.requests.open) EndLease(stream, request);
  for (auto& [id, request] : stream.sharing.ending) {
    EndLease(stream, request);
    Release(request.lease.memory);
  }
  stream.sharing.ending.clear();
  stream.sharing.state = StreamSharing::State::kNone;
  stream.sharing.shared.clear();
  stream.sharing.asked.clear();
  // Forced: the stream is opened again.
  if (Forced()) stream.broken = true;
  const size_t kept = std::erase_if(
      closed_streams_, [&](const std::shared_ptr<WorkerStream>& closed) {
        return closed.get() == &stream;
      });
  if (kept > 0) --endpoints_.at(stream.worker).leased_streams;
  in_flight_.dirty = true;
}

}  // namespace leat::client
