// SPDX-License-Identifier: Apache-2.0
//
// RecordCalls: leat.v1.RecordsService, by which other workers take records that
// this one keeps. Separate threads answer (call_queue.h), since an answer may
// wait for this worker's disk cache.
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
// The most bytes of a record and its form: larger ones are read from storage.
inline constexpr size_t kMaxRecordBytes = 4 << 20;

class RecordCalls {
 public:
  // Returns OK if a call may begin.
  using Admit = std::function<absl::Status(std::string_view method,
                                           const grpc::ServerContextBase&)>;

  // `jobs` outlives it. `codec`: for the forms that are kept.
  RecordCalls(Admit admit, JobTable* jobs, FormCodec codec,
              std::shared_ptr<const rpc::WorkerKey> key);
  // REQUIRES: the server has shut down.
  ~RecordCalls();

  // kResourceExhausted: its threads cannot be created.
  const absl::Status& started() const;
  grpc::Service* service();
  // Answers waiting and later calls with kUnavailable.
  void Stop();
  uint64_t given() const;  // records
  // Waits, when this worker leaves, until the new owners of its shards have
  // taken the records that they want: until no request has come for 1.5 s or,
  // once one has come, for half a second; no longer than `deadline`.
  void WaitTaken(MonotonicTime deadline);

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::worker
