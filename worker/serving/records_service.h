// SPDX-License-Identifier: Apache-2.0
//
// RecordCalls: leat.v1.RecordsService, by which other workers take records that
// this one keeps. An answer may wait for this worker's disk cache, so that
// threads of their own give them (call_queue.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "core/clock.h"
#include "rpc/access/worker_key.h"
#include "worker/image/jpeg/forms/codec.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace leat::worker {

class JobTable;

inline constexpr size_t kMaxRecordCalls = 128;  // under way
// Of a record and its form: larger ones are read from storage.
inline constexpr size_t kMaxRecordBytes = 4 << 20;

class RecordCalls {
 public:
  // Whether a call may begin.
  using Admit = std::function<absl::Status(std::string_view method,
                                           const grpc::ServerContextBase&)>;

  // `jobs` outlives it. `codec`: of the forms that are kept.
  RecordCalls(Admit admit, JobTable* jobs, FormCodec codec,
              std::shared_ptr<const rpc::WorkerKey> key);
  // REQUIRES: the server has shut down.
  ~RecordCalls();

  // kResourceExhausted: its threads cannot be had.
  const absl::Status& started() const;
  grpc::Service* service();
  // Answers what waits, and what comes, by kUnavailable.
  void Stop();
  uint64_t given() const;  // records
  // Waits, when this worker leaves, until the new owners of its shards have
  // taken what they want: until nobody has asked for 1.5 s, or, once somebody
  // has, for half a second; no longer than `deadline`.
  void WaitTaken(MonotonicTime deadline);

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::worker
