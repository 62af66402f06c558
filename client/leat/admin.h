// SPDX-License-Identifier: Apache-2.0
//
// Admin monitors and operates a service. Replies are the JSON form (proto field
// names, snake_case, unset fields printed, 64-bit numbers as numbers) of the
// responses in proto/leat/v1/admin.proto and pool.proto, so that every tool
// prints the same names.
//
// Thread-safe. Every call has the connection's timeout, except WatchPool and
// WatchEvents with `follow`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace leat {

// An EventsQuery selects events of the coordinator.
struct EventsQuery {
  // From the last answer; only later events are returned. Zero: all.
  uint64_t after = 0, instance = 0;
  std::optional<absl::Duration> since;  // events this recent, and later ones
  std::string subject;  // "job/resnet50", or a kind: "worker"; empty: all
  bool follow = false;  // also events that are still to happen
};

struct ConnectOptions;

// The certificates of both sides, as a handshake with the coordinator shows
// them.
struct TlsProbe {
  std::string what;    // "HOST:PORT shows a certificate that has expired"
  std::string remedy;  // empty: nothing is wrong
};
// Performs a handshake with the coordinator at `options.address`. Returns
// nullopt if nothing answers there, or if it is not a TCP address. Takes up to
// `patience` for each address that the name resolves to, and as long again for
// the handshake.
std::optional<TlsProbe> ProbeTls(const ConnectOptions& options,
                                 absl::Duration patience);

// The calls of `leat`, for programs. Service::admin() returns it.
class Admin {
 public:
  virtual ~Admin() = default;
  // Returns leat.v1.GetStatusResponse: health, findings, workers and jobs.
  virtual absl::StatusOr<std::string> GetStatus() = 0;
  // Returns leat.v1.ListWorkersResponse.
  virtual absl::StatusOr<std::string> ListWorkers() = 0;
  // Returns leat.v1.ListJobsResponse.
  virtual absl::StatusOr<std::string> ListJobs() = 0;
  // Returns leat.v1.ListDatasetsResponse.
  virtual absl::StatusOr<std::string> ListDatasets() = 0;
  // Returns leat.v1.ListShardsResponse: the owners of each shard of a dataset.
  virtual absl::StatusOr<std::string> ListShards(std::string_view dataset) = 0;
  // Returns leat.v1.ListConsumersResponse.
  virtual absl::StatusOr<std::string> ListConsumers() = 0;
  // Returns leat.v1.GetBottleneckResponse: what limits a job. `since`: the
  // period to look back, up to an hour.
  virtual absl::StatusOr<std::string> GetBottleneck(std::string_view job,
                                                    absl::Duration since) = 0;
  // Deletes a job: its consumers continue, but no other can attach to it.
  virtual absl::Status DeleteJob(std::string_view name) = 0;
  // Deletes a dataset and its index. kFailedPrecondition: jobs use it.
  virtual absl::Status DeleteDataset(std::string_view name) = 0;
  // Lists a dataset again, for future jobs, and waits until that is done.
  virtual absl::Status RefreshDataset(std::string_view name) = 0;
  // Takes a worker's shards away; it finishes the rows that were requested.
  virtual absl::Status DrainWorker(std::string_view name) = 0;
  // Gives a drained worker shards again.
  virtual absl::Status UndrainWorker(std::string_view name) = 0;
  // Changes how much a daemon logs: "trace", "debug", "info", "warn", "error".
  // `worker` empty: the coordinator's level.
  virtual absl::Status SetLogLevel(std::string_view level,
                                   std::string_view worker) = 0;
  // Creates an access token. `name` empty: a name is generated. `lifetime` zero: the token does not
  // expire. The answer's "token" is a secret, and is stored nowhere else.
  virtual absl::StatusOr<std::string> CreateAccessToken(
      std::string_view role, std::string_view name,
      absl::Duration lifetime) = 0;
  // Returns leat.v1.ListAccessTokensResponse, without the secrets.
  virtual absl::StatusOr<std::string> ListAccessTokens() = 0;
  // Makes an access token invalid at once. `token` is the token's ID or its name.
  virtual absl::Status RevokeAccessToken(std::string_view token) = 0;
  // Returns leat.v1.ListPoolsResponse.
  virtual absl::StatusOr<std::string> ListPools() = 0;
  // Sets how many workers a pool may have. `max` 0: the pool's bounds are removed.
  virtual absl::Status SetPool(std::string_view name, uint32_t min,
                               uint32_t max) = 0;
  // Calls `on_pool` with the pool (leat.v1.Pool) at once, and again after each
  // change, on this thread. OK: `on_pool` returned false, or `within` is over.
  // kUnavailable: the coordinator has gone.
  virtual absl::Status WatchPool(
      std::string_view name, absl::Duration within,
      const std::function<bool(const std::string& pool)>& on_pool) = 0;
  // Calls `on_events` with each answer as it arrives, oldest events first; the
  // first answer comes at once. `on_events` returns whether to continue. With
  // `follow` the call lasts a minute at most: call again with the last answer's
  // numbers. OK also if `on_events` ended it.
  virtual absl::Status WatchEvents(
      const EventsQuery& query,
      const std::function<bool(std::string_view json)>& on_events) = 0;
  // Mutes the findings of a code. `lifetime` zero: until UnmuteFinding.
  virtual absl::Status MuteFinding(std::string_view code,
                                   absl::Duration lifetime) = 0;
  // Ends the mute.
  virtual absl::Status UnmuteFinding(std::string_view code) = 0;
};

}  // namespace leat
