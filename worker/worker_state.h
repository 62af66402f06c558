// SPDX-License-Identifier: Apache-2.0
//
// Worker::State: the parts of a worker. They are constructed in the order of
// their declarations and destroyed in the reverse order: a part that outlives
// others is declared before them.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/certificate_term.h"
#include "core/mutex.h"
#include "core/observe/stages.h"
#include "rpc/access/worker_key.h"
#include "rpc/connections/unauthenticated_connections.h"
#include "rpc/http/status_server.h"
#include "rpc/server/server.h"
#include "worker/cache/idle_forms.h"
#include "worker/cache/idle_work.h"
#include "worker/cache/sample_cache.h"
#include "worker/compute/buffer_pool.h"
#include "worker/compute/gpu_worker.h"
#include "worker/compute/thread_clock.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/job/bad_samples.h"
#include "worker/job/job_table.h"
#include "worker/job/ownership.h"
#include "worker/job/runtime_context.h"
#include "worker/job/stop_signal.h"
#include "worker/job/storage_failures.h"
#include "worker/scheduler/scheduler.h"
#include "worker/serving/explain_service.h"
#include "worker/serving/record_client.h"
#include "worker/serving/records_service.h"
#include "worker/serving/rows_service.h"
#include "worker/serving/shard_mover.h"
#include "worker/session/coordinator_client.h"
#include "worker/session/session.h"
#include "worker/shared_memory/server.h"
#include "worker/source/packed/unpacked_budget.h"
#include "worker/source/storage/storage.h"
#include "worker/stats_interval.h"
#include "worker/worker.h"
#include "worker/worker_parts.h"
#include "worker/worker_tracing.h"

namespace leat::worker {

struct Worker::State {
  State(Config c, WorkerEvents e, std::shared_ptr<WakeSignal> w,
        std::unique_ptr<GpuWorker> g, std::unique_ptr<SharedMemoryServer> l,
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
            .failures = &failures,
            .read_ahead_of = config.read_ahead_of,
            .nearby = config.nearby,
            .disk = disk_forms.get(),
            .seek_indexes =
                config.form_kinds().seek_index ? JpegFormCodec() : FormCodec(),
            .allowed = &storage->allowed(),
            .open_files = storage->open_files(),
            .asker = config.ask_peers ? &peers : nullptr,
            .forms = config.form_kinds().any() ? JpegFormCodec() : FormCodec(),
            .idle = cache.forms().keeps_any() ? &idle_work : nullptr},
        idle_forms(IdleFormsConfig(config), &cache, &idle_work, Clock::Real(),
                   ThreadClock::Real()),
        pool(config.buffer_bytes, wake, gpus->buffer_memory()),
        sharing(std::move(l)),
        scheduler(SchedulerConfig(), &pool, wake, Clock::Real()),
        jobs(JobTableConfig(config), &client, &context),
        rows({.max_rows_per_stream = config.max_rows_per_stream,
              .max_supplied_bytes_per_stream =
                  config.max_supplied_bytes_per_stream,
              .max_supplied_bytes_total = config.max_supplied_bytes_total,
              .key = key,
              .tracer = tracing.tracer()},
             config.security, &jobs, &scheduler, sharing.get()),
        explain(Admits(), &jobs, config.image),
        // Also serves while the worker drains: others take over the records
        // that it keeps.
        records(
            [this](std::string_view method, const auto& call) {
              return rows.access().Admit(method, call).status();
            },
            &jobs, JpegFormCodec(), key),
        mover(&jobs, &ownership) {}
  ~State() {
    pages.reset();
    StopReading();
    client.Shutdown();  // nothing needs these calls any more
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
    return {.threads = config.threads,
            .group_bytes = has_gpu ? gpus->group_bytes() : config.group_bytes,
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
  // Ends waits for storage, as far as that is possible.
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
    return failures.Start();
  }
  StatsSources Sources() {
    return {.config = &config,
            .scheduler = &scheduler,
            .cache = &cache,
            .idle_forms = &idle_forms,
            .storage = storage.get(),
            .gpus = gpus.get(),
            .pool = &pool,
            .sharing = sharing.get(),
            .jobs = &jobs,
            .rows = &rows,
            .peers = &peers,
            .records = &records,
            .bad_samples = &bad_samples,
            .listing = &listing};
  }
  v1::WorkerStats CollectStats(StatsInterval* stats) ABSL_LOCKS_EXCLUDED(mu);
  absl::Status StartSession();
  void Moved(const std::string& dataset_id, std::vector<MovedShard> shards) {
    if (config.ask_peers) mover.Moved(dataset_id, std::move(shards));
  }
  absl::Status StartPages();
  absl::Status Ready() const;
  std::string Metrics();
  v1::Heartbeat MakeHeartbeat();

  const std::shared_ptr<const rpc::WorkerKey> key;
  std::string not_confined;  // why this process is not confined; empty: it is
  const std::unique_ptr<SharedByDecodes> shared;
  // Outlives the server.
  std::unique_ptr<rpc::UnauthenticatedConnections> unauthenticated;
  const std::unique_ptr<DatasetUses> uses;      // outlives its users
  const std::unique_ptr<Storage> storage;       // outlives the sources
  const std::unique_ptr<DiskForms> disk_forms;  // nullptr: none are kept
  const std::vector<v1::Decoders> decoders;
  UnpackedBudget unpacked;  // outlives the sources
  const Config config;
  const WorkerEvents events;
  const std::shared_ptr<WakeSignal> wake;
  const std::unique_ptr<GpuWorker> gpus;  // outlives kernels and groups
  CoordinatorClient client;               // outlives threads that read
  RecordClient peers;                     // outlives threads that read
  std::string name, address;
  Ownership ownership;
  BadSamples bad_samples;
  SampleCache cache;
  IdleWork idle_work;  // outlives those that add work to it
  StopSignal stop;
  StorageFailures failures;
  StageClocks listing{Clock::Real()};  // the threads that list datasets
  const RuntimeContext context;
  IdleForms idle_forms;
  BufferPool pool;
  const std::unique_ptr<SharedMemoryServer>
      sharing;  // null: memory is not taken
  Scheduler scheduler;
  JobTable jobs;
  WorkerTracing tracing{Admits()};
  RowsService rows;
  ExplainCalls explain;
  RecordCalls records;
  ShardMover mover;
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<Session> session;

  // Separate, so that a scrape does not end an interval of the heartbeats.
  StatsInterval reported{Sources()}, scraped{Sources()};
  Mutex mu;
  // nullopt: no TLS.
  std::optional<CertificateTerm> certificate ABSL_GUARDED_BY(mu);
  std::string not_reloaded ABSL_GUARDED_BY(mu);  // as of Heartbeat
  const WallTime started_at = Clock::Real().WallNow();
  std::atomic<bool> draining = false;
  // nullptr: no pages; reads all parts above.
  std::unique_ptr<rpc::StatusServer> pages;
};

}  // namespace leat::worker
