// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/mutex.h"
#include "core/plan/job.h"
#include "core/status.h"
#include "rpc/access/worker_key.h"
#include "rpc/http/status_server.h"
#include "rpc/process/cores.h"
#include "rpc/server/server.h"
#include "rpc/tls/server_tls.h"
#include "worker/cache/idle_forms.h"
#include "worker/compute/gpu_worker.h"
#include "worker/compute/thread_clock.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/job/job_table.h"
#include "worker/job/storage_troubles.h"
#include "worker/metrics.h"
#include "worker/plane/device_importer.h"
#include "worker/plane/lending_server.h"
#include "worker/scheduler/scheduler.h"
#include "worker/serving/explain_service.h"
#include "worker/serving/record_client.h"
#include "worker/serving/records_service.h"
#include "worker/serving/rows_service.h"
#include "worker/serving/shard_mover.h"
#include "worker/session/capacity.h"
#include "worker/session/coordinator_client.h"
#include "worker/session/device_stats.h"
#include "worker/session/heartbeat_parts.h"
#include "worker/session/known_tokens.h"
#include "worker/session/own_decoders.h"
#include "worker/session/registration.h"
#include "worker/session/session.h"
#include "worker/session/stage_report.h"
#include "worker/source/packed/unpacked_budget.h"
#include "worker/source/storage/storage.h"
#include "worker/worker_parts.h"
#include "worker/worker_tracing.h"

namespace leat::worker {

struct Worker::State {
  State(Config c, WorkerEvents e, std::shared_ptr<WakeSignal> w,
        std::unique_ptr<GpuWorker> g, std::unique_ptr<LendingServer> l,
        std::unique_ptr<DatasetUses> u, std::unique_ptr<Storage> s,
        std::unique_ptr<DiskForms> f, std::vector<v1::Decoders> d,
        std::unique_ptr<SharedByDecodes> b,
        std::shared_ptr<const rpc::WorkerKey> k)
      : key(std::move(k)),
        shared(std::move(b)),
        uses(std::move(u)),
        storage(std::move(s)),
        disk_forms(std::move(f)),
        decoders(std::move(d)),
        unpacked(c.unpacked_bytes),
        config(WithStorage(std::move(c), storage.get(), &unpacked)),
        events(std::move(e)),
        wake(std::move(w)),
        gpus(std::move(g)),
        client({.address = config.coordinator, .decoders = decoders},
               config.security),
        peers(config.security, Clock::Real()),
        cache(config.cache_bytes, uses.get(), Clock::Real(),
              config.form_kinds(), &ThreadClock::Real()),
        context{
            .kernels = gpus->kernels(),
            .cache = &cache,
            .bad_samples = &bad_samples,
            .ownership = &ownership,
            .stop = &stop,
            .troubles = &troubles,
            .read_ahead_of = config.read_ahead_of,
            .nearby = config.nearby,
            .disk = disk_forms.get(),
            .seek_indexes =
                config.form_kinds().seek_index ? JpegFormCodec() : FormCodec(),
            .allowed = &storage->allowed(),
            .asker = config.ask_peers ? &peers : nullptr,
            .forms = config.form_kinds().any() ? JpegFormCodec() : FormCodec(),
            .idle = cache.forms().keeps_any() ? &idle_work : nullptr},
        idle_forms(IdleFormsConfig(config), &cache, &idle_work, Clock::Real(),
                   ThreadClock::Real()),
        pool(config.buffer_bytes, wake, gpus->buffer_memory()),
        lending(std::move(l)),
        scheduler(SchedulerConfig(), &pool, wake, Clock::Real()),
        jobs(JobTableConfig(config), &client, &context),
        rows({.max_rows_per_stream = config.max_rows_per_stream,
              .max_brought_bytes_per_stream =
                  config.max_brought_bytes_per_stream,
              .max_brought_bytes_total = config.max_brought_bytes_total,
              .key = key,
              .tracer = tracing.tracer()},
             config.security, &jobs, &scheduler, lending.get()),
        explain(Admits(), &jobs, config.image),
        // Also while it drains: others take what it keeps.
        records(
            [this](std::string_view method, const auto& call) {
              return rows.access().Admit(method, call).status();
            },
            &jobs, JpegFormCodec(), key),
        mover(&jobs, &ownership) {}
  ~State() {
    pages.reset();
    StopReading();
    client.Shutdown();  // nobody waits for calls that nobody needs
    session.reset();
    server.reset();
  }

