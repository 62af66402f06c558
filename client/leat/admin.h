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
  // Returns a list or a state: the response of the call in brackets. `what` is
  // "status" (GetStatus: health, findings, workers and jobs), "workers"
  // (ListWorkers), "jobs" (ListJobs), "datasets" (ListDatasets), "consumers"
  // (ListConsumers), "shards" (ListShards: the owners of each shard of the
  // dataset `name`), "pools" (ListPools) or "tokens" (ListAccessTokens, without
  // the secrets). kInvalidArgument: another word, or "shards" without a name.
  virtual absl::StatusOr<std::string> Get(std::string_view what,
                                          std::string_view name = "") = 0;
  // Changes what `name` names. kInvalidArgument: another verb than these.
  // "delete-job": a job's consumers continue, but no other can attach to it.
  // "delete-dataset": a dataset and its index; kFailedPrecondition: jobs use
  // it. "refresh-dataset": a dataset is listed again, for future jobs; the call
  // waits until that is done. "drain": a worker's shards are taken away; it
  // finishes the rows that were requested. "undrain": a drained worker gets
  // shards again. "revoke-token": an access token, by its ID or its name, is
  // invalid at once. "unmute": the mute of a code's findings ends.
  virtual absl::Status Do(std::string_view verb, std::string_view name) = 0;
  // Returns leat.v1.GetBottleneckResponse: what limits a job. `since`: the
  // period to look back, up to an hour.
  virtual absl::StatusOr<std::string> GetBottleneck(std::string_view job,
                                                    absl::Duration since) = 0;
  // Changes how much a daemon logs: "trace", "debug", "info", "warn", "error".
  // `worker` empty: the coordinator's level.
  virtual absl::Status SetLogLevel(std::string_view level,
                                   std::string_view worker) = 0;
  // Creates an access token. `name` empty: a name is generated. `lifetime` zero: the token does not
  // expire. The answer's "token" is a secret, and is stored nowhere else.
  virtual absl::StatusOr<std::string> CreateAccessToken(
      std::string_view role, std::string_view name,
      absl::Duration lifetime) = 0;
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
  // Mutes the findings of a code. `lifetime` zero: until "unmute".
  virtual absl::Status MuteFinding(std::string_view code,
                                   absl::Duration lifetime) = 0;
};

}  // namespace leat
