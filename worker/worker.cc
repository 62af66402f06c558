// SPDX-License-Identifier: Apache-2.0
#include "worker/worker.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/utf8.h"
#include "rpc/access/worker_key.h"
#include "rpc/http/status_server.h"
#include "rpc/process/machine.h"
#include "rpc/server/server.h"
#include "rpc/tls/server_tls.h"
#include "worker/compute/gpu_worker.h"
#include "worker/metrics.h"
#include "worker/session/heartbeat_parts.h"
#include "worker/session/known_tokens.h"
#include "worker/session/own_decoders.h"
#include "worker/session/registration.h"
#include "worker/shared_memory/device_importer.h"
#include "worker/source/storage/base/open_file_budget.h"
#include "worker/worker_parts.h"
#include "worker/worker_state.h"

namespace leat::worker {
namespace {

constexpr size_t kMostReason = 1024;  // bytes of Heartbeat's not_reloaded

}  // namespace

v1::WorkerStats Worker::State::CollectStats(StatsInterval* of) {
  v1::WorkerStats stats = of->Collect();
  MutexLock lock(&mu);
  if (certificate) AddCertificate(*certificate, &stats);
  return stats;
}

v1::Heartbeat Worker::State::MakeHeartbeat() {
  v1::Heartbeat heartbeat;
  *heartbeat.mutable_stats() = CollectStats(&reported);
  AddFailures(failures.Lasting(), &heartbeat);
  TakeBadSamples(&bad_samples, &heartbeat);
  MutexLock lock(&mu);
  heartbeat.set_not_reloaded(not_reloaded);
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
  MetricSources sources = {.daemon = {.started_at = started_at,
                                      .answers = server->answers(),
                                      .connections = server->connections(),
                                      .certificate = {}},
                           .stats = CollectStats(&scraped),
                           .latency = scheduler.stats().latency,
                           .threads = static_cast<uint64_t>(config.threads),
                           .open_data_files = storage->open_files()->open(),
                           .in_session = session->alive(),
                           .spans = tracing.exported(),
                           .whole_decodes = &shared->whole};
  {
    MutexLock lock(&mu);
    sources.daemon.certificate = certificate;
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
  ASSIGN_OR_RETURN(std::unique_ptr<SharedMemoryServer> sharing,
                   StartSharing(config, gpus->importer()));
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
      std::move(sharing), std::move(uses), std::move(storage),
      std::move(disk_forms), std::move(decoders), std::move(shared),
      std::move(key));
  const Config& c = state->config;
  RETURN_IF_ERROR(state->CheckThreads());
  if (state->events.confine)
    state->not_confined =
        state->events.confine(!state->gpus->devices().empty());
  ASSIGN_OR_RETURN(state->unauthenticated,
                   rpc::UnauthenticatedConnections::Start(c.unauthenticated));
  rpc::UnauthenticatedConnections* const unauthenticated =
      state->unauthenticated.get();
  state->rows.access().set_on_known([unauthenticated](std::string_view peer) {
    unauthenticated->Prove(peer);
  });
  rpc::ServerOptions options = RowsServerOptions(c, unauthenticated);
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
  if (c.storage.allow && c.storage.allow->empty())
    LOG_WARN(
        "worker.reads_nothing listen={} note=\"jobs that read files or objects "
        "fail here: --allow PREFIX names the folders and buckets that a worker "
        "beyond loopback reads\"",
        c.listen);
  RETURN_IF_ERROR(state->tracing.StartExport(c, state->name));
  {
    MutexLock lock(&state->mu);
    state->certificate = rpc::FirstToExpire(c.security);
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
    state_->certificate = rpc::FirstToExpire(security);
  }
  if (state_->pages != nullptr)
    RETURN_IF_ERROR(state_->pages->ReplaceTls(security));
  WarnOfCertificate(security, state_->address);
  state_->client.ReplaceSecurity(security);
  state_->peers.ReplaceSecurity(security);
  state_->rows.access().ReplaceOwn(security.token);
  return absl::OkStatus();
}

void Worker::SetReloaded(const absl::Status& status) {
  MutexLock lock(&state_->mu);
  state_->not_reloaded = ToUtf8(Message(status), kMostReason);
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
