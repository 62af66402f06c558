// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/leases.h"

#include <algorithm>

#include "core/status.h"

namespace leat::client {

absl::StatusOr<bool> Leases::Opened(Lane& lane, const v1::Opened& opened) {
  if (lane.retired) return false;
  if (lane.lending.state != Lending::State::kUnknown)
    return InvalidArgument("an `opened` that is not the first");
  window_.dirty = true;
  if (config_.plane == Plane::kGrpc || opened.lending_address().empty()) {
    LendingFailed(lane, Unimplemented("it takes no memory of consumers"));
    return false;
  }
  lane.lending.state = Lending::State::kOpening;
  lane.lending.device_uuids.assign(opened.device_uuids().begin(),
                                   opened.device_uuids().end());
  return true;
}

void Leases::LendingReady(Lane& lane) {
  lane.lending.state = Lending::State::kReady;
  const std::shared_ptr<Lane>& shared = peers_.at(lane.worker).lane;
  if (shared.get() == &lane)
    for (const std::shared_ptr<Step>& step : window_.steps)
      OfferLoan(shared, *step);
  window_.dirty = true;
}

void Leases::LendingFailed(Lane& lane, const absl::Status& status) {
  const Lending::State before =
      std::exchange(lane.lending.state, Lending::State::kNone);
  window_.dirty = true;
  if (!Forced() || lane.closed || lane.retired || !plane_error_.ok()) return;
  // A worker that goes ends its streams too, which is no reason to give up.
  if (before == Lending::State::kReady && absl::IsUnavailable(status)) return;
  const Peer& peer = peers_.at(lane.worker);
  plane_error_ = FailedPrecondition("LEAT_PLANE={}: worker {} at {}: {}",
                                    Name(config_.plane), peer.ref.name,
                                    peer.ref.address, Message(status));
}

std::shared_ptr<BatchMemory> Leases::PartFor(const Lane& lane,
                                             const StepMemory& memory) const {
  const std::shared_ptr<BatchMemory>& whole = memory.buffer.memory();
  if (whole->kind() != BatchMemory::Kind::kDevice) return whole;
  const std::vector<std::string>& uuids = lane.lending.device_uuids;
  const bool same_gpu =
      whole->fd() >= 0 && std::find(uuids.begin(), uuids.end(),
                                    whole->device_uuid()) != uuids.end();
  if (config_.plane == Plane::kDevice) return same_gpu ? whole : nullptr;
  if (!same_gpu || config_.plane == Plane::kShared ||
      lane.lending.refused.contains(whole->id()))
    return whole->host_part();
  return whole;
}

void Leases::OfferToAll(const Step& step) {
  for (const Peer& peer : peers_.peers())
    if (peer.lane) OfferLoan(peer.lane, step);
}

void Leases::OfferLoan(const std::shared_ptr<Lane>& lane, const Step& step) {
  Lending& lending = lane->lending;
  if (lending.state != Lending::State::kReady || lane->closed) return;
  const std::shared_ptr<BatchMemory> memory = PartFor(*lane, *step.memory);
  if (!memory) {  // only if forced
    LendingFailed(
        *lane, FailedPrecondition("it has no GPU {} for its rows",
                                  step.memory->buffer.memory()->device_uuid()));
    return;
  }
  if (memory->fd() < 0 || lending.lent.contains(memory->id()) ||
      lending.asked.contains(memory->id()) ||
      lending.refused.contains(memory->id()))
    return;
  lending.asked.insert(memory->id());
  loans_.push_back({lane, memory});
}

void Leases::Lent(Lane& lane, uint64_t memory_id, const absl::Status& status) {
  lane.lending.asked.erase(memory_id);
  window_.dirty = true;
  if (status.ok()) {
    lane.lending.lent.insert(memory_id);
    lane.lending.refused.erase(memory_id);
    return;
  }
  lane.lending.refused.insert(memory_id);
  // The rows of a worker that has stopped, or has enough, come by bytes.
  if (Forced() && !absl::IsDeadlineExceeded(status) &&
      !absl::IsResourceExhausted(status))
    LendingFailed(lane, status);
}

void Leases::Returned(Lane& lane, uint64_t memory_id) {
  lane.lending.lent.erase(memory_id);
  lane.lending.refused.clear();  // there is room again
}

Leases::Placement Leases::PlacementOf(const Step& step, const Row& row,
                                      uint16_t worker) {
  if (config_.plane == Plane::kGrpc || row.num_asked() > 0)
    return Placement::kBytes;
  const Placement other = Forced() ? Placement::kWait : Placement::kBytes;
  const std::shared_ptr<Lane>& lane = peers_.at(worker).lane;
  if (!lane || lane->lending.state != Lending::State::kReady) return other;
  // A worker that holds on to memory gets no more of it.
  if (quarantined_ >= config_.max_quarantined || lane->lending.stale > 0 ||
      peers_.at(worker).leased_lanes > 0)
    return Placement::kBytes;
  const std::shared_ptr<BatchMemory> part = PartFor(*lane, *step.memory);
  if (part && (part->fd() < 0 || lane->lending.refused.contains(part->id())))
    return Placement::kBytes;
  if (part && lane->lending.lent.contains(part->id()))
    return Placement::kInPlace;
  OfferLoan(lane, step);
  return other;
}

void Leases::WantMemory(const std::shared_ptr<Step>& step) {
  if (std::exchange(step->wants_memory, true)) return;
  homeless_.push_back(step);
}

std::vector<Lane*> Leases::LanesWithAsks() {
  std::vector<Lane*> lanes;
  for (const Peer& peer : peers_.peers())
    if (peer.lane) lanes.push_back(peer.lane.get());
  for (const std::shared_ptr<Lane>& lane : closed_lanes_)
    lanes.push_back(lane.get());
  return lanes;
}

std::optional<Piece> Leases::Evacuate(const std::shared_ptr<Step>& step,
                                      BatchPool::Buffer* buffer) {
  step->wants_memory = false;
  window_.dirty = true;
  const auto waits = [](const Row& row) { return row.pending && row.leased; };
  if (std::find(window_.steps.begin(), window_.steps.end(), step) ==
          window_.steps.end() ||
      std::none_of(step->rows.begin(), step->rows.end(), waits))
    return std::nullopt;
  const std::shared_ptr<StepMemory> old = std::exchange(
      step->memory, std::make_shared<StepMemory>(std::move(*buffer)));
  ++window_.counters.evacuated_steps;
  ++quarantined_;  // it has leases: a row that waits is leased
  old->quarantined = true;
  for (Lane* lane : LanesWithAsks())
    for (auto* asks : {&lane->asks, &lane->ending})
      for (const auto& [id, ask] : *asks)
        if (ask.leased && ask.memory == old) ++lane->lending.stale;
  auto group = std::make_shared<Group>();
  group->id = window_.next_group++;
  group->step = step;
  group->memory = step->memory;
  group->source = old;
  for (uint32_t index = 0; index < step->rows.size(); ++index) {
    Row& row = step->rows[index];
    row.leased = false;
    if (row.state != RowState::kDone) continue;
    row.state = RowState::kMoving;
    row.group = group->id;
    group->indices.push_back(index);
    --step->done;
  }
  if (group->indices.empty()) return std::nullopt;
  group->mine.assign(group->indices.size(), 1);
  return Piece{std::move(group), 0, 0, true};
}

void Leases::Begin(OpenAsk& ask, const BatchMemory& part) {
  ask.memory = ask.step->memory;
  ask.on_device = part.kind() == BatchMemory::Kind::kDevice;
  ask.leased = true;
  ++ask.memory->leases;
}

void Leases::AskEnded(Lane& lane, uint64_t ask_id) {
  const auto found = lane.ending.find(ask_id);
  if (found == lane.ending.end()) return;
  EndLease(lane, found->second);
  Release(found->second.memory);
  lane.ending.erase(found);
}

void Leases::AnsweredEnding(Lane& lane, const v1::RowsResponse& header) {
  const auto found = lane.ending.find(header.ask_id());
  if (found == lane.ending.end()) return;
  OpenAsk& ask = found->second;
  if (header.rows().empty()) ask.unanswered.clear();
  for (const uint32_t global : header.rows())
    std::erase(ask.unanswered, ask.step->IndexOf(global));
  if (!ask.unanswered.empty()) return;
  EndLease(lane, ask);
  Release(ask.memory);
  lane.ending.erase(found);
}

void Leases::KeepLease(Lane& lane, uint64_t ask_id, OpenAsk ask) {
  if (!ask.leased) return;
  for (const uint32_t index : ask.indices)
    if (ask.step->rows[index].AskedOf(lane.worker))
      ask.unanswered.push_back(index);
  lane.ending.emplace(ask_id, std::move(ask));
}

void Leases::KeepClosed(const std::shared_ptr<Lane>& lane) {
  if (!HasLeases(*lane)) return;
  closed_lanes_.push_back(lane);
  ++peers_.at(lane->worker).leased_lanes;
}

void Leases::EndLease(Lane& lane, OpenAsk& ask) {
  if (!std::exchange(ask.leased, false)) return;
  StepMemory& memory = *ask.memory;
  --memory.leases;
  window_.dirty = true;
  if (memory.quarantined) {
    --lane.lending.stale;
    if (memory.leases == 0) --quarantined_;
    return;
  }
  for (const uint32_t index : ask.indices) ask.step->rows[index].leased = false;
}

bool Leases::HasLeases(const Lane& lane) {
  const auto leased = [](const auto& ask) { return ask.second.leased; };
  return !lane.ending.empty() ||
         std::any_of(lane.asks.begin(), lane.asks.end(), leased);
}

void Leases::LendingClosed(Lane& lane) {
  for (auto& [id, ask] : lane.asks) EndLease(lane, ask);
  for (auto& [id, ask] : lane.ending) {
    EndLease(lane, ask);
    Release(ask.memory);
  }
  lane.ending.clear();
  lane.lending.state = Lending::State::kNone;
  lane.lending.lent.clear();
  lane.lending.asked.clear();
  // Forced: the stream is opened again.
  if (Forced()) lane.broken = true;
  const size_t kept =
      std::erase_if(closed_lanes_, [&](const std::shared_ptr<Lane>& closed) {
        return closed.get() == &lane;
      });
  if (kept > 0) --peers_.at(lane.worker).leased_lanes;
  window_.dirty = true;
}

}  // namespace leat::client
