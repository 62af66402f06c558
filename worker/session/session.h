// SPDX-License-Identifier: Apache-2.0
//
// Session: this worker's membership in the coordinator's cluster.
//
// One thread keeps a WorkerSession stream: it registers, sends heartbeats, and
// reconnects without limit, with backoff, when the stream is lost. Serving
// never depends on it. Listings lists the datasets that the coordinator directs
// it to.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/clock.h"
#include "leat/v1/coordinator.pb.h"
#include "worker/session/listings.h"

namespace leat::worker {

class CoordinatorClient;

struct SessionOptions {
  v1::RegisterWorker registration;
  Duration welcome_timeout = std::chrono::seconds(5);
  Duration first_backoff = std::chrono::milliseconds(100);
  Duration max_backoff = std::chrono::seconds(2);
  Duration min_heartbeat = std::chrono::milliseconds(10);
  Duration max_heartbeat = std::chrono::seconds(60);
  ListingOptions listings;
};

// Called on the session's thread.
struct SessionEvents {
  std::function<v1::Heartbeat()> make_heartbeat;
  // A heartbeat was made and could not be sent; or it was sent shortly before
  // the stream broke, and may not have arrived. Such a message has only the bad
  // samples. The coordinator may get them twice: it then counts how often they
  // were met too high, but not how many they are.
  std::function<void(const v1::Heartbeat&)> heartbeat_lost;
  std::function<void(const v1::OwnedShards&)> on_owned_shards;
  std::function<void(const v1::KnownAccessTokens&)> on_access_tokens;
  // The first registration succeeded.
  std::function<void()> on_registered;
  // The coordinator refuses this worker permanently: wrong token or version
  // before the first registration, or another worker took its name.
  std::function<void(const absl::Status&)> on_refused;
};

class Session {
 public:
  // `client` outlives the session. Starts its threads. If `started` returns an
  // error, it lacks them: only destroy it.
  Session(SessionOptions options, SessionEvents events,
          CoordinatorClient* client);
  // Leaves, and waits for a listing in progress, which may hang in storage.
  ~Session();

  // kResourceExhausted: a thread cannot be created.
  const absl::Status& started() const { return started_; }

  // True if it is registered at the coordinator, on a stream that is open.
  bool alive() const;
  // Ends the membership: the coordinator forgets this worker. Waits for the
  // stream to end. Cancels a listing in progress, without waiting for it.
  // Idempotent.
  void Leave();

 private:
  struct State;
  std::unique_ptr<State> state_;
  absl::Status started_;
};

}  // namespace leat::worker