  rpc::TraceCalls::Admit Admits() {
    return [this](std::string_view method, const auto& call) {
      return rows.Admit(method, call);
    };
  }
  static Config WithStorage(Config config, const Storage* storage,
                            UnpackedBudget* unpacked) {
    config.source.storage = storage;
    config.source.unpacked = unpacked;
    return config;
  }
  SchedulerOptions SchedulerConfig() const {
    const bool has_gpu = !gpus->devices().empty();
    return {
        .threads = config.threads,
        .group_bytes = has_gpu ? config.gpu.group_bytes : config.group_bytes,
        .max_rows_per_group = has_gpu ? kMaxGpuGroupRows : 1024,
        .rows_at_once = JpegsAtOnce(gpus->devices()),
        .max_unsent_groups_per_stream = config.max_unsent_groups_per_stream,
        .max_rows_per_stream = config.max_rows_per_stream,
        .max_rows_total = config.max_rows_total,
        .max_streams = config.max_streams,
        .read_threads = config.read_threads,
        .read_ahead_bytes = config.read_ahead_bytes,
        .shared_rows_bytes = config.shared_rows_bytes,
        .make_thread_state = context.kernels.make_thread_state,
        .idle = context.idle};
  }
  // Ends what waits for storage, as far as anybody can.
  void StopReading() {
    stop.Stop();
    shared->scratch.Stop();
    jobs.StopFetchingBlocks();
    mover.Stop();
    peers.Stop();
    storage->Stop();
    explain.Stop();
    records.Stop();
    tracing.Stop();
  }
  // kResourceExhausted: the system does not give all threads.
  absl::Status CheckThreads() {
    RETURN_IF_ERROR(scheduler.started());
    RETURN_IF_ERROR(idle_forms.started());
    RETURN_IF_ERROR(jobs.started());
    RETURN_IF_ERROR(explain.started());
    RETURN_IF_ERROR(records.started());
    RETURN_IF_ERROR(mover.started());
    RETURN_IF_ERROR(tracing.started());
    return troubles.Start();
  }
  absl::Status StartSession();
  void Moved(const std::string& dataset_id, std::vector<MovedShard> shards) {
    if (config.ask_peers) mover.Moved(dataset_id, std::move(shards));
  }
  // What was at the end of an interval, and what was learned until then.
  struct Interval {
    MonotonicTime at = Clock::Real().Now();
    Scheduler::Stats rows;
    std::vector<GpuStats> gpus;
    Capacity capacity;
  };
  // Collects the time since `interval`, and begins the next interval.
  v1::WorkerStats CollectStats(Interval* interval) ABSL_LOCKS_EXCLUDED(mu);
  absl::Status StartPages();
  absl::Status Ready() const;
  std::string Metrics();
  v1::Heartbeat MakeHeartbeat();

  const std::shared_ptr<const rpc::WorkerKey> key;
  std::string not_confined;  // why this process is not; empty: it is
  const std::unique_ptr<SharedByDecodes> shared;
  std::unique_ptr<rpc::Newcomers> newcomers;    // outlives the server
  const std::unique_ptr<DatasetUses> uses;      // outlives what asks it
  const std::unique_ptr<Storage> storage;       // outlives the sources
  const std::unique_ptr<DiskForms> disk_forms;  // null: none are kept
  const std::vector<v1::Decoders> decoders;
  UnpackedBudget unpacked;  // outlives the sources
  const Config config;
  const WorkerEvents events;
  const std::shared_ptr<WakeSignal> wake;
  const std::unique_ptr<GpuWorker> gpus;  // outlives kernels and groups
  CoordinatorClient client;               // outlives threads that read
  RecordClient peers;                     // the same
  std::string name, address;
  Ownership ownership;
  BadSamples bad_samples;
  SampleCache cache;
  IdleWork idle_work;  // outlives who offers some
  StopSignal stop;
  StorageTroubles troubles;
  StageClocks listing{Clock::Real()};  // the threads that list datasets
  const RuntimeContext context;
  IdleForms idle_forms;
  BufferPool pool;
  const std::unique_ptr<LendingServer> lending;  // null: memory is not taken
  Scheduler scheduler;
  JobTable jobs;
  WorkerTracing tracing{Admits()};
  RowsService rows;
  ExplainCalls explain;
  RecordCalls records;
  ShardMover mover;
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<Session> session;

