// SPDX-License-Identifier: Apache-2.0
//
// Delivery in place: what is lent to whom, who may still write where, and how a
// step gets away from a worker that does not answer.
//
// Two invariants keep a row from being written by two. A row is asked in place
// only if nobody else is asked for it; and it is asked of nobody else while it
// is leased in the step's own memory. So in a step's own memory a leased row
// has one possible writer, and every other answer writes to rows without lease.
#include <algorithm>
#include <utility>

#include "client/fetcher.h"
#include "core/status.h"

namespace leat::client {

std::string_view Name(Plane plane) {
  switch (plane) {
    case Plane::kGrpc:
      return "grpc";
    case Plane::kShared:
      return "shm";
    case Plane::kDevice:
      return "cuda";
    case Plane::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<Plane> PlaneOf(std::string_view name) {
  for (const Plane plane :
       {Plane::kAuto, Plane::kGrpc, Plane::kShared, Plane::kDevice})
    if (Name(plane) == name) return plane;
  return InvalidArgument("plane \"{}\": want auto, grpc, shm or cuda", name);
}

std::string Fetcher::plane() const {
  std::string text;
  for (const Plane plane : {Plane::kDevice, Plane::kShared, Plane::kGrpc}) {
    const auto used = [&](const Peer& peer) {
      return peer.present && peer.plane == plane;
    };
    if (std::none_of(peers_.begin(), peers_.end(), used)) continue;
    if (!text.empty()) text += '+';
    text += Name(plane);
  }
  return text.empty() ? std::string(Name(Plane::kGrpc)) : text;
}

void Fetcher::OpenLane(uint16_t worker, std::vector<Action>* actions) {
  std::shared_ptr<Lane>& lane = peers_[worker].lane;
  if (lane) return;
  lane = std::make_shared<Lane>();
  lane->worker = worker;
  if (actions != nullptr) actions->push_back({.lane = lane});
}

absl::StatusOr<bool> Fetcher::Opened(Lane& lane, const v1::Opened& opened) {
  if (lane.lending.state != Lending::State::kUnknown)
    return InvalidArgument("an `opened` that is not the first");
  dirty_ = true;
  if (config_.plane == Plane::kGrpc || opened.lending_address().empty()) {
    LendingFailed(lane, Unimplemented("it takes no memory of consumers"));
    return false;
  }
  lane.lending.state = Lending::State::kOpening;
  lane.lending.device_uuids.assign(opened.device_uuids().begin(),
                                   opened.device_uuids().end());
  return true;
}

void Fetcher::LendingReady(Lane& lane) {
  lane.lending.state = Lending::State::kReady;
  const std::shared_ptr<Lane>& shared = peers_[lane.worker].lane;
  if (shared.get() == &lane)
    for (const std::shared_ptr<Step>& step : steps_) OfferLoan(shared, *step);
  dirty_ = true;
}

void Fetcher::LendingFailed(Lane& lane, const absl::Status& status) {
  const Lending::State before =
      std::exchange(lane.lending.state, Lending::State::kNone);
  dirty_ = true;
  if (!Forced() || lane.closed || !plane_error_.ok()) return;
  // A worker that goes ends its streams too, which is no reason to give up.
  if (before == Lending::State::kReady && absl::IsUnavailable(status)) return;
  const Peer& peer = peers_[lane.worker];
  plane_error_ = FailedPrecondition("LEAT_PLANE={}: worker {} at {}: {}",
                                    Name(config_.plane), peer.ref.name,
                                    peer.ref.address, Message(status));
}

// What of a step's memory the worker is to write to: a GPU's if it has that
// GPU, else this host's. nullptr: nothing.
std::shared_ptr<BatchMemory> Fetcher::PartFor(const Lane& lane,
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

void Fetcher::OfferLoan(const std::shared_ptr<Lane>& lane, const Step& step) {
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

void Fetcher::Lent(Lane& lane, uint64_t memory_id, const absl::Status& status) {
  lane.lending.asked.erase(memory_id);
  dirty_ = true;
  if (status.ok()) {
    lane.lending.lent.insert(memory_id);
    lane.lending.refused.erase(memory_id);
    return;
  }
  lane.lending.refused.insert(memory_id);
  // One that has stopped, or has enough: its rows come by bytes.
  if (Forced() && !absl::IsDeadlineExceeded(status) &&
      !absl::IsResourceExhausted(status))
    LendingFailed(lane, status);
}

void Fetcher::Returned(Lane& lane, uint64_t memory_id) {
  lane.lending.lent.erase(memory_id);
  lane.lending.refused.clear();  // there is room again
}

Fetcher::Placement Fetcher::PlacementOf(const Step& step, const Row& row,
                                        uint16_t worker) {
  if (config_.plane == Plane::kGrpc || row.num_asked() > 0)
    return Placement::kBytes;
  const Placement other = Forced() ? Placement::kWait : Placement::kBytes;
  const std::shared_ptr<Lane>& lane = peers_[worker].lane;
  if (!lane || lane->lending.state != Lending::State::kReady) return other;
  // A worker that holds on to memory gets no more of it.
  const auto same = [&](const std::shared_ptr<Lane>& closed) {
    return closed->worker == worker;
  };
  if (quarantined_ >= config_.max_quarantined || lane->lending.stale > 0 ||
      std::any_of(closed_lanes_.begin(), closed_lanes_.end(), same))
    return Placement::kBytes;
  const std::shared_ptr<BatchMemory> part = PartFor(*lane, *step.memory);
  if (part && (part->fd() < 0 || lane->lending.refused.contains(part->id())))
    return Placement::kBytes;
  if (part && lane->lending.lent.contains(part->id()))
    return Placement::kInPlace;
  OfferLoan(lane, step);
  return other;
}

void Fetcher::WantMemory(const std::shared_ptr<Step>& step) {
  if (std::exchange(step->wants_memory, true)) return;
  homeless_.push_back(step);
}

std::vector<Lane*> Fetcher::LanesWithAsks() {
  std::vector<Lane*> lanes;
  for (const Peer& peer : peers_)
    if (peer.lane) lanes.push_back(peer.lane.get());
  for (const std::shared_ptr<Lane>& lane : closed_lanes_)
    lanes.push_back(lane.get());
  return lanes;
}

std::optional<Fetcher::Piece> Fetcher::Evacuate(
    const std::shared_ptr<Step>& step, BatchPool::Buffer* buffer) {
  step->wants_memory = false;
  dirty_ = true;
  const auto waits = [](const Row& row) { return row.pending && row.leased; };
  if (std::find(steps_.begin(), steps_.end(), step) == steps_.end() ||
      std::none_of(step->rows.begin(), step->rows.end(), waits))
    return std::nullopt;
  const std::shared_ptr<StepMemory> old = std::exchange(
      step->memory, std::make_shared<StepMemory>(std::move(*buffer)));
  ++counters_.evacuated_steps;
  ++quarantined_;  // it has leases: a row that waits is leased
  old->quarantined = true;
  for (Lane* lane : LanesWithAsks())
    for (auto* asks : {&lane->asks, &lane->ending})
      for (const auto& [id, ask] : *asks)
        if (ask.leased && ask.memory == old) ++lane->lending.stale;
  auto group = std::make_shared<Group>();
  group->id = next_group_++;
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

std::optional<Fetcher::Piece> Fetcher::Moved(const Piece& piece) {
  Group& group = *piece.group;
  Step& step = *group.step;
  const bool home = group.memory == step.memory;
  uint64_t rows = 0;
  for (size_t i = 0; i < group.indices.size(); ++i) {
    if (group.mine[i] == 0) continue;
    ++rows;
    if (!home) continue;
    Row& row = step.rows[group.indices[i]];
    row.state = RowState::kDone;
    row.group = 0;
  }
  counters_.payload_copies += rows;
  if (!home) {
    group.source = std::exchange(group.memory, step.memory);
    return piece;
  }
  step.done += rows;
  dirty_ = true;
  if (step.all_done() && rows > 0) Completed(&step);
  return std::nullopt;
}

bool Fetcher::HasUploads() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const auto& step) {
    return step->upload == Step::Upload::kDue && step->complete();
  });
}

std::vector<std::shared_ptr<Step>> Fetcher::TakeUploads() {
  std::vector<std::shared_ptr<Step>> uploads;
  for (const std::shared_ptr<Step>& step : steps_) {
    if (step->upload != Step::Upload::kDue || !step->complete()) continue;
    step->upload = Step::Upload::kUnderWay;
    uploads.push_back(step);
  }
  return uploads;
}

void Fetcher::Uploaded(Step& step, const absl::Status& status) {
  if (status.ok())
    step.upload = Step::Upload::kDone;
  else if (step.error.ok())
    step.error = Annotate(
        status, fmt::format("epoch {} step {}", step.epoch, step.step));
}

// `rows` have been written where their ask said.
absl::StatusOr<std::optional<Fetcher::Piece>> Fetcher::Placed(
    Lane& lane, const v1::RowsResponse& header, size_t data_bytes,
    MonotonicTime now) {
  const auto found = lane.asks.find(header.ask_id());
  if (found == lane.asks.end()) {
    if (header.ask_id() >= next_ask_)
      return InvalidArgument("rows of ask {}, which was never made",
                             header.ask_id());
    counters_.duplicate_rows += static_cast<uint64_t>(header.rows_size());
    AnsweredEnding(lane, header);
    return std::nullopt;
  }
  OpenAsk& ask = found->second;
  const std::shared_ptr<Step> step = ask.step;
  const auto num_rows = static_cast<size_t>(header.rows_size());
  if (!ask.memory || data_bytes > 0 || header.payload_bytes() > 0 ||
      num_rows == 0 || num_rows > ask.indices.size())
    return InvalidArgument(
        "group {}: {} rows with places and {} bytes; want 1 to {} rows {}",
        header.group_id(), num_rows, data_bytes + header.payload_bytes(),
        ask.indices.size(), ask.memory ? "without data" : "by bytes");
  const bool home = ask.memory == step->memory;
  auto group = std::make_shared<Group>();
  group->id = next_group_++;
  group->ask_id = header.ask_id();
  group->step = step;
  for (const uint32_t global : header.rows()) {
    const uint32_t index = step->IndexOf(global);
    if (index == RowMap::kAbsent ||
        (home && ask.leased && !step->rows[index].leased))
      return InvalidArgument("group {}: row {}, which was not asked for",
                             header.group_id(), global);
    group->indices.push_back(index);
  }
  uint64_t rows = 0;
  for (const uint32_t index : group->indices) {
    Row& row = step->rows[index];
    // A claim may be taken over only if nothing is written by halves.
    const bool mine = row.AskedOf(lane.worker) &&
                      (row.state == RowState::kWanted ||
                       (row.state == RowState::kClaimed && !home));
    group->mine.push_back(mine ? 1 : 0);
    if (!mine) {
      ++counters_.duplicate_rows;
      continue;
    }
    ++rows;
    row.state = home ? RowState::kDone : RowState::kMoving;
    row.group = home ? 0 : group->id;
    row.on_device = ask.on_device;
  }
  counters_.placed_rows += rows;
  peers_[lane.worker].plane = ask.on_device ? Plane::kDevice : Plane::kShared;
  group->source = ask.memory;
  group->memory = step->memory;
  HeardFrom(lane, now);
  CountRows(lane, *group, rows, now);
  Answered(lane, header.ask_id(), group->indices);
  if (!home && rows > 0) return Piece{std::move(group), 0, 0, true};
  step->done += rows;
  if (step->all_done() && rows > 0) Completed(step.get());
  return std::nullopt;
}

absl::Status Fetcher::AskEnded(Lane& lane, uint64_t ask_id) {
  if (ask_id >= next_ask_ || lane.asks.contains(ask_id))
    return InvalidArgument("ask {} ended, which was not withdrawn", ask_id);
  const auto found = lane.ending.find(ask_id);
  if (found == lane.ending.end()) return absl::OkStatus();
  EndLease(lane, found->second);
  lane.ending.erase(found);
  return absl::OkStatus();
}

// An answer to an ask that was withdrawn.
void Fetcher::AnsweredEnding(Lane& lane, const v1::RowsResponse& header) {
  const auto found = lane.ending.find(header.ask_id());
  if (found == lane.ending.end()) return;
  OpenAsk& ask = found->second;
  if (header.rows().empty()) ask.unanswered.clear();
  for (const uint32_t global : header.rows())
    std::erase(ask.unanswered, ask.step->IndexOf(global));
  if (!ask.unanswered.empty()) return;
  EndLease(lane, ask);
  lane.ending.erase(found);
}

// The ask's rows are owed no longer, but may still be written.
void Fetcher::KeepLease(Lane& lane, uint64_t ask_id, OpenAsk ask) {
  if (!ask.leased) return;
  for (const uint32_t index : ask.indices)
    if (ask.step->rows[index].AskedOf(lane.worker))
      ask.unanswered.push_back(index);
  lane.ending.emplace(ask_id, std::move(ask));
}

void Fetcher::EndLease(Lane& lane, OpenAsk& ask) {
  if (!std::exchange(ask.leased, false)) return;
  StepMemory& memory = *ask.memory;
  --memory.leases;
  dirty_ = true;
  if (memory.quarantined) {
    --lane.lending.stale;
    if (memory.leases == 0) --quarantined_;
    return;
  }
  for (const uint32_t index : ask.indices) ask.step->rows[index].leased = false;
}

bool Fetcher::HasLeases(const Lane& lane) {
  const auto leased = [](const auto& ask) { return ask.second.leased; };
  return !lane.ending.empty() ||
         std::any_of(lane.asks.begin(), lane.asks.end(), leased);
}

void Fetcher::LendingClosed(Lane& lane) {
  for (auto& [id, ask] : lane.asks) EndLease(lane, ask);
  for (auto& [id, ask] : lane.ending) EndLease(lane, ask);
  lane.ending.clear();
  lane.lending.state = Lending::State::kNone;
  lane.lending.lent.clear();
  lane.lending.asked.clear();
  // Forced: the stream is opened again.
  if (Forced()) lane.broken = true;
  std::erase_if(closed_lanes_, [&](const std::shared_ptr<Lane>& closed) {
    return closed.get() == &lane;
  });
  dirty_ = true;
}

}  // namespace leat::client
