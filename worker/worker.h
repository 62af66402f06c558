// SPDX-License-Identifier: Apache-2.0
//
// Worker: a worker's parts put together, and their order of birth and death.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "leat/v1/types.pb.h"
#include "worker/config/config.h"

namespace leat::worker {

struct WorkerEvents {
  // Registered for the first time, and serving.
  std::function<void()> on_ready;
  // rpc::ServerOptions::on_alive.
  std::function<void()> on_alive;
  // The coordinator refuses this worker for good.
  std::function<void(const absl::Status&)> on_refused;
  // A GPU has failed so that this process can do no more (GpuWorker::Open).
  std::function<void(const absl::Status&)> on_fatal;
  // Called once, when devices and storage are open and before anybody is
  // served, so that it may take rights from the process; `devices`: there are
  // some. Returns why it could not, for people; empty: it could. May be null.
  std::function<std::string(bool devices)> confine;
};

class Worker {
 public:
  // For threads to end what they are at, after the drain.
  static constexpr Duration kStopTime = std::chrono::seconds(2);

  // `config` has been validated. Returns once it listens. Errors: as
  // rpc::Server::Start, rpc::StatusServer::Start and GpuWorker::Open;
  // kResourceExhausted: the system does not give all threads (names the first
  // that is missing).
  static absl::StatusOr<std::unique_ptr<Worker>> Start(Config config,
                                                       WorkerEvents events);
  // Hard stop.
  ~Worker();

  // The address that consumers use.
  const std::string& address() const;
  const std::string& name() const;
  // The address of the status pages; empty: there are none.
  std::string http_address() const;
  // Leaves the coordinator, finishes what was asked, at most until
  // Config.drain_timeout_ms, ends the streams, and stops the threads. False:
  // storage or a device does not answer, which the log names; threads that wait
  // for it need this object still, so the process is to end without destroying
  // it.
  bool Drain();
  // The certificates and the token that it shows and asks for from now on;
  // streams that are there keep theirs. After an error nothing has changed.
  // Errors: as rpc::Server::ReplaceTls.
  absl::Status Replace(const rpc::Security& security);
  // Since the last call, where the message says "interval".
  v1::WorkerStats CollectStats();

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
