// SPDX-License-Identifier: Apache-2.0
//
// Service: connects, and returns jobs.
#include "client/private/service.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "absl/time/clock.h"
#include "client/api/batches_state.h"
#include "client/api/created_job.h"
#include "client/api/job_data.h"
#include "client/api/put_lists.h"
#include "client/coordinator/retry.h"
#include "client/leat/client.h"
#include "client/private/machine.h"
#include "core/cluster/roles.h"
#include "core/cluster/service_address.h"
#include "core/plan/checked_job.h"
#include "core/status.h"
#include "openssl/err.h"
#include "rpc/process/process.h"
#include "rpc/tls/pem.h"
#include "rpc/tls/tls_probe.h"
#include "rpc/wire/messages.h"

namespace leat {
namespace {

// The threads of an iterator: engine, sharer, feeder, the caller of Next.
constexpr int kOwnThreads = 4;

// How often the lists of a job are uploaded, if the coordinator lacks them when
// the job is created.
constexpr int kMaxListPuts = 3;

// gRPC starts threads on demand: if it gets none, it hangs or ends the process.
// Later connections use the threads of the first one. A forked child has none
// of them, and would wait for them for ever.
absl::Status CheckThreads() {
  static std::atomic<pid_t> connected = 0;
  if (connected == 0) {
    RETURN_IF_ERROR(rpc::CheckThreads(kOwnThreads));
    connected = getpid();
  }
  if (connected == getpid()) return absl::OkStatus();
  return FailedPrecondition(
      "process {} was forked from process {}, which had connected before; the "
      "threads that connections need stay with that one: start processes "
      "without fork (Python: multiprocessing's \"spawn\")",
      getpid(), connected.load());
}

}  // namespace

namespace client {

rpc::Hindrance Connection::WhatHinders(const std::string& address) const {
  // Time to connect, and for a handshake: the caller should have the error
  // within two seconds, and gRPC's own attempt takes one of them.
  constexpr Duration kPatience = std::chrono::milliseconds(700);
  const std::string lost = lease ? lease->LostText() : "";
  if (!lost.empty()) return {.what = lost, .settled = true};
  return rpc::WhatHinders(address, control.security(), kPatience);
}

}  // namespace client

struct Service::State {
  std::shared_ptr<client::Connection> connection;
};

namespace {

absl::StatusOr<std::unique_ptr<client::PrivateService>> Lease(
    const ConnectOptions& options) {
  if (options.private_pid)
    return client::PrivateService::Find(*options.private_pid, options.timeout);
  if (options.embedded_workers < 1 || options.embedded_workers > 64)
    return InvalidArgument("embedded_workers {}: want 1 to 64",
                           options.embedded_workers);
  if (options.embedded_threads > 1024)
    return InvalidArgument("embedded_threads {}: want 0 to 1024",
                           options.embedded_threads);
  if (options.embedded_disk_cache.empty() !=
      (options.embedded_disk_cache_bytes == 0))
    return InvalidArgument(
        "embedded_disk_cache \"{}\" and embedded_disk_cache_bytes {}: want "
        "both or none",
        options.embedded_disk_cache, options.embedded_disk_cache_bytes);
  const char* const name = std::getenv("LEAT_PRIVATE_NAME");
  return client::PrivateService::Acquire(
      {.daemon_dir = options.daemon_dir,
       .workers = options.embedded_workers,
       .threads = options.embedded_threads,
       .cache_bytes = options.embedded_cache_bytes,
       .disk_cache = options.embedded_disk_cache,
       .disk_cache_bytes = options.embedded_disk_cache_bytes,
       .devices = options.embedded_devices,
       .name = name == nullptr ? "" : name,
       .version = std::string(rpc::kLeatVersion),
       .timeout = options.timeout});
}

// gRPC says only that no connection comes about. It finds the other errors of
// certificates when it connects.
absl::Status CheckPair(const rpc::Security& security) {
  const std::vector<rpc::Certificate> chain =
      rpc::CertificatesIn(security.cert_pem, 1);
  const rpc::Key key = rpc::KeyIn(security.key_pem);
  if (chain.empty() || key == nullptr ||
      X509_check_private_key(chain.front().get(), key.get()) == 1)
    return absl::OkStatus();
  ERR_clear_error();
  return InvalidArgument(
      "the TLS key (LEAT_TLS_KEY) is not the key of the certificate "
      "(LEAT_TLS_CERT): want the two of one pair");
}

rpc::Security SecurityOf(const ConnectOptions& options) {
  return {.token = options.access_token,
          .ca_pem = options.ca_pem,
          .cert_pem = options.cert_pem,
          .key_pem = options.key_pem};
}

}  // namespace

std::optional<TlsProbe> ProbeTls(const ConnectOptions& options,
                                 absl::Duration patience) {
  std::optional<rpc::TlsProbe> probe =
      rpc::ProbeTls(options.address, SecurityOf(options),
                    absl::ToChronoNanoseconds(patience));
  if (!probe) return std::nullopt;
  return TlsProbe{std::move(probe->what), std::move(probe->remedy)};
}

Service::Service(std::unique_ptr<State> state) : state_(std::move(state)) {}
Service::~Service() = default;

absl::StatusOr<std::unique_ptr<Service>> Service::Connect(
    const ConnectOptions& options) {
  if (options.timeout <= absl::ZeroDuration())
    return InvalidArgument("timeout {}: want more than 0",
                           absl::FormatDuration(options.timeout));
  if (!options.address.empty())
    RETURN_IF_ERROR(CheckServiceAddress("address", options.address));
  const absl::Time deadline = absl::Now() + options.timeout;
  rpc::Security security = SecurityOf(options);
  RETURN_IF_ERROR(security.Validate());
  RETURN_IF_ERROR(CheckPair(security));
  if (!security.token.empty()) {
    ASSIGN_OR_RETURN(security.token,
                     TokenIn("access_token", security.token, 1));
  }
  RETURN_IF_ERROR(CheckThreads());
  std::unique_ptr<client::PrivateService> lease;
  std::string address = options.address, token_file = options.access_token_file;
  if (address.empty()) {
    ASSIGN_OR_RETURN(lease, Lease(options));
    address = lease->address();
    security = {.token = lease->token()};
    token_file.clear();
  }
  client::KeepReceiveMemory();
  auto connection = std::make_shared<client::Connection>(
      std::move(lease), std::move(address), std::move(security),
      options.timeout, std::move(token_file));
  RETURN_IF_ERROR(connection->control.Connect(deadline));
  auto state = std::make_unique<State>();
  state->connection = std::move(connection);
  return std::make_unique<Service>(std::move(state));
}

absl::StatusOr<std::unique_ptr<Job>> Service::CreateJob(
    std::string_view spec_json, absl::Duration timeout, Relist relist,
    const OnWaiting& on_waiting) {
  ASSIGN_OR_RETURN(const JobSpec spec, rpc::JobSpecFromJson(spec_json));
  RETURN_IF_ERROR(CheckJob(spec).status());
  v1::CreateJobRequest request;
  *request.mutable_spec() = rpc::ToProto(spec);
  request.set_relist(static_cast<v1::Relist>(relist));
  v1::CreateJobResponse response;
  client::Control& control = state_->connection->control;
  // A second call attaches to the job that the first one may have created.
  const client::Retry retry{.random = client::RandomFractions(),
                            .now = absl::Now,
                            .pause = absl::SleepFor};
  const absl::Time deadline = absl::Now() + timeout;
  const auto with_lists = [&](const auto& each) -> absl::Status {
    for (size_t i = 0; i < NumSources(spec); ++i)
      if (const Graph& pipeline = PipelineOf(spec, i);
          client::HasLists(pipeline))
        RETURN_IF_ERROR(each(pipeline));
    return absl::OkStatus();
  };
  bool has_lists = false;
  for (int attempt = 1;; ++attempt) {
    RETURN_IF_ERROR(with_lists([&](const Graph& pipeline) {
      has_lists = true;
      return client::PutLists(pipeline, retry, deadline, &control);
    }));
    const absl::Status status = retry.Run(deadline, [&](absl::Duration left) {
      return control.CreateJob(request, left, on_waiting, &response);
    });
    if (status.ok()) break;
    // A coordinator that restarted without its state has lost the blocks.
    if (!has_lists || !absl::IsDataLoss(status) || attempt == kMaxListPuts)
      return status;
  }
  RETURN_IF_ERROR(client::CheckCreated(spec, response.job()));
  return client::MakeJob(state_->connection, response);
}

absl::StatusOr<std::unique_ptr<Job>> Service::GetJob(std::string_view name) {
  v1::GetJobRequest request;
  request.set_name(std::string(name));
  v1::GetJobResponse response;
  client::Control& control = state_->connection->control;
  RETURN_IF_ERROR(control.Call(&v1::CoordinatorService::Stub::GetJob, request,
                               &response, control.timeout()));
  return client::MakeJob(state_->connection, response.job());
}

Admin& Service::admin() { return state_->connection->admin; }

const std::string& Service::address() const {
  return state_->connection->control.address();
}

std::string Service::PrivateJson() const {
  const auto& lease = state_->connection->lease;
  return lease == nullptr ? "null" : lease->ToJson();
}

std::string_view Version() { return rpc::kLeatVersion; }

}  // namespace leat