  Mutex mu;
  // A scrape ends no interval of the heartbeats'.
  Interval reported ABSL_GUARDED_BY(mu), scraped ABSL_GUARDED_BY(mu);
  // nullopt: no TLS.
  std::optional<WallTime> certificate_expiry ABSL_GUARDED_BY(mu);
  const WallTime started_at = Clock::Real().WallNow();
  std::atomic<bool> draining = false;
  std::unique_ptr<rpc::StatusServer> pages;  // null: none; asks all above
};

v1::WorkerStats Worker::State::CollectStats(Interval* interval) {
  const Scheduler::Stats now = scheduler.stats();
  const SampleCache::Stats cached = cache.stats();
  v1::WorkerStats stats;
  MutexLock lock(&mu);
  auto& [last_at, last, last_gpus, capacity] = *interval;
  const MonotonicTime at = Clock::Real().Now();
  const double seconds =
      std::max(1e-6, std::chrono::duration<double>(at - last_at).count());
  const auto rows_done = static_cast<double>(now.rows_total - last.rows_total);
  const double busy =
      static_cast<double>(now.busy_ns_total - last.busy_ns_total) / 1e9;
  const std::vector<GpuStats> gpus_now = gpus->stats();
  capacity.Update({.rows = rows_done,
                   .threads = static_cast<double>(config.threads),
                   .thread_seconds = busy},
                  AddDeviceStats(last_gpus, gpus_now, seconds, &stats));
  last_gpus = gpus_now;
  stats.set_rows_per_s(rows_done / seconds);
  stats.set_capacity_rows_per_s(capacity.rows_per_s());
  stats.set_rows_total(now.rows_total);
  stats.set_bytes_sent_total(rows.counters().bytes_sent);
  stats.set_payload_copies_total(rows.counters().payload_copies);
  stats.set_damaged_streams_total(rows.counters().damaged_streams);
  stats.set_rows_queued(now.rows_queued);
  stats.set_rows_placed_total(now.rows_placed_total);
  AddSharedRows(now, &stats);
  AddJobs(now, &stats);
  if (lending != nullptr) stats.set_lent_bytes(lending->counters().bytes);
  stats.set_streams(now.streams);
  AddCached(cached.datasets, stats.mutable_cached_datasets());
  stats.set_cache_bytes(cached.bytes);
  stats.set_cache_limit_bytes(cache.limit_bytes());
  stats.set_cache_hits_total(cached.hits);
  stats.set_cache_misses_total(cached.misses);
  AddFormAccount(cache.forms().account().totals(), &stats);
  AddIdleForms(idle_forms.stats(), &stats);
  AddStorage(storage->counters(), &stats);
  AddPeerRecords(peers.counters(), records.given(), &stats);
  stats.set_rows_ahead(now.rows_ahead);
  stats.set_bytes_ahead(now.bytes_ahead);
  const IndexCache::Stats indexes = jobs.index_stats();
  stats.set_index_bytes(indexes.bytes);
  stats.set_index_blocks_fetched_total(indexes.fetched_total);
  stats.set_buffers_in_use(pool.buffers_in_use());
  stats.set_buffers_total(pool.buffers_total());
  stats.set_busy_fraction(
      std::clamp(busy / seconds / config.threads, 0.0, 1.0));
  stats.set_bad_samples_total(bad_samples.total());
  AddLatency(Histogram::Summarize(last.latency, now.latency),
             stats.mutable_row_latency());
  stats.set_rss_bytes(rpc::ResidentBytes());
  if (certificate_expiry) AddExpiry(*certificate_expiry, &stats);
  AddStages({.scheduler = now,
             .threads = config.threads,
             .listers = ListingOptions{}.all_threads(),
             .listing = listing.Fold(),
             .gpus = gpus_now},
            stats.mutable_stages());
  last = now;
  last_at = at;
  return stats;
}

v1::Heartbeat Worker::State::MakeHeartbeat() {
  v1::Heartbeat heartbeat;
  *heartbeat.mutable_stats() = CollectStats(&reported);
  AddTroubles(troubles.Lasting(), &heartbeat);
  TakeBadSamples(&bad_samples, &heartbeat);
  return heartbeat;
}

absl::Status Worker::State::StartSession() {
  SessionOptions options;
  options.listings.source_limits = config.source;
  options.listings.stages = &listing;
  v1::RegisterWorker& registration = options.registration;
  registration.set_name(name);
  registration.set_address(address);
  AddProgram(config, *gpus, &registration);
  registration.mutable_decoders()->Assign(decoders.begin(), decoders.end());
  AddMachine(gpus->devices(), &registration);
  registration.set_public_key(key->public_key());
  registration.set_not_confined(not_confined);
  registration.set_insecure_listener(rpc::InsecureListener(
      config.security,
      {config.listen, rpc::HttpAddress(config.http).value_or("")}));
  session = std::make_unique<Session>(
      std::move(options),
      SessionEvents{.make_heartbeat = [this] { return MakeHeartbeat(); },
                    .heartbeat_lost =
                        [this](const v1::Heartbeat& beat) {
                          ReturnBadSamples(beat, &bad_samples);
                        },
                    .on_owned_shards =
                        [this](const v1::OwnedShards& message) {
                          OwnedShards shards = OwnedShards::From(message);
                          cache.SetOwned(message.dataset_id(), shards.owned);
                          Moved(message.dataset_id(),
                                ownership.Set(message.dataset_id(),
                                              std::move(shards)));
                        },
                    .on_access_tokens =
                        [this](const v1::KnownAccessTokens& message) {
                          rows.access().Replace(TokensIn(message));
                        },
                    .on_registered = events.on_ready,
                    .on_refused = events.on_refused},
      &client);
  return session->started();
}

absl::Status Worker::State::Ready() const {
  if (draining) return Unavailable("the worker is stopping");
  if (!session->alive())
    return Unavailable("the worker is not registered at its coordinator");
  return server->answers();
}

std::string Worker::State::Metrics() {
  MetricSources sources = {.started_at = started_at,
                           .stats = CollectStats(&scraped),
                           .latency = scheduler.stats().latency,
                           .threads = static_cast<uint64_t>(config.threads),
                           .in_session = session->alive(),
                           .answers = server->answers(),
                           .connections = server->connections(),
                           .spans = tracing.exported(),
                           .whole_decodes = &shared->whole};
  {
    MutexLock lock(&mu);
    sources.certificate_expiry = certificate_expiry;
  }
  return MetricsOf(sources);
}

absl::Status Worker::State::StartPages() {
  if (config.http.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(pages, rpc::StatusServer::Start(
                              {.address = config.http,
                               .ready = [this] { return Ready(); },
                               .metrics = [this] { return Metrics(); }},
                              config.security, &rows.access(), &Clock::Real()));
  return absl::OkStatus();
}

Worker::Worker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Worker::~Worker() = default;

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(Config config,
                                                      WorkerEvents events) {
  const auto wake = std::make_shared<WakeSignal>();
  auto shared = std::make_unique<SharedByDecodes>(&config);
  ASSIGN_OR_RETURN(
      std::unique_ptr<GpuWorker> gpus,
      GpuWorker::Open(config.gpu, config.image, wake, events.on_fatal));
  ASSIGN_OR_RETURN(std::unique_ptr<LendingServer> lending,
                   StartLending(config, gpus->importer()));
  auto uses = std::make_unique<DatasetUses>(Clock::Real());
  ASSIGN_OR_RETURN(
      std::unique_ptr<Storage> storage,
      Storage::Create(config.storage, StorageHooks{.uses = uses.get()}));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskForms> disk_forms,
                   StartDiskForms(config, *storage));
  ASSIGN_OR_RETURN(std::vector<v1::Decoders> decoders, OwnDecoders(*gpus));
  ASSIGN_OR_RETURN(std::shared_ptr<const rpc::WorkerKey> key,
                   rpc::WorkerKey::Make());
  auto state = std::make_unique<State>(
      std::move(config), std::move(events), wake, std::move(gpus),
      std::move(lending), std::move(uses), std::move(storage),
      std::move(disk_forms), std::move(decoders), std::move(shared),
      std::move(key));
  const Config& c = state->config;
  RETURN_IF_ERROR(state->CheckThreads());
  if (state->events.confine)
    state->not_confined =
        state->events.confine(!state->gpus->devices().empty());
  ASSIGN_OR_RETURN(state->newcomers, rpc::Newcomers::Start(c.newcomers));
  rpc::Newcomers* const newcomers = state->newcomers.get();
  state->rows.access().set_on_known(
      [newcomers](std::string_view peer) { newcomers->Prove(peer); });
  rpc::ServerOptions options = RowsServerOptions(c, newcomers);
  options.on_alive = state->events.on_alive;
  options.gate = [&access = state->rows.access()](std::string_view path,
                                                  std::string_view token) {
    return access.AdmitHeaders(path, token);
  };
  ASSIGN_OR_RETURN(
      state->server,
      rpc::Server::Start(options, c.security,
                         {state->rows.service(), state->explain.service(),
                          state->records.service(), state->tracing.service()}));
  state->address =
      c.advertise.empty() ? Reachable(state->server->address()) : c.advertise;
  state->name = c.name.empty() ? DefaultName(c.listen) : c.name;
  LOG_INFO("worker.serving name={} address={} {}", state->name, state->address,
           c.ToString());
  WarnOfCertificate(c.security, state->address);
  RETURN_IF_ERROR(state->tracing.StartExport(c, state->name));
  {
    MutexLock lock(&state->mu);
    state->certificate_expiry = rpc::CertificateExpiry(c.security);
  }
  RETURN_IF_ERROR(state->StartSession());
  RETURN_IF_ERROR(state->StartPages());
  return std::unique_ptr<Worker>(new Worker(std::move(state)));
}

const std::string& Worker::address() const { return state_->address; }
const std::string& Worker::name() const { return state_->name; }
std::string Worker::http_address() const {
  return state_->pages == nullptr ? "" : state_->pages->address();
}

absl::Status Worker::Replace(const rpc::Security& security) {
  RETURN_IF_ERROR(security.Validate());
  if (!security.cert_pem.empty())
    RETURN_IF_ERROR(state_->server->ReplaceTls(security));
  else
    RETURN_IF_ERROR(rpc::CheckRoots(security));
  {
    MutexLock lock(&state_->mu);
    state_->certificate_expiry = rpc::CertificateExpiry(security);
  }
  if (state_->pages != nullptr)
    RETURN_IF_ERROR(state_->pages->ReplaceTls(security));
  WarnOfCertificate(security, state_->address);
  state_->client.ReplaceSecurity(security);
  state_->peers.ReplaceSecurity(security);
  state_->rows.access().ReplaceOwn(security.token);
  return absl::OkStatus();
}

bool Worker::Drain() {
  const MonotonicTime deadline =
      Clock::Real().Now() +
      std::chrono::milliseconds(state_->config.drain_timeout_ms);
  state_->draining = true;
  state_->idle_work.Shut();
  LOG_INFO("worker.draining timeout_ms={}", state_->config.drain_timeout_ms);
  state_->server->StopServing();
  state_->session->Leave();
  state_->rows.StartDraining();
  const bool computed = state_->scheduler.WaitIdle(deadline);
  state_->rows.CloseStreams();
  const bool sent = state_->rows.WaitNoStreams(deadline);
  if (state_->ownership.HasPeers() && state_->cache.stats().records > 0)
    state_->records.WaitTaken(deadline);
  LOG_INFO("worker.drained complete={}", computed && sent);
  state_->StopReading();
  const Scheduler::Left left = state_->scheduler.Stop(
      std::max(deadline, Clock::Real().Now() + Worker::kStopTime));
  if (left.none()) return true;
  LOG_ERROR(
      "worker.hangs rows_in_work={} reads={} device_groups={} note=\"they do "
      "not end; the process ends without them\"",
      left.decode_threads, left.read_threads, left.stages);
  return false;
}

v1::WorkerStats Worker::CollectStats() {
  return state_->CollectStats(&state_->reported);
}

}  // namespace leat::worker
