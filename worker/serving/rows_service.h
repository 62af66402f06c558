// SPDX-License-Identifier: Apache-2.0
//
// RowsService: leat.v1.WorkerService. Its streams' handlers (rows_handler.h)
// turn messages into the scheduler's requests and finished groups into messages
// that borrow the groups' buffers.
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
  size_t max_queued_messages = 4096;     // of one stream, to be sent
  // The bytes of client-supplied samples, which are kept until their rows are
  // computed.
  uint64_t max_supplied_bytes_per_stream = 160 << 20;
  uint64_t max_supplied_bytes_total = 2ull << 30;
  // By which streams are told that this is the worker that the coordinator
  // knows; null: they are not.
  std::shared_ptr<const rpc::WorkerKey> key;
  // Whose listeners see requests; outlives the service's streams. nullptr:
  // nobody.
  const Tracer* tracer = nullptr;
};

struct RowsCounters {
  std::atomic<uint64_t> bytes_sent{0};
  // Counted where a message's payload is found not to be the group's buffer.
  std::atomic<uint64_t> payload_copies{0};
  // Ended by a request that was changed on its way.
  std::atomic<uint64_t> damaged_streams{0};
};

class RowsService {
 public:
  // All outlive the service and its streams. `sharing` null: consumers' memory
  // is not taken.
  RowsService(RowsServiceOptions options, rpc::Security security,
              JobTable* jobs, Scheduler* scheduler,
              SharedMemoryServer* sharing = nullptr);
  ~RowsService();

  grpc::Service* service();
  // Whether a call of another of the worker's services may begin: the caller
  // may (rpc::Access), and the worker is not draining.
  absl::Status Admit(std::string_view method,
                     const grpc::ServerContextBase& context);
  // Decides who is let in.
  rpc::Access& access();
  const RowsCounters& counters() const;

  // From now on streams are refused, and requests answered by kUnavailable;
  // what was asked before is finished.
  void StartDraining();
  // Ends every stream by kUnavailable, once what is queued on it has gone out.
  void CloseStreams();
  // Waits until no stream is open. False: not by `deadline`.
  bool WaitNoStreams(MonotonicTime deadline);

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::worker
