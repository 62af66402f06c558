// SPDX-License-Identifier: Apache-2.0
//
// Answers that do not deliver: errors of rows, and the end of a stream. The
// fault of an error (leat.v1.Fault) decides what becomes of the row:
//
//   the sample's  It is final: every worker would say so.
//   the object's  Another worker is asked. When the two agree (absences.h), the
//                 row is asked again with the sample in RequestRows.absent.
//   the worker's  Others are asked; the worker is left alone for a while.
//   transient     The same, for a shorter while. Only row_timeout ends the row.
//
// An older worker does not report the fault. Then the code decides:
// UNAVAILABLE, CANCELLED, ABORTED, DEADLINE_EXCEEDED and RESOURCE_EXHAUSTED are
// transient; INTERNAL and UNKNOWN go to other workers, max_row_errors times;
// the rest is the sample's.
#include <utility>

#include "client/fetch/deliveries.h"
#include "core/status.h"

namespace leat::client {
namespace {

enum class Outcome : uint8_t { kFinal, kCounted, kTransient, kWorker, kObject };

Outcome OutcomeOf(v1::Fault fault, absl::StatusCode code) {
  switch (fault) {
    case v1::FAULT_SAMPLE:
      return Outcome::kFinal;
    case v1::FAULT_OBJECT:
      return Outcome::kObject;
    case v1::FAULT_WORKER:
      return Outcome::kWorker;
    case v1::FAULT_TRANSIENT:
      return Outcome::kTransient;
    default:
      break;
  }
  if (IsTransient(code)) return Outcome::kTransient;
  if (code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown)
    return Outcome::kCounted;
  return Outcome::kFinal;
}

absl::StatusCode CodeOf(const v1::RowError& error) {
  const auto code = static_cast<absl::StatusCode>(error.code());
  return code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code;
}

}  // namespace

// Gives the group's claims back.
void Deliveries::Abandon(FrameGroup& group) {
  leases_.Release(group.memory);
  for (const uint32_t index : group.indices) {
    Row& row = group.step->rows[index];
    if (row.group != group.id) continue;
    if (group.received > 0) ++in_flight_.counters.payload_copies;
    row.group = 0;
    row.state = RowState::kWanted;
  }
}

absl::Status Deliveries::RowError(WorkerStream& stream,
                                  const v1::RowsResponse& header,
                                  MonotonicTime now) {
  StreamRequests& requests = stream.requests;
  const auto found = requests.open.find(header.request_id());
  if (found == requests.open.end()) {  // withdrawn
    leases_.AnsweredEnding(stream, header);
    return absl::OkStatus();
  }
  if (const auto group = requests.groups.find(header.group_id());
      group != requests.groups.end() &&
      group->second->request_id == header.request_id()) {
    Abandon(*group->second);
    requests.groups.erase(group);
  }
  const v1::RowError& error = header.error();
  if (error.fault() == v1::FAULT_OBJECT &&
      error.sample() >= endpoints_.num_samples())
    return InvalidArgument("sample {} is not there: the dataset has {} samples",
                           error.sample(), endpoints_.num_samples());
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
  endpoints_.HeardFrom(stream, now);
  FailRows(stream, found->second, failed, error, now);
  Answered(stream, header.request_id(), failed);
  return absl::OkStatus();
}

void Deliveries::FailRows(WorkerStream& stream, const OpenRequest& request,
                          std::span<const uint32_t> failed,
                          const v1::RowError& error, MonotonicTime now) {
  Step& step = *request.step;
  WorkerEndpoint& endpoint = endpoints_.at(stream.worker);
  const absl::StatusCode code = CodeOf(error);
  Outcome outcome = OutcomeOf(error.fault(), code);
  // An older worker that has closed its end of the memory socket no longer
  // knows the memory.
  if (outcome == Outcome::kFinal && error.fault() != v1::FAULT_SAMPLE &&
      request.lease.memory && !request.lease.lives)
    outcome = Outcome::kCounted;
  bool avoid = false, fault = false;
  for (const uint32_t index : failed) {
    Row& row = step.rows[index];
    if (!row.AskedOf(stream.worker) || row.settled()) continue;
    if (outcome == Outcome::kFinal ||
        (outcome == Outcome::kCounted &&
         ++row.errors >= config_.max_row_errors)) {
      FailStep(step, code, error.message(), endpoint);
      continue;
    }
    row.AddFailed(stream.worker);
    ++in_flight_.counters.failed_over_rows;
    // A worker that ignores an agreement is failing, too.
    const bool deaf = outcome == Outcome::kObject &&
                      !IsAbsent(stream, step, index, error, now);
    fault |= outcome == Outcome::kWorker || deaf;
    avoid |= outcome == Outcome::kTransient || outcome == Outcome::kCounted;
  }
  if (fault) endpoints_.NoteFault(endpoint, error.message(), now);
  if (!avoid) return;
  // Once for all requests that were open at that time.
  if (step.supplied && code == absl::StatusCode::kResourceExhausted &&
      !endpoint.left_alone(now))
    endpoints_.ReduceLimit(stream);
  endpoints_.Avoid(endpoint, error.message(), false, now);
}

// Handles a worker's report that it does not find a sample of the row. Returns
// false if it was told before that the sample is absent.
bool Deliveries::IsAbsent(WorkerStream& stream, Step& step, uint32_t index,
                          const v1::RowError& error, MonotonicTime now) {
  const WorkerEndpoint& endpoint = endpoints_.at(stream.worker);
  Row& row = step.rows[index];
  if (!step.absences) step.absences = std::make_unique<Absences>();
  row.disputed = true;
  const bool alone = endpoint.present && endpoints_.num_named() == 1;
  const Duration pause =
      alone ? config_.object_again_alone : config_.object_again;
  switch (step.absences->Add(index,
                             {.sample = error.sample(),
                              .who = endpoint.who,
                              .at = now,
                              .ask_again = now + pause},
                             alone, config_.max_absent)) {
    case Absences::Verdict::kOpen:
      return true;
    case Absences::Verdict::kAgreed:
      row.ForgetFailed();
      return true;
    case Absences::Verdict::kKnown:
      return false;
    case Absences::Verdict::kTooMany:
      FailStep(
          step, CodeOf(error),
          fmt::format("row {} has more than {} absent samples; {}",
                      step.globals[index], config_.max_absent, error.message()),
          endpoint);
      return true;
  }
  return true;
}

// The worker's text names the sample: only the worker knows which of the
// group's rows it is.
void Deliveries::FailStep(Step& step, absl::StatusCode code,
                          std::string_view message,
                          const WorkerEndpoint& endpoint) {
  step.spoilt = true;
  if (!step.error.ok()) return;
  step.error = MakeStatus(code, "epoch {} step {}: {} (worker {})", step.epoch,
                          step.step, message, endpoint.ref.name);
  in_flight_.dirty = true;
}

void Deliveries::Closed(WorkerStream& stream, const absl::Status& status,
                        MonotonicTime now) {
  WorkerEndpoint& endpoint = endpoints_.at(stream.worker);
  stream.closed = true;
  now_ = now;
  if (absl::IsDataLoss(status)) ++in_flight_.counters.damaged_streams;
  if (stream.unproven) ++in_flight_.counters.unproven_streams;
  StreamRequests& requests = stream.requests;
  for (auto& [id, group] : requests.groups) Abandon(*group);
  requests.groups.clear();
  if (stream.retired) return;  // nothing was requested there
  for (auto& [id, request] : requests.open)
    leases_.KeepLease(stream, id, request);
  leases_.KeepClosed(endpoint.stream);
  if (requests.open_bytes > 0 && absl::IsResourceExhausted(status))
    endpoints_.ReduceLimit(stream);
  for (auto& [id, request] : requests.open) {
    if (request.step->trace) TraceRequest(stream, id, request, true);
    leases_.Release(request.lease.memory);
    for (const uint32_t index : request.indices) {
      Row& row = request.step->rows[index];
      if (!row.AskedOf(stream.worker)) continue;
      row.RemoveAsked(stream.worker);
      row.AddFailed(stream.worker);
      if (row.settled()) continue;
      ++in_flight_.counters.failed_over_rows;
      if (row.num_asked() == 0) in_flight_.MakePending(*request.step, index);
    }
  }
  requests.open.clear();
  requests.open_rows = 0;
  requests.open_bytes = 0;
  ++endpoint.failures;
  endpoints_.Avoid(endpoint,
                   status.ok() ? std::string_view("the worker ended the stream")
                               : Message(status),
                   true, now);
  if (absl::IsUnavailable(status) && !stream.unproven &&
      stream.last_heard == MonotonicTime{})
    endpoints_.NotReached(endpoint);
  // Data altered in transit is not a refusal by the worker.
  endpoint.last_code =
      absl::IsDataLoss(status) ? absl::StatusCode::kUnavailable : status.code();
  endpoint.stream.reset();
}

}  // namespace leat::client
