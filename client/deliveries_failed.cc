// SPDX-License-Identifier: Apache-2.0
//
// Answers that do not deliver: errors of rows, and the end of a stream.
#include <utility>

#include "client/deliveries.h"
#include "core/status.h"

namespace leat::client {

// Gives the group's claims back.
void Deliveries::Abandon(Group& group) {
  for (const uint32_t index : group.indices) {
    Row& row = group.step->rows[index];
    if (row.group != group.id) continue;
    if (group.received > 0) ++window_.counters.payload_copies;
    row.group = 0;
    row.state = RowState::kWanted;
  }
}

absl::Status Deliveries::RowError(Lane& lane, const v1::RowsResponse& header,
                                  MonotonicTime now) {
  const auto found = lane.asks.find(header.ask_id());
  if (found == lane.asks.end()) {  // withdrawn
    leases_.AnsweredEnding(lane, header);
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
  Peer& peer = peers_.at(lane.worker);
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
      ++window_.counters.failed_over_rows;
    } else if (step->error.ok()) {
      // The worker's text names the sample: which of the group's rows it is,
      // only the worker knows.
      step->error =
          MakeStatus(code, "epoch {} step {}: {} (worker {})", step->epoch,
                     step->step, header.error().message(), peer.ref.name);
      window_.dirty = true;
    }
  }
  if (avoid) peers_.Avoid(peer, header.error().message(), now);
  Answered(lane, header.ask_id(), failed);
  return absl::OkStatus();
}

void Deliveries::Closed(Lane& lane, const absl::Status& status,
                        MonotonicTime now) {
  Peer& peer = peers_.at(lane.worker);
  lane.closed = true;
  for (auto& [id, group] : lane.groups) Abandon(*group);
  lane.groups.clear();
  for (auto& [id, ask] : lane.asks) leases_.KeepLease(lane, id, ask);
  leases_.KeepClosed(peer.lane);
  for (auto& [id, ask] : lane.asks)
    for (const uint32_t index : ask.indices) {
      Row& row = ask.step->rows[index];
      if (!row.AskedOf(lane.worker)) continue;
      row.RemoveAsked(lane.worker);
      row.AddFailed(lane.worker);
      if (row.settled()) continue;
      ++window_.counters.failed_over_rows;
      if (row.num_asked() == 0) window_.MakePending(*ask.step, index);
    }
  lane.asks.clear();
  lane.open_rows = 0;
  lane.open_bytes = 0;
  ++peer.failures;
  peers_.Avoid(peer,
               status.ok() ? std::string_view("the worker ended the stream")
                           : Message(status),
               now);
  peer.last_code = status.code();
  peer.lane.reset();
}

}  // namespace leat::client
