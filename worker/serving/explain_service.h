// SPDX-License-Identifier: Apache-2.0
//
// ExplainCalls: leat.v1.ExplainService.
//
// A call waits for its job, then for the one thread that answers calls
// (call_queue.h), since an answer may wait for storage.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "worker/image/base/limits.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace leat::worker {

class JobTable;

inline constexpr size_t kMaxExplainCalls = 64;  // under way

class ExplainCalls {
 public:
  // Returns OK if a call may begin.
  using Admit = std::function<absl::Status(std::string_view method,
                                           const grpc::ServerContextBase&)>;

  // `jobs` outlives it.
  ExplainCalls(Admit admit, JobTable* jobs, const ImageLimits& limits);
  // REQUIRES: the server has shut down.
  ~ExplainCalls();

  // kResourceExhausted: its thread cannot be created.
  const absl::Status& started() const;
  grpc::Service* service();
  // Answers waiting and later calls with kUnavailable.
  void Stop();

 private:
  class Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace leat::worker
