// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <utility>

#include "client/api/batches_options.h"
#include "client/api/batches_state.h"
#include "client/api/collect_spans.h"
#include "client/api/deadline.h"
#include "client/api/explain.h"
#include "client/batch/position.h"
#include "client/coordinator/message_json.h"
#include "client/coordinator/process_name.h"
#include "client/device/device_batches.h"
#include "client/private/machine.h"
#include "core/plan/abilities.h"
#include "core/plan/checked_job.h"
#include "core/plan/share_layout.h"
#include "core/redaction.h"
#include "core/status.h"
#include "rpc/process/machine.h"
#include "rpc/wire/messages.h"

namespace leat {
namespace client {

absl::StatusOr<std::unique_ptr<Job>> MakeJob(
    std::shared_ptr<Connection> connection, const v1::Job& job) {
  auto state = std::make_unique<Job::State>();
  ASSIGN_OR_RETURN(state->data, JobData::Create(std::move(connection), job));
  return std::make_unique<Job>(std::move(state));
}

absl::StatusOr<std::unique_ptr<Job>> MakeJob(
    std::shared_ptr<Connection> connection,
    const v1::CreateJobResponse& created) {
  auto state = std::make_unique<Job::State>();
  ASSIGN_OR_RETURN(state->data,
                   JobData::Create(std::move(connection), created.job()));
  state->attached = created.attached();
  state->dataset_changed = created.dataset_changed();
  state->consumers = created.consumers();
  return std::make_unique<Job>(std::move(state));
}

std::function<double()> RandomFractions() {
  return [] {
    thread_local std::minstd_rand engine{std::random_device{}()};
    return std::uniform_real_distribution<>()(engine);
  };
}

EngineOptions EngineOptionsFor(const std::shared_ptr<JobData>& job) {
  static std::atomic<uint64_t> iterators{0};
  const JobInfo& info = job->info();
  EngineOptions options;
  options.job = info.spec.name;
  for (const DatasetInfo& dataset : info.datasets)
    options.datasets.push_back({dataset.id, dataset.shards});
  options.links = GrpcLinks(job->connection()->control.credentials());
  options.probe = [connection = job->connection()](const std::string& address) {
    return connection->WhatHinders(address);
  };
  options.sessions = job->connection()->control.Sessions();
  options.open.set_plan_hash(info.plan_hash.data(), info.plan_hash.size());
  options.open.set_job(info.spec.name);
  options.open.set_host(rpc::HostName());
  options.open.set_pid(static_cast<uint64_t>(getpid()));
  options.open.set_consumer(
      fmt::format("{}/{}", OwnProcessName(), ++iterators));
  std::vector<std::string> needed = AbilitiesFor(info.spec);
  for (std::string& ability : needed) ability = "ability " + ability;
  if (info.spec.decoder_class != DecoderClass::kExact)
    needed.push_back(
        fmt::format("decoder class {}", Name(info.spec.decoder_class)));
  options.fetch.needed = fmt::format("{}", fmt::join(needed, " and "));
  // Consumers of a cluster draw different numbers.
  options.fetch.random = options.session.random = RandomFractions();
  options.tracer = job->connection()->tracing->tracer();
  options.table = job->table();
  options.on_table = [job](std::shared_ptr<const AssignmentTable> table) {
    job->OfferTable(std::move(table));
  };
  return options;
}

namespace {

// Makes the pool; on a device allocates the whole window at once, so that a
// lack of memory shows here.
absl::Status MakePool(const BatchesOptions& options, EngineOptions* engine) {
  const uint32_t kept = engine->window + 2;
  const size_t bytes = engine->layout->bytes;
  if (options.device < 0) {
    engine->pool = BatchPool::Create(bytes, kept);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(engine->device, DeviceBatches::Open(options.device));
  const Gpu& gpu = engine->device->gpu();
  if (engine->fetch.transport == Transport::kDevice &&
      !gpu.not_shareable().empty())
    return FailedPrecondition("LEAT_TRANSPORT=cuda: device {}: {}",
                              options.device, gpu.not_shareable());
  engine->pool = BatchPool::Create(bytes, kept, engine->device->maker());
  std::vector<BatchPool::Buffer> buffers;
  while (buffers.size() < kept) {
    absl::StatusOr<BatchPool::Buffer> buffer = engine->pool->Take();
    if (!buffer.ok())
      return Annotate(buffer.status(),
                      fmt::format("batch {} of {} that a window of {} takes",
                                  buffers.size() + 1, kept, engine->window));
    buffers.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

// Returns the feed for client-supplied samples; null: workers read samples.
absl::StatusOr<std::shared_ptr<Feed>> MakeFeed(const JobInfo& info,
                                               bool given) {
  if (!IsExternal(info.spec)) {
    if (!given) return nullptr;
    return InvalidArgument(
        "source: job \"{}\" reads {}; want a source for {} only",
        info.spec.name, Redacted(info.datasets[0].reader), kExternalReader);
  }
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckJob(info.spec));
  const CheckedGraph& graph = checked.sources[0];
  const Node& reader = graph.graph.nodes[graph.reader];
  const auto& name = std::get<std::string>(reader.args.at("name"));
  if (!given)
    return FailedPrecondition(
        "job \"{}\": consumers supply its {} samples \"{}\"; want a source "
        "(BatchesOptions::source, or source= in Python)",
        info.spec.name, info.datasets[0].shards.num_samples(), name);
  return std::make_shared<Feed>(graph.types[graph.reader], name);
}

absl::StatusOr<EpochStep> StepOf(const JobData& job,
                                 std::string_view position) {
  ASSIGN_OR_RETURN(const EpochStep next, DecodePosition(
                                             position, job.info().spec.name,
                                             [&](const EpochStep& next) {
                                               return job.HashesAt(next);
                                             },
                                             job.plan().steps_per_epoch()));
  RETURN_IF_ERROR(Annotate(job.CheckEpoch(next.epoch), "position"));
  return next;
}

absl::StatusOr<EpochStep> StartOf(const JobData& job,
                                  const BatchesOptions& options) {
  const uint64_t steps = job.plan().steps_per_epoch();
  if (options.position.empty()) {
    if (options.step >= steps)
      return InvalidArgument("step {}: job \"{}\" has {} steps an epoch",
                             options.step, job.info().spec.name, steps);
    RETURN_IF_ERROR(job.CheckEpoch(options.epoch));
    return EpochStep{options.epoch, options.step};
  }
  if (options.epoch != 0 || options.step != 0)
    return InvalidArgument(
        "epoch {} and step {} with a position, which says where to begin; want "
        "one of the two",
        options.epoch, options.step);
  return StepOf(job, options.position);
}

// Returns the first epoch that is not delivered; 0: without end.
absl::StatusOr<uint64_t> EndOf(const EpochStep& start, uint64_t epochs) {
  if (epochs == 0) return 0;
  const uint64_t most = std::numeric_limits<uint64_t>::max() - start.epoch;
  if (epochs > most)
    return InvalidArgument("epochs {} from epoch {} on: want at most {}",
                           epochs, start.epoch, most);
  return start.epoch + epochs;
}

absl::StatusOr<std::unique_ptr<Batches>> OpenBatches(
    const std::shared_ptr<JobData>& job, const BatchesOptions& options,
    std::shared_ptr<Feed> feed) {
  const JobInfo& info = job->info();
  RETURN_IF_ERROR(CheckOptions(options));
  EngineOptions engine = EngineOptionsFor(job);
  ASSIGN_OR_RETURN(engine.start, StartOf(*job, options));
  ASSIGN_OR_RETURN(engine.map, RowMap::Create(options.rows, info.spec.batch));
  if (options.epilogue == EpilogueAt::kDevice)
    engine.epilogue = Epilogue::kDevice;
  ASSIGN_OR_RETURN(const auto format, RowFormat::Create(info, engine.epilogue));
  ASSIGN_OR_RETURN(engine.end_epoch, EndOf(engine.start, options.epochs));
  engine.steps_per_epoch = job->plan().steps_per_epoch();
  engine.layout = std::make_shared<BatchLayout>(
      format->schema, static_cast<uint32_t>(engine.map->rows().size()));
  engine.window = BoundedWindow(options, engine.layout->bytes);
  engine.ahead = options.ahead;
  engine.open.set_look(options.look);
  engine.budget = info.spec.max_bad.has_value() && !options.look;
  engine.fetch.row_timeout = ToDuration(options.row_timeout);
  ASSIGN_OR_RETURN(engine.fetch.transport, TransportFromEnvironment(options));
  RETURN_IF_ERROR(MakePool(options, &engine));
  engine.fetch.max_quarantined = std::max(2u, 2 * engine.window);
  engine.feed = std::move(feed);
  engine.source = options.source;
  engine.max_supplied_bytes = options.max_window_bytes;
  engine.plan = [job, map = engine.map](uint64_t epoch, uint64_t step,
                                        std::span<uint64_t> samples) {
    job->plan().Samples(epoch, step, map->rows(), samples);
  };
  auto state = std::make_unique<Batches::State>(job, format, engine.map);
  engine.sheets = state->sheets;
  ASSIGN_OR_RETURN(state->engine, Engine::Start(std::move(engine)));
  return std::make_unique<Batches>(std::move(state));
}

}  // namespace
}  // namespace client

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::~Job() = default;

const std::string& Job::name() const { return state_->data->info().spec.name; }
uint64_t Job::steps_per_epoch() const {
  return state_->data->plan().steps_per_epoch();
}
uint64_t Job::num_samples() const { return NumSamples(state_->data->info()); }
uint32_t Job::batch() const { return state_->data->info().spec.batch; }
std::string Job::plan_hash() const {
  return ToHex(state_->data->info().plan_hash);
}
bool Job::attached() const { return state_->attached; }
const std::string& Job::dataset_changed() const {
  return state_->dataset_changed;
}
uint64_t Job::consumers() const { return state_->consumers; }
std::string Job::ToJson() const {
  return client::ToJsonNumbers(state_->data->proto()).dump();
}

std::vector<Tensor> Job::row_schema() const {
  std::vector<Tensor> tensors;
  for (const Field& field : state_->data->info().schema.fields)
    tensors.push_back({.name = field.name,
                       .dtype = Name(field.dtype),
                       .shape = field.shape,
                       .bytes = field.row_bytes});
  return tensors;
}

absl::StatusOr<std::vector<uint64_t>> client::SamplesOf(
    const JobData& job, uint64_t epoch, uint64_t step,
    std::span<const uint32_t> rows) {
  const Plan& plan = job.plan();
  if (step >= plan.steps_per_epoch())
    return OutOfRange("step {}: job \"{}\" has {} steps an epoch", step,
                      job.info().spec.name, plan.steps_per_epoch());
  RETURN_IF_ERROR(job.CheckEpoch(epoch));
  std::vector<uint64_t> samples(rows.size());
  plan.Samples(epoch, step, rows, samples);
  for (size_t i = 0; i < rows.size(); ++i)
    if (plan.IsPadding(epoch, step, rows[i])) samples[i] = kNoSample;
  return samples;
}

absl::StatusOr<std::vector<uint64_t>> Job::Samples(
    uint64_t epoch, uint64_t step, std::vector<uint32_t> rows) const {
  ASSIGN_OR_RETURN(const auto map,
                   client::RowMap::Create(std::move(rows), batch()));
  return client::SamplesOf(*state_->data, epoch, step, map->rows());
}

absl::StatusOr<std::string> Job::Record(uint64_t index, absl::Duration timeout,
                                        uint64_t first_document) const {
  ASSIGN_OR_RETURN(const v1::StoredRecord record,
                   client::LocateSample(*state_->data, index, first_document,
                                        absl::Now() + timeout));
  return client::ToJsonNumbers(record).dump();
}

absl::StatusOr<std::string> Job::Explain(uint64_t epoch, uint64_t step,
                                         std::vector<uint32_t> rows,
                                         bool read_records,
                                         absl::Duration timeout) const {
  ASSIGN_OR_RETURN(const auto map,
                   client::RowMap::Create(std::move(rows), batch()));
  ASSIGN_OR_RETURN(const std::vector<v1::ExplainedRow> explained,
                   client::ExplainRows(*state_->data, epoch, step,
                                       {map->rows().begin(), map->rows().end()},
                                       read_records, absl::Now() + timeout));
  nlohmann::json json = nlohmann::json::array();
  for (const v1::ExplainedRow& row : explained)
    json.push_back(client::ToJsonNumbers(row));
  return json.dump();
}

absl::StatusOr<std::string> Job::CollectSpans(absl::Duration duration,
                                              double ratio,
                                              absl::Duration timeout) const {
  ASSIGN_OR_RETURN(
      const nlohmann::json spans,
      client::CollectSpans(*state_->data, duration, ratio, timeout));
  return spans.dump();
}

absl::StatusOr<std::unique_ptr<Batches>> Job::Open(
    const BatchesOptions& options) const {
  std::shared_ptr<client::Feed> feed;
  ASSIGN_OR_RETURN(
      feed, client::MakeFeed(state_->data->info(), options.source != nullptr));
  return client::OpenBatches(state_->data, options, std::move(feed));
}

absl::StatusOr<std::unique_ptr<Batches>> client::JobAccess::OpenFed(
    const Job& job, const BatchesOptions& options,
    std::shared_ptr<Feed>* feed) {
  ASSIGN_OR_RETURN(*feed, MakeFeed(job.state_->data->info(), true));
  return OpenBatches(job.state_->data, options, *feed);
}

absl::StatusOr<std::vector<uint64_t>> Job::RowsBefore(uint64_t epoch,
                                                      uint64_t step) const {
  const Plan& plan = state_->data->plan();
  const ShareLayout* const shares = plan.shares();
  const std::string& name = state_->data->info().spec.name;
  if (shares == nullptr)
    return FailedPrecondition(
        "job \"{}\" is no mixture, and its classes have no shares", name);
  if (step >= plan.steps_per_epoch())
    return OutOfRange("step {}: job \"{}\" has {} steps an epoch", step, name,
                      plan.steps_per_epoch());
  RETURN_IF_ERROR(state_->data->CheckEpoch(epoch));
  std::vector<uint64_t> rows(shares->sources().size());
  shares->schedule().RowsBefore(shares->StepOfAll(epoch, step), rows);
  if (IsMixture(state_->data->info().spec)) return rows;
  const ShareTree& classes = shares->sources()[0].groups->tree();
  std::vector<uint64_t> of_classes(classes.weights().size());
  classes.Counts(rows[0], of_classes);
  return of_classes;
}

absl::StatusOr<EpochStep> Job::StepOf(std::string_view position) const {
  return client::StepOf(*state_->data, position);
}

absl::StatusOr<Batch> Job::Sample(uint64_t index, absl::Duration timeout,
                                  std::shared_ptr<SampleSource> source) const {
  const std::shared_ptr<client::JobData>& job = state_->data;
  if (index >= num_samples())
    return OutOfRange("sample {}: the dataset has {} samples", index,
                      num_samples());
  client::EngineOptions options = client::EngineOptionsFor(job);
  ASSIGN_OR_RETURN(options.feed,
                   client::MakeFeed(job->info(), source != nullptr));
  options.source = std::move(source);
  options.open.set_look(true);
  ASSIGN_OR_RETURN(const auto format,
                   client::RowFormat::Create(job->info(), Epilogue::kWorker));
  ASSIGN_OR_RETURN(options.map, client::RowMap::Create({0}, 1));
  options.steps_per_epoch = 1;
  options.window = 1;
  options.layout = std::make_shared<client::BatchLayout>(format->schema, 1);
  options.pool = client::BatchPool::Create(options.layout->bytes, 0,
                                           client::MakePrivateMemory);
  options.fetch.transport = client::Transport::kGrpc;  // for one row
  options.fetch.row_timeout = client::ToDuration(timeout);
  options.plan = [index](uint64_t, uint64_t, std::span<uint64_t> samples) {
    samples[0] = index;
  };
  ASSIGN_OR_RETURN(const std::shared_ptr<client::Engine> engine,
                   client::Engine::Start(std::move(options)));
  absl::StatusOr<std::shared_ptr<client::Step>> step =
      engine->Next(client::ToDeadline(absl::Now() + timeout));
  engine->Stop();
  if (!step.ok())
    return Annotate(step.status(), fmt::format("sample {}", index));
  return Batch(std::make_unique<Batch::State>(job, format, *std::move(step)));
}

}  // namespace leat
