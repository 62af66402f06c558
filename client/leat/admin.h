// SPDX-License-Identifier: Apache-2.0
//
// Admin: what operators see and do. Replies are the JSON form (proto field
// names, snake_case, unset fields printed, 64-bit numbers as numbers) of the
// responses in proto/leat/v1/admin.proto and pool.proto, so that every tool
// prints the same names.
//
// Thread-safe. Every call has the connection's timeout, but for those that
// watch a pool or follow events.
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

// An EventsQuery says which events of the coordinator are wanted.
struct EventsQuery {
  // The last answer's number; only later events are wanted. Zero: all.
  uint64_t after = 0, instance = 0;
  std::optional<absl::Duration> since;  // of the last so long, and later ones
  std::string subject;  // "job/resnet50", or a kind: "worker"; empty: all
  bool follow = false;  // also those that are still to happen
};

struct ConnectOptions;

// What a handshake with the coordinator shows of the certificates of both
// sides.
struct TlsProbe {
  std::string what;    // "HOST:PORT shows a certificate that has expired"
  std::string remedy;  // what to do about it; empty: nothing is wrong
};
// Shakes hands with the coordinator at `options.address`. nullopt: nobody
// answers there, or it is no address of TCP. Takes up to `patience` for each
// address that the name has, and as long again for the handshake.
std::optional<TlsProbe> ProbeTls(const ConnectOptions& options,
                                 absl::Duration patience);

class Admin {
 public:
  virtual ~Admin() = default;
  virtual absl::StatusOr<std::string> GetStatus() = 0;
  virtual absl::StatusOr<std::string> ListWorkers() = 0;
  virtual absl::StatusOr<std::string> ListJobs() = 0;
  virtual absl::StatusOr<std::string> ListDatasets() = 0;
  virtual absl::StatusOr<std::string> ListShards(std::string_view dataset) = 0;
  virtual absl::StatusOr<std::string> ListConsumers() = 0;
  // `since`: looks so far back, up to an hour.
  virtual absl::StatusOr<std::string> GetBottleneck(std::string_view job,
                                                    absl::Duration since) = 0;
  virtual absl::Status DeleteJob(std::string_view name) = 0;
  virtual absl::Status DeleteDataset(std::string_view name) = 0;
  // Lists a dataset again, for jobs to come, and waits until that is done.
  virtual absl::Status RefreshDataset(std::string_view name) = 0;
  virtual absl::Status DrainWorker(std::string_view name) = 0;
  virtual absl::Status UndrainWorker(std::string_view name) = 0;
  // `worker` empty: the coordinator's.
  virtual absl::Status SetLogLevel(std::string_view level,
                                   std::string_view worker) = 0;
  // `name` empty: one is made. `lifetime` zero: the token does not expire. The
  // answer's "token" is a secret that nobody else keeps.
  virtual absl::StatusOr<std::string> CreateAccessToken(
      std::string_view role, std::string_view name,
      absl::Duration lifetime) = 0;
  virtual absl::StatusOr<std::string> ListAccessTokens() = 0;
  // `token` is its id or its name.
  virtual absl::Status RevokeAccessToken(std::string_view token) = 0;
  virtual absl::StatusOr<std::string> ListPools() = 0;
  // `max` 0: the pool has no bounds any more.
  virtual absl::Status SetPool(std::string_view name, uint32_t min,
                               uint32_t max) = 0;
  // Calls `on_pool` with the pool as it stands (leat.v1.Pool), and again when
  // it changes, on this thread. OK: `on_pool` said false, or the time `within`
  // is over. kUnavailable: the coordinator has gone.
  virtual absl::Status WatchPool(
      std::string_view name, absl::Duration within,
      const std::function<bool(const std::string& pool)>& on_pool) = 0;
  // Events, oldest first: `on_events` gets each answer as it comes, and says
  // whether to go on; the first answer comes at once. With `follow` the call
  // lasts a minute at most: ask again after the last answer. OK also where
  // `on_events` ended it.
  virtual absl::Status WatchEvents(
      const EventsQuery& query,
      const std::function<bool(std::string_view json)>& on_events) = 0;
  // `lifetime` zero: until it is unmuted.
  virtual absl::Status MuteFinding(std::string_view code,
                                   absl::Duration lifetime) = 0;
  virtual absl::Status UnmuteFinding(std::string_view code) = 0;
};

}  // namespace leat
