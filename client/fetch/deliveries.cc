// SPDX-License-Identifier: Apache-2.0
//
// Requests: how they are made, and how they end. Answers that deliver are in
// client/fetch/deliveries_answers.cc, and failures in
// client/fetch/deliveries_failed.cc.
#include "client/fetch/deliveries.h"

#include <algorithm>

#include "core/status.h"

namespace leat::client {
namespace {

constexpr size_t kNoMessage = ~size_t{0};

}  // namespace

// Returns the stream's message that takes the row, or a new one.
StreamMessage& Deliveries::MessageFor(
    const std::shared_ptr<Step>& step, uint32_t index,
    const std::shared_ptr<WorkerStream>& stream, const BatchMemory* part,
    MonotonicTime now) {
  StreamRequests& requests = stream->requests;
  std::vector<StreamMessage>& messages = in_flight_.decided.messages;
  if (std::exchange(requests.message_round, round_) != round_)
    requests.messages[0] = requests.messages[1] = kNoMessage;
  size_t& open = requests.messages[part != nullptr ? 1 : 0];
  const uint64_t memory_id = part != nullptr ? part->id() : 0;
  const bool alone = !step->AbsentOf(index).empty();
  if (!alone && open != kNoMessage) {
    StreamMessage& message = messages[open];
    if (message.memory_id == memory_id &&
        message.rows.size() < config_.max_request_rows &&
        message.supplied_bytes + step->SuppliedBytes(index) <=
            config_.max_request_bytes)
      return message;
  }
  const uint64_t id = next_request_++;
  if (!alone) open = messages.size();
  messages.push_back({.stream = stream,
                      .request_id = id,
                      .epoch = step->epoch,
                      .step = step->step,
                      .memory_id = memory_id,
                      .supplied = step->supplied});
  OpenRequest& request = requests.open[id];
  request.step = step;
  request.asked_at = now;
  if (part != nullptr) Leases::Begin(request, *part);
  return messages.back();
}

void Deliveries::Ask(const std::shared_ptr<Step>& step, uint32_t index,
                     uint16_t worker, bool in_place, MonotonicTime now) {
  const std::shared_ptr<WorkerStream>& stream =
      endpoints_.StreamOf(worker, now);
  StreamRequests& requests = stream->requests;
  Row& row = step->rows[index];
  if (!row.AddAsked(worker)) return;
  if (requests.open_rows == 0) requests.busy_since = now;
  requests.last_asked = now;
  if (row.FailedAt(worker)) row.ForgetFailed();
  row.asked_at = now;
  const std::shared_ptr<BatchMemory> part =
      in_place ? leases_.PartFor(*stream, *step->memory) : nullptr;
  StreamMessage& message = MessageFor(step, index, stream, part.get(), now);
  const uint64_t bytes = step->SuppliedBytes(index);
  message.rows.push_back(step->globals[index]);
  message.samples.push_back(step->samples[index]);
  message.supplied_bytes += bytes;
  const std::span<const uint64_t> absent = step->AbsentOf(index);
  message.absent.assign(absent.begin(), absent.end());
  if (in_place) {
    message.slots.push_back(index);
    row.leased = true;
  }
  OpenRequest& request = requests.open[message.request_id];
  request.indices.push_back(index);
  ++request.open;
  request.open_bytes += bytes;
  ++requests.open_rows;
  requests.open_bytes += bytes;
}

void Deliveries::AskElsewhere(WorkerStream& stream, Row::Again why,
                              HedgeBudget* budget) {
  // The budget goes first to the rows that the consumer waits for.
  const Step* const head = in_flight_.head();
  for (const bool of_head : {true, false})
    for (auto& [id, request] : stream.requests.open) {
      if ((request.step.get() == head) != of_head) continue;
      for (const uint32_t index : request.indices) {
        Row& row = request.step->rows[index];
        if (row.pending || row.settled() || !row.AskedOf(stream.worker) ||
            row.num_asked() >= Row::kMaxRequests)
          continue;
        if (why == Row::Again::kLate && !budget->Take()) return;
        row.again = why;
        in_flight_.MakePending(*request.step, index);
      }
    }
}

// Removes answered rows from the stream's outstanding ones.
void Deliveries::Answered(WorkerStream& stream, uint64_t request_id,
                          std::span<const uint32_t> indices) {
  StreamRequests& requests = stream.requests;
  const auto found = requests.open.find(request_id);
  if (found == requests.open.end()) return;
  OpenRequest& request = found->second;
  for (const uint32_t index : indices) {
    Row& row = request.step->rows[index];
    if (!row.AskedOf(stream.worker)) continue;
    row.RemoveAsked(stream.worker);
    --request.open;
    --requests.open_rows;
    const uint64_t bytes = request.step->SuppliedBytes(index);
    request.open_bytes -= bytes;
    requests.open_bytes -= bytes;
    if (row.num_asked() == 0) in_flight_.MakePending(*request.step, index);
  }
  if (request.open > 0) return;
  if (request.step->trace) TraceRequest(stream, request_id, request, false);
  leases_.EndLease(stream, request);
  leases_.Release(request.lease.memory);
  requests.open.erase(found);
}

void Deliveries::TraceRequest(const WorkerStream& stream, uint64_t request_id,
                              const OpenRequest& request, bool failed) const {
  const TracedStep& trace = *request.step->trace;
  trace.Record({.of = nullptr,
                .kind = SpanKind::kRequest,
                .failed = failed,
                .id = trace.RequestId(request_id),
                .parent = trace.StepId(),
                .begin_ns = trace.Unix(request.asked_at),
                .end_ns = trace.Unix(std::max(now_, request.asked_at)),
                .rows = request.indices.size(),
                .worker = endpoints_.at(stream.worker).ref.name});
}

void Deliveries::AddDone(Step& step, uint64_t rows) {
  step.done += rows;
  if (!step.all_done() || rows == 0) return;
  if (step.upload == Step::Upload::kDue) in_flight_.dirty = true;
  Withdraw(step);
}

// Withdraws the open requests of a step that has all its rows.
void Deliveries::Withdraw(const Step& step) {
  for (const WorkerEndpoint& endpoint : endpoints_.endpoints()) {
    if (!endpoint.stream) continue;
    WorkerStream& stream = *endpoint.stream;
    StreamRequests& requests = stream.requests;
    for (auto it = requests.open.begin(); it != requests.open.end();) {
      const auto& [id, request] = *it;
      if (request.step.get() != &step) {
        ++it;
        continue;
      }
      if (step.trace) TraceRequest(stream, id, request, false);
      requests.open_rows -= request.open;
      requests.open_bytes -= request.open_bytes;
      in_flight_.decided.messages.push_back(
          {.stream = endpoint.stream, .request_id = id});
      leases_.KeepLease(stream, id, request);
      leases_.Release(request.lease.memory);
      it = requests.open.erase(it);
      in_flight_.dirty = true;
    }
  }
}

}  // namespace leat::client
