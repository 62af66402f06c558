// SPDX-License-Identifier: Apache-2.0
//
// The statistics and reports of an Engine.
#include <algorithm>
#include <utility>

#include "client/device/device_batches.h"
#include "client/engine/engine.h"
#include "fmt/format.h"

namespace leat::client {
namespace {

constexpr size_t kWaitedForShown = 16;  // bound on the listed workers that were
                                        // waited for

uint64_t Nanoseconds(Duration duration) {
  return static_cast<uint64_t>(std::max(duration, Duration(0)).count());
}

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

EpochStep Engine::next_step() const {
  MutexLock lock(&state_.mu);
  return delivered_;
}

void Engine::TraceStep(const Step& step, MonotonicTime begin) const {
  const TracedStep& trace = *step.trace;
  const MonotonicTime now = Clock::Real().Now();
  trace.Record({.of = nullptr,
                .kind = SpanKind::kStep,
                .id = trace.StepId(),
                .parent = 0,
                .begin_ns = trace.Unix(step.planned_at),
                .end_ns = trace.Unix(now),
                .rows = step.rows.size()});
  if (options_.ahead) return;  // the caller is not the trainer
  trace.Record({.of = nullptr,
                .kind = SpanKind::kWait,
                .parent = trace.StepId(),
                .begin_ns = trace.Unix(std::max(begin, step.planned_at)),
                .end_ns = trace.Unix(now)});
}

EngineStats Engine::Totals(MonotonicTime now) const {
  return {.counters = state_.fetcher.counters(),
          .transport = state_.fetcher.transport(),
          .steps = steps_,
          .elapsed = waits_.elapsed(now),
          .waited = waits_.waited(now),
          .wait = waits_.steps(),
          .receiving = state_.receiving,
          .streams = state_.fetcher.num_streams(),
          .open_rows = state_.fetcher.open_rows(),
          .ready_steps = state_.fetcher.num_ready(),
          .workers = {}};
}

void Engine::AddWorkers(EngineStats* stats) const {
  for (const WorkerEndpoint& endpoint : state_.fetcher.table().endpoints())
    stats->workers.push_back({endpoint.ref.name, endpoint.ref.address,
                              endpoint.rows, endpoint.bytes, endpoint.failures,
                              endpoint.waited_for, endpoint.answers});
}

EngineStats Engine::stats() const {
  const MonotonicTime now = Clock::Real().Now();
  MutexLock lock(&state_.mu);
  EngineStats stats = Totals(now);
  AddWorkers(&stats);
  return stats;
}

// Adds the consumer's stages: it receives rows, and trains.
void Engine::AddStages(const EngineStats& stats,
                       v1::ConsumerStats* report) const {
  v1::StageStats& receive = *report->add_stages();
  receive.set_stage(v1::STAGE_RECEIVE);
  receive.set_places(static_cast<uint32_t>(stats.streams));
  receive.set_items_total(stats.counters.rows);
  receive.set_busy_ns_total(Nanoseconds(stats.receiving));
  receive.set_queue_depth(stats.open_rows);
  receive.set_queue_capacity(options_.window * options_.map->rows().size());
  v1::StageStats& train = *report->add_stages();
  train.set_stage(v1::STAGE_TRAIN);
  train.set_places(1);
  train.set_items_total(stats.steps);
  train.set_busy_ns_total(Nanoseconds(stats.elapsed - stats.waited));
  train.set_input_ns_total(Nanoseconds(stats.waited));
  train.set_queue_depth(stats.ready_steps);
  train.set_queue_capacity(options_.window);
  std::vector<EngineStats::Worker> workers = stats.workers;
  std::erase_if(workers, [](const EngineStats::Worker& worker) {
    return worker.waited_for <= Duration(0);
  });
  std::sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    return a.waited_for > b.waited_for;
  });
  workers.resize(std::min(workers.size(), kWaitedForShown));
  for (const EngineStats::Worker& worker : workers) {
    v1::WaitedFor& waited = *report->add_waited_for();
    waited.set_worker(worker.name);
    waited.set_waited_ns_total(Nanoseconds(worker.waited_for));
    waited.set_answer_ns_total(Nanoseconds(worker.answers.all));
    waited.set_queued_ns_total(Nanoseconds(worker.answers.queued));
  }
}

std::optional<v1::UnreachedWorkers> Engine::Unreached() {
  const MonotonicTime now = Clock::Real().Now();
  MutexLock lock(&state_.mu);
  const auto unreached = state_.fetcher.table().TakeUnreached(now);
  if (!unreached) return std::nullopt;
  v1::UnreachedWorkers told;
  for (const EndpointTable::Unreached& each : *unreached) {
    v1::UnreachedWorker& worker = *told.add_workers();
    worker.set_worker(each.worker);
    worker.set_why(each.why);
  }
  return told;
}

v1::ConsumerStats Engine::Report() {
  const MonotonicTime now = Clock::Real().Now();
  EngineStats stats;
  EpochStep delivered;
  double interval = 0;
  Snapshot last;
  {
    MutexLock lock(&state_.mu);
    stats = Totals(now);
    AddWorkers(&stats);
    delivered = delivered_;
    last =
        std::exchange(last_report_, {now, stats.counters.rows, stats.waited});
  }
  if (last.at != MonotonicTime{}) interval = Seconds(now - last.at);
  v1::ConsumerStats report;
  report.set_job(options_.job);
  report.set_host(options_.open.host());
  report.set_pid(options_.open.pid());
  report.set_steps_per_epoch(options_.steps_per_epoch);
  if (const std::span<const uint32_t> rows = options_.map->rows();
      !rows.empty() && rows.back() - rows.front() + 1 == rows.size()) {
    report.set_first_row(rows.front());
    report.set_rows_per_step(static_cast<uint32_t>(rows.size()));
  }
  report.set_rows_total(stats.counters.rows);
  report.set_transport(stats.transport);
  report.set_memory(
      options_.device ? fmt::format("cuda:{}", options_.device->gpu().ordinal())
                      : "host");
  report.set_hedged_rows_total(stats.counters.hedged_rows);
  report.set_failed_over_rows_total(stats.counters.failed_over_rows);
  report.set_bytes_received_total(stats.counters.bytes);
  report.set_payload_copies_total(stats.counters.payload_copies);
  report.set_answer_ns_total(Nanoseconds(stats.counters.answers.all));
  report.set_queued_ns_total(Nanoseconds(stats.counters.answers.queued));
  if (options_.feed)
    report.set_source_ns_total(Nanoseconds(stats.counters.unplanned));
  v1::LatencySummary* wait = report.mutable_wait();
  wait->set_count(stats.wait.count());
  wait->set_mean_ms(Milliseconds(stats.wait.mean()));
  wait->set_p50_ms(Milliseconds(stats.wait.Quantile(0.5)));
  wait->set_p95_ms(Milliseconds(stats.wait.Quantile(0.95)));
  wait->set_max_ms(Milliseconds(stats.wait.max()));
  AddStages(stats, &report);
  report.set_epoch(delivered.epoch);
  report.set_step(delivered.step);
  if (interval > 0) {
    report.set_rows_per_s(static_cast<double>(stats.counters.rows - last.rows) /
                          interval);
    report.set_stall_fraction(
        std::clamp(Seconds(stats.waited - last.waited) / interval, 0.0, 1.0));
  }
  return report;
}

}  // namespace leat::client
