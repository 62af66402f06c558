// SPDX-License-Identifier: Apache-2.0
#include "client/fetch/fetcher.h"

#include <algorithm>

#include "core/status.h"

namespace leat::client {

Fetcher::Fetcher(const FetcherConfig& config, JobShards shards)
    : config_(config),
      table_(config_, std::move(shards), &in_flight_),
      leases_(config_, &table_, &in_flight_),
      deliveries_(config_, &table_, &leases_, &in_flight_),
      budget_(config_) {}

void Fetcher::SetTable(std::shared_ptr<const AssignmentTable> table) {
  // The outstanding rows of a lost or drained worker are requested elsewhere;
  // its own answer may still come first.
  for (const std::shared_ptr<WorkerStream>& stream :
       table_.SetTable(std::move(table)))
    deliveries_.AskElsewhere(*stream, Row::Again::kNo, &budget_);
}

void Fetcher::AddStep(std::shared_ptr<Step> step, MonotonicTime now) {
  if (in_flight_.steps.empty()) head_since_ = now;
  NoteWait(now);
  unplanned_ = false;
  leases_.OfferToAll(*step);
  in_flight_.steps.push_back(std::move(step));
  in_flight_.dirty = true;
}

uint64_t Fetcher::supplied_bytes() const {
  uint64_t bytes = 0;
  for (const std::shared_ptr<Step>& step : in_flight_.steps)
    if (step->supplied) bytes += step->supplied->bytes();
  return bytes;
}

size_t Fetcher::num_ready() const {
  return static_cast<size_t>(std::count_if(
      in_flight_.steps.begin(), in_flight_.steps.end(),
      [](const std::shared_ptr<Step>& step) { return step->ready(); }));
}

size_t Fetcher::open_rows() const {
  size_t rows = 0;
  for (const WorkerEndpoint& endpoint : table_.endpoints())
    if (endpoint.stream) rows += endpoint.stream->requests.open_rows;
  return rows;
}

size_t Fetcher::num_streams() const {
  return static_cast<size_t>(std::count_if(table_.endpoints().begin(),
                                           table_.endpoints().end(),
                                           [](const WorkerEndpoint& endpoint) {
                                             return endpoint.stream != nullptr;
                                           }));
}

void Fetcher::BeginWait(MonotonicTime now) {
  owed_.clear();
  owed_since_ = now;
  unplanned_ = in_flight_.steps.empty();
  if (unplanned_) return;
  const Step& head = *in_flight_.steps.front();
  waited_for_ = {head.epoch, head.step};
  for (uint32_t index = 0; index < head.rows.size(); ++index) {
    const Row& row = head.rows[index];
    if (row.settled()) continue;
    for (const uint16_t worker : row.asked) {
      if (worker == Row::kNobody) continue;
      owed_.emplace_back(index, worker);
      break;
    }
  }
}

void Fetcher::NoteWait(MonotonicTime now) {
  if (unplanned_)
    in_flight_.counters.unplanned += now - std::exchange(owed_since_, now);
  if (owed_.empty()) return;
  const Duration each =
      (now - owed_since_) / static_cast<int64_t>(owed_.size());
  owed_since_ = now;
  for (const auto& [index, worker] : owed_)
    table_.at(worker).waited_for += each;
  const Step* const head = in_flight_.head();
  if (head == nullptr || waited_for_ != std::pair(head->epoch, head->step))
    owed_.clear();
  std::erase_if(owed_, [head](const auto& owed) {
    return head->rows[owed.first].settled();
  });
}

void Fetcher::EndWait(MonotonicTime now) {
  NoteWait(now);
  owed_.clear();
  unplanned_ = false;
}

std::shared_ptr<Step> Fetcher::PopHead(MonotonicTime now) {
  std::shared_ptr<Step> step = std::move(in_flight_.steps.front());
  in_flight_.steps.pop_front();
  head_since_ = now;
  waiting_ = false;
  waiting_since_ = {};
  in_flight_.dirty = true;
  return step;
}

Decisions Fetcher::Decide(MonotonicTime now) {
  NoteWait(now);
  in_flight_.dirty = false;
  in_flight_.starved = false;
  table_.BeginRound();
  if (!in_flight_.steps.empty()) CheckTimeout(now);
  if (!in_flight_.steps.empty() && waiting_) {
    NoteLate(now);
    HedgeHead(now);
  } else {
    waiting_since_ = {};
    budget_.StopWaiting();
  }
  bool waits = RouteAll(now);
  if (waits && waiting_ && !in_flight_.head()->pending.empty() &&
      !table_.AnyOther(Row(), now) && table_.AllowEarlyRetry(now))
    waits = RouteAll(now);
  if (waits) {
    DueAt(table_.NextUsable(now, &in_flight_.starved));
    if (table_.AllFaulty())
      Warn("every worker says that it cannot, by its own fault");
  }
  if (waiting_ && noted_ && table_.NoneReached())
    Warn("no worker can be reached");
  // New requests may become late without any other event.
  if (waiting_ && !in_flight_.decided.messages.empty())
    DueAt(now + table_.HedgeDelay());
  table_.GiveUpIdleStreams(now);
  BeginUploads();
  return std::exchange(in_flight_.decided, {});
}

// Ensures that Decide is called by this time.
void Fetcher::DueAt(MonotonicTime time) {
  in_flight_.decided.due = std::min(in_flight_.decided.due, time);
}

bool Fetcher::RouteAll(MonotonicTime now) {
  bool waits = false;
  for (const std::shared_ptr<Step>& step : in_flight_.steps)
    if (!step->pending.empty() && !step->spoilt) waits |= RouteStep(step, now);
  return waits;
}

bool Fetcher::RouteStep(const std::shared_ptr<Step>& step, MonotonicTime now) {
  std::vector<uint32_t> pending = std::exchange(step->pending, {});
  deliveries_.BeginStep();
  bool waits = false;
  for (const uint32_t index : pending) {
    Row& row = step->rows[index];
    if (row.settled()) {
      row.pending = false;
      Unhedge(row);
      continue;
    }
    const std::optional<uint16_t> worker = table_.Choose(*step, index, now);
    if (worker) {
      AskRow(step, index, *worker, now);
    } else if (row.num_asked() > 0) {
      row.pending = false;  // no other worker: the one that was asked must do
      row.asked_at = now;
      Unhedge(row);
    } else {
      step->pending.push_back(index);
      waits = true;
      if (row.disputed) DueAt(step->absences->NextRequest(index, now));
    }
  }
  return waits;
}

// Requests the row from the worker, or lets it wait if that is not possible
// yet.
void Fetcher::AskRow(const std::shared_ptr<Step>& step, uint32_t index,
                     uint16_t worker, MonotonicTime now) {
  Row& row = step->rows[index];
  if (row.leased) {
    leases_.WantMemory(step);
    step->pending.push_back(index);
    return;
  }
  const Leases::Placement placement = leases_.PlacementOf(*step, row, worker);
  if (placement == Leases::Placement::kWait) {
    bool opened = false;
    const std::shared_ptr<WorkerStream>& stream =
        table_.StreamOf(worker, now, &opened);
    if (opened) in_flight_.decided.messages.push_back({.stream = stream});
    step->pending.push_back(index);
    return;
  }
  row.pending = false;
  if (row.num_asked() > 0) {
    ++in_flight_.counters.hedged_rows;
    row.again = Row::Again::kNo;
  } else {
    budget_.Asked(1);
    Unhedge(row);
  }
  deliveries_.Ask(step, index, worker, placement == Leases::Placement::kInPlace,
                  now);
}

void Fetcher::BeginUploads() {
  for (const std::shared_ptr<Step>& step : in_flight_.steps) {
    if (step->upload != Step::Upload::kDue || !step->complete()) continue;
    step->upload = Step::Upload::kUnderWay;
    in_flight_.decided.uploads.push_back(step);
  }
}

// The row is not requested a second time after all.
void Fetcher::Unhedge(Row& row) {
  if (std::exchange(row.again, Row::Again::kNo) == Row::Again::kLate)
    budget_.GiveBack();
}

void Fetcher::HedgeHead(MonotonicTime now) {
  Step& step = *in_flight_.steps.front();
  const Duration delay = table_.HedgeDelay();
  using Workers = HedgeBudget::Workers;
  Workers workers = Workers::kSilent;
  if (table_.DeliveredSince(now - delay)) workers = Workers::kDeliver;
  if (budget_.spent() && table_.AnyIdle(now)) workers = Workers::kIdle;
  budget_.Wait(step.rows.size(), workers, now);
  for (uint32_t index = 0; index < step.rows.size(); ++index) {
    Row& row = step.rows[index];
    if (row.settled() || row.pending || row.num_asked() == 0) continue;
    for (const uint16_t worker : row.asked) {
      if (worker == Row::kNobody) continue;
      const EndpointTable::Silence silence = table_.Listen(worker, row, now);
      if (silence == EndpointTable::Silence::kNone) continue;
      deliveries_.AskElsewhere(*table_.at(worker).stream,
                               silence == EndpointTable::Silence::kStopped
                                   ? Row::Again::kStopped
                                   : Row::Again::kLate,
                               &budget_);
    }
    if (row.pending) continue;
    // Before a third worker is asked, silent ones should be known: a row that
    // is requested from three stopped workers would stay there.
    const Duration patience =
        row.num_asked() > 1 ? 2 * delay + config_.silence_min : delay;
    if (row.asked_at + patience > now) {
      DueAt(row.asked_at + patience);
      continue;
    }
    if (row.num_asked() < Row::kMaxRequests &&
        (table_.AnyOther(row, now) || table_.AllowEarlyRetry(now))) {
      if (!budget_.Take()) {
        DueAt(budget_.Next(now));
        continue;
      }
      row.again = Row::Again::kLate;
      in_flight_.MakePending(step, index);
    }
    row.asked_at = now;
    DueAt(now + delay);
  }
}

// Warns once, until a worker delivers again, why the rows of a step wait.
void Fetcher::Warn(std::string_view why) {
  if (warned_at_ == in_flight_.counters.rows) return;
  for (const std::shared_ptr<Step>& step : in_flight_.steps)
    for (size_t index = 0; index < step->rows.size(); ++index) {
      const Row& row = step->rows[index];
      if (row.settled()) continue;
      warned_at_ = in_flight_.counters.rows;
      in_flight_.decided.warning = fmt::format(
          "epoch {} step {}: row {} (sample {}) and others wait: {}; workers: "
          "{}",
          step->epoch, step->step, step->globals[index], step->samples[index],
          why, table_.Describe(row));
      return;
    }
}

void Fetcher::CheckTimeout(MonotonicTime now) {
  Step& step = *in_flight_.steps.front();
  if (step.ready() || !step.error.ok()) return;
  if (head_since_ + config_.row_timeout <= now)
    step.error = TimeoutError();
  else
    DueAt(head_since_ + config_.row_timeout);
}

void Fetcher::NoteLate(MonotonicTime now) {
  if (waiting_since_ == MonotonicTime{}) {
    waiting_since_ = now;
    noted_ = false;
  }
  if (noted_) return;
  if (waiting_since_ + config_.late_note > now) {
    DueAt(waiting_since_ + config_.late_note);
    return;
  }
  noted_ = true;
  const Step& step = *in_flight_.steps.front();
  in_flight_.decided.note = fmt::format(
      "epoch {} step {}: {} of {} rows have come; {}", step.epoch, step.step,
      step.done, step.rows.size(), table_.DescribeAll(step, now));
}

absl::Status Fetcher::TimeoutError() const {
  const Step& step = *in_flight_.steps.front();
  if (step.complete())
    return DeadlineExceeded(
        "epoch {} step {}: not copied to its device in time", step.epoch,
        step.step);
  size_t index = 0;
  while (index + 1 < step.rows.size() && step.rows[index].settled()) ++index;
  const double seconds =
      std::chrono::duration<double>(config_.row_timeout).count();
  return DeadlineExceeded(
      "epoch {} step {}: row {} (sample {}) not delivered within {:g} s, nor "
      "{} others of {}; workers: {}",
      step.epoch, step.step, step.globals[index], step.samples[index], seconds,
      step.rows.size() - step.done - 1, step.rows.size(),
      table_.Describe(step.rows[index]));
}

void Fetcher::Break(WorkerStream& stream) {
  stream.broken = true;
  in_flight_.dirty = true;
}

void Fetcher::Closed(WorkerStream& stream, const absl::Status& status,
                     MonotonicTime now) {
  deliveries_.Closed(stream, status, now);
  CheckRefusal();
}

void Fetcher::Looked(const std::string& address,
                     const rpc::Hindrance& hindrance) {
  table_.Looked(address, hindrance);
  CheckRefusal();
}

void Fetcher::CheckRefusal() {
  if (in_flight_.steps.empty()) return;
  Step& head = *in_flight_.steps.front();
  if (!head.error.ok() || head.complete()) return;
  if (const absl::Status refusal = table_.Refusal(); !refusal.ok())
    head.error = Annotate(
        refusal, fmt::format("epoch {} step {}", head.epoch, head.step));
}

std::string Fetcher::transport() const {
  const auto& endpoints = table_.endpoints();
  std::string text;
  for (const Transport transport :
       {Transport::kDevice, Transport::kShared, Transport::kGrpc}) {
    const auto used = [&](const WorkerEndpoint& endpoint) {
      return endpoint.present && endpoint.transport == transport;
    };
    if (std::none_of(endpoints.begin(), endpoints.end(), used)) continue;
    if (!text.empty()) text += '+';
    text += Name(transport);
  }
  return text.empty() ? std::string(Name(Transport::kGrpc)) : text;
}

void Fetcher::Uploaded(Step& step, const absl::Status& status) {
  if (status.ok())
    step.upload = Step::Upload::kDone;
  else if (step.error.ok())
    step.error = Annotate(
        status, fmt::format("epoch {} step {}", step.epoch, step.step));
}

}  // namespace leat::client
