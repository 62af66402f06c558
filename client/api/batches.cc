// SPDX-License-Identifier: Apache-2.0
//
// Batch and Batches: the public interfaces of Step and Engine.
#include <utility>

#include "client/api/batches_state.h"
#include "client/api/deadline.h"
#include "client/batch/position.h"
#include "client/device/device_memory.h"
#include "core/observe/previews.h"
#include "core/status.h"

namespace leat {

Batch::State::State(std::shared_ptr<const client::JobData> job_data,
                    std::shared_ptr<const client::RowFormat> row_format,
                    std::shared_ptr<client::Step> from)
    : job(std::move(job_data)),
      format(std::move(row_format)),
      buffer(std::move(from->memory->buffer)),
      epoch(from->epoch),
      step(from->step),
      rows(static_cast<uint32_t>(from->rows.size())),
      device(client::DeviceMemory::OrdinalOf(*buffer.memory())) {
  const std::vector<Field>& fields = format->schema.fields;
  shapes.reserve(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    std::vector<int64_t> shape = {rows};
    shape.insert(shape.end(), fields[i].shape.begin(), fields[i].shape.end());
    shapes.push_back(std::move(shape));
    tensors.push_back({.name = fields[i].name,
                       .dtype = Name(fields[i].dtype),
                       .shape = shapes.back(),
                       .data = buffer.data() + from->layout->parts[i].offset,
                       .bytes = fields[i].row_bytes * rows,
                       .device = device});
  }
}

Batch::Batch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

uint64_t Batch::epoch() const { return state_->epoch; }
uint64_t Batch::step() const { return state_->step; }
uint32_t Batch::rows() const { return state_->rows; }
std::span<const Tensor> Batch::tensors() const { return state_->tensors; }
int Batch::device() const { return state_->device; }

void Batch::UseOnStream(void* stream) {
  if (state_ && state_->device >= 0)
    static_cast<client::DeviceMemory&>(*state_->buffer.memory())
        .UseOn(static_cast<cuda::Stream>(stream));
}

absl::Status Batch::ReleaseOnStream(void* stream) {
  const std::unique_ptr<State> state = std::move(state_);
  if (!state) return FailedPrecondition("the batch is empty");
  if (state->device < 0)
    return FailedPrecondition("the batch is in host memory");
  return static_cast<client::DeviceMemory&>(*state->buffer.memory())
      .ReleaseAfter(static_cast<cuda::Stream>(stream));
}

namespace {

// Shows a batch to the viewer of the coordinator's page. `rows`: those of the
// step that it has.
void Show(const Batch::State& batch, std::span<const uint32_t> rows,
          client::SheetReporter* sheets) {
  if (batch.device >= 0)
    return sheets->Refuse(batch.epoch, batch.step,
                          "the batches are in GPU memory: use leat sheet");
  std::vector<FieldRows> fields;
  const JobInfo& info = batch.job->info();
  // The number of a source is no label.
  for (const Tensor& tensor : batch.tensors)
    if (tensor.name != info.spec.source_field)
      fields.push_back({tensor.name,
                        tensor.dtype,
                        tensor.shape,
                        {tensor.data, tensor.bytes}});
  const auto origin = [&](size_t row) -> RowOrigin {
    if (!IsMixture(info.spec)) return {"", info.datasets[0].classes};
    const auto samples = client::SamplesOf(*batch.job, batch.epoch, batch.step,
                                           rows.subspan(row, 1));
    if (!samples.ok()) return {};
    const uint32_t source = batch.job->plan().SourceOf((*samples)[0]);
    return {info.spec.sources[source].name, info.datasets[source].classes};
  };
  sheets->Answer(batch.epoch, batch.step, fields, origin);
}

}  // namespace

Batches::Batches(std::unique_ptr<State> state) : state_(std::move(state)) {}
Batches::~Batches() = default;

absl::StatusOr<std::optional<Batch>> Batches::Next(absl::Time deadline) {
  ASSIGN_OR_RETURN(std::shared_ptr<client::Step> step,
                   state_->engine->Next(client::ToDeadline(deadline)));
  if (!step) return std::nullopt;
  auto batch = std::make_unique<Batch::State>(state_->job, state_->format,
                                              std::move(step));
  if (state_->sheets->wanted())
    Show(*batch, state_->map->rows(), state_->sheets.get());
  return Batch(std::move(batch));
}

void Batches::Cancel() { state_->engine->Cancel(); }
void Batches::BeginWait() { state_->engine->BeginWait(); }
void Batches::EndWait(bool delivered) { state_->engine->EndWait(delivered); }

std::span<const TensorEpilogue> Batches::epilogue() const {
  return state_->format->shown;
}

std::string Batches::position() const {
  const EpochStep next = state_->engine->next_step();
  return PositionAt(next.epoch, next.step);
}

std::string Batches::PositionAt(uint64_t epoch, uint64_t step) const {
  const EpochStep next{.epoch = epoch, .step = step};
  const client::PositionHashes hashes = state_->job->HashesAt(next);
  return client::EncodePosition(state_->job->info().spec.name,
                                hashes.position_hash, next, hashes.shares);
}

absl::StatusOr<std::vector<uint64_t>> Batches::Samples(uint64_t epoch,
                                                       uint64_t step) const {
  return client::SamplesOf(*state_->job, epoch, step, state_->map->rows());
}

BatchesStats Batches::stats() const {
  const client::EngineStats engine = state_->engine->stats();
  const double seconds = std::chrono::duration<double>(engine.elapsed).count();
  const auto rate = [seconds](uint64_t rows) {
    return seconds > 0 ? static_cast<double>(rows) / seconds : 0.0;
  };
  BatchesStats stats;
  stats.steps = engine.steps;
  stats.transport = engine.transport;
  stats.rows = engine.counters.rows;
  stats.bytes = engine.counters.bytes;
  stats.rows_per_s = rate(engine.counters.rows);
  stats.stall_fraction =
      seconds > 0
          ? std::min(
                1.0,  // a wait may have begun before the first Next
                std::chrono::duration<double>(engine.waited).count() / seconds)
          : 0.0;
  stats.wait = {.count = engine.wait.count(),
                .mean_ms = client::Milliseconds(engine.wait.mean()),
                .p50_ms = client::Milliseconds(engine.wait.Quantile(0.5)),
                .p95_ms = client::Milliseconds(engine.wait.Quantile(0.95)),
                .max_ms = client::Milliseconds(engine.wait.max())};
  stats.hedged_rows = engine.counters.hedged_rows;
  stats.failed_over_rows = engine.counters.failed_over_rows;
  stats.duplicate_rows = engine.counters.duplicate_rows;
  stats.payload_copies = engine.counters.payload_copies;
  stats.damaged_streams = engine.counters.damaged_streams;
  stats.unproven_streams = engine.counters.unproven_streams;
  for (const client::EngineStats::Worker& worker : engine.workers)
    stats.workers.push_back({.worker = worker.name,
                             .address = worker.address,
                             .rows = worker.rows,
                             .bytes = worker.bytes,
                             .rows_per_s = rate(worker.rows),
                             .failures = worker.failures});
  return stats;
}

}  // namespace leat
