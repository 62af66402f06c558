// SPDX-License-Identifier: Apache-2.0
//
// SharedMemoryServer: the socket on which consumers of this host share memory
// (leat/v1/shared_memory.proto), served by one thread.
//
// The thread never waits for a peer: it takes one packet at a time from a peer
// that has sent one, and disconnects a peer that does not read its replies.
// Connections are bounded; one that has not shown a stream's secret within the
// handshake's time is closed. At the bound, and when descriptors run out,
// others wait in the listener's backlog.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "worker/shared_memory/stream_sharing.h"

namespace leat::worker {

struct SharedMemoryOptions {
  SharedMemoryLimits limits;
  size_t max_connections = 1024;
  Duration handshake_timeout = std::chrono::seconds(2);
};

class SharedMemoryServer {
 public:
  // `importer` may be nullptr; otherwise it outlives the server and all
  // memories. kUnavailable: this system has no such sockets.
  static absl::StatusOr<std::unique_ptr<SharedMemoryServer>> Start(
      SharedMemoryOptions options, DeviceImporter* importer);
  // Ends the connections. Memory that groups in work hold stays mapped until
  // they release it.
  ~SharedMemoryServer();

  // The socket's name, without the leading zero byte.
  const std::string& address() const;
  // Returns the GPUs whose memory is taken.
  const std::vector<std::string>& device_uuids() const;
  const SharedMemoryCounters& counters() const;
  // Opens sharing for one Rows stream. Its secret is valid until it is closed
  // or dropped.
  std::shared_ptr<StreamSharing> OpenStream();

 private:
  struct State;
  explicit SharedMemoryServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
