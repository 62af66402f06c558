// SPDX-License-Identifier: Apache-2.0
//
// RowsService: leat.v1.WorkerService. Its streams' handlers (rows_handler.h)
// turn messages into requests to the scheduler, and finished groups into
// messages that refer to the groups' buffers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/access/access.h"
#include "rpc/access/worker_key.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace leat {
class Tracer;
}

namespace leat::worker {

class JobTable;
class SharedMemoryServer;
class Scheduler;

struct RowsServiceOptions {
  size_t max_rows_per_stream = 2 << 20;  // also while the job is being fetched
  size_t max_queued_messages = 4096;     // per stream, to be sent
  // Limits the bytes of client-supplied samples, which are kept until their
  // rows are computed.
  uint64_t max_supplied_bytes_per_stream = 160 << 20;
  uint64_t max_supplied_bytes_total = 2ull << 30;
  // Proves to streams that this is the worker that the coordinator knows;
  // nullptr: no proof.
  std::shared_ptr<const rpc::WorkerKey> key;
  // Its listeners see requests; outlives the service's streams. nullptr: none.
  const Tracer* tracer = nullptr;
};

struct RowsCounters {
  std::atomic<uint64_t> bytes_sent{0};
  // Messages whose payload was found not to be the group's buffer.
  std::atomic<uint64_t> payload_copies{0};
  // Streams ended by a request that was changed on its way.
  std::atomic<uint64_t> damaged_streams{0};
};

class RowsService {
 public:
  // All pointers outlive the service and its streams. `sharing` nullptr:
  // consumers' memory is not taken.
  RowsService(RowsServiceOptions options, rpc::Security security,
              JobTable* jobs, Scheduler* scheduler,
              SharedMemoryServer* sharing = nullptr);
  ~RowsService();

  grpc::Service* service();
  // Returns OK if a call of another of the worker's services may begin: the
  // caller is allowed (rpc::Access), and the worker is not draining.
  absl::Status Admit(std::string_view method,
                     const grpc::ServerContextBase& context);
  // Decides which callers are admitted.
  rpc::Access& access();
  const RowsCounters& counters() const;

  // From now on streams are refused, and requests answered with kUnavailable;
  // earlier requests are finished.
  void StartDraining();
  // Ends every stream with kUnavailable, once its queued messages have been
  // sent.
  void CloseStreams();
  // Waits until no stream is open. Returns false if one was open at `deadline`.
  bool WaitNoStreams(MonotonicTime deadline);

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::worker
