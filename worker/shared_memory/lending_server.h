// SPDX-License-Identifier: Apache-2.0
//
// LendingServer: the socket on which consumers of this host lend memory
// (leat/v1/shared_memory.proto), served by one thread.
//
// The thread never waits for a peer: a packet at a time of whoever has sent
// one, and a peer that does not read its replies is cut off. Connections are
// bounded; one that has not shown a stream's secret within the handshake's
// time is closed. At the bound, and when descriptors run out, others wait in
// the listener's backlog.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "worker/shared_memory/stream_lending.h"

namespace leat::worker {

struct LendingOptions {
  LendingLimits limits;
  size_t max_connections = 1024;
  Duration handshake_timeout = std::chrono::seconds(2);
};

class LendingServer {
 public:
  // `importer` may be null; else it outlives the server and all memories.
  // kUnavailable: this system has no such sockets.
  static absl::StatusOr<std::unique_ptr<LendingServer>> Start(
      LendingOptions options, DeviceImporter* importer);
  // Ends the connections. Memory that groups in work hold stays mapped until
  // they let go of it.
  ~LendingServer();

  // The socket's name, without the leading zero byte.
  const std::string& address() const;
  // GPUs whose memory is taken.
  const std::vector<std::string>& device_uuids() const;
  const LendingCounters& counters() const;
  // For one Rows stream. Its secret is good until it is closed or dropped.
  std::shared_ptr<StreamLending> OpenStream();

 private:
  struct State;
  explicit LendingServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
