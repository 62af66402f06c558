// SPDX-License-Identifier: Apache-2.0
//
// Worker: a worker's parts put together, in their order of construction and
// destruction.
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
  // Called when registered for the first time, and serving.
  std::function<void()> on_ready;
  // rpc::ServerOptions::on_alive.
  std::function<void()> on_alive;
  // Called if the coordinator refuses this worker permanently.
  std::function<void(const absl::Status&)> on_refused;
  // Called if a GPU has failed so that this process can do no more
  // (GpuWorker::Open).
  std::function<void(const absl::Status&)> on_fatal;
  // Called once, when devices and storage are open and before any client is
  // served, so that it may take rights from the process; `devices`: there are
  // some. Returns why it could not, as text for people; empty: it could. May be
  // null.
  std::function<std::string(bool devices)> confine;
};

class Worker {
 public:
  // The time that threads have after the drain to end their work.
  static constexpr Duration kStopTime = std::chrono::seconds(2);

  // `config` has been validated. Returns once the worker listens. Errors: as
  // rpc::Server::Start, rpc::StatusServer::Start and GpuWorker::Open;
  // kResourceExhausted: the system does not give all threads (names the first
  // that is missing).
  static absl::StatusOr<std::unique_ptr<Worker>> Start(Config config,
                                                       WorkerEvents events);
  // Stops hard.
  ~Worker();

  // Returns the address that consumers use.
  const std::string& address() const;
  const std::string& name() const;
  // Returns the address of the status pages; empty if there are none.
  std::string http_address() const;
  // Leaves the coordinator, finishes the rows that were requested, at most
  // until Config.drain_timeout_ms, ends the streams, and stops the threads.
  // Returns false if storage or a device does not answer, which the log names.
  // Threads that wait for it still need this object, so the process is to end
  // without destroying it.
  bool Drain();
  // Replaces the certificates and the token that it presents and requires from
  // now on; existing streams keep theirs. After an error nothing has changed.
  // Errors: as rpc::Server::ReplaceTls.
  absl::Status Replace(const rpc::Security& security);
  // The next heartbeats report whether the files with certificates and the
  // token, as they are now, are in use, and otherwise why not.
  void SetReloaded(const absl::Status& status);
  // Statistics called "interval" in the message cover the time since the last
  // call.
  v1::WorkerStats CollectStats();

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
