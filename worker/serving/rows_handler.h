// SPDX-License-Identifier: Apache-2.0
//
// RowsHandler: one consumer's Rows stream. Turns its messages into requests to
// the scheduler, and finished groups into messages.
//
// Rows of a request that names shared memory are written there. Their slots are
// free again when the rows have been answered; the slots of a withdrawn request
// are free when its lease ends, which `request_ended` then reports.
//
// Samples that a request supplies stay in its message (rows_messages.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "leat/v1/worker.pb.h"
#include "rpc/access/access.h"
#include "rpc/call/stream.h"
#include "worker/job/job_table.h"
#include "worker/scheduler/scheduler.h"
#include "worker/serving/rows_messages.h"
#include "worker/serving/rows_service.h"
#include "worker/shared_memory/server.h"

namespace leat::worker {

// Data that streams share with the service and that may outlive it by a moment.
struct RowsShared {
  using RowsStream = rpc::Stream<grpc::ByteBuffer>;

  explicit RowsShared(rpc::Security security)
      : access(std::move(security), &Clock::Real()) {}

  RowsServiceOptions options;
  JobTable* jobs = nullptr;
  Scheduler* scheduler = nullptr;
  SharedMemoryServer* sharing = nullptr;  // nullptr: no memory is taken
  RowsCounters counters;
  std::atomic<uint64_t> supplied_bytes{0};  // of samples that are kept
  std::atomic<bool> draining{false};
  rpc::Access access;  // thread-safe

  Mutex mu;
  CondVar changed;
  std::set<std::shared_ptr<RowsStream>> streams ABSL_GUARDED_BY(mu);
};

absl::Status DrainingStatus();

class RowsHandler final : public rpc::StreamHandler<grpc::ByteBuffer>,
                          public GroupSink,
                          public std::enable_shared_from_this<RowsHandler> {
 public:
  RowsHandler(std::shared_ptr<RowsShared> shared,
              std::shared_ptr<RowsShared::RowsStream> stream);
  ~RowsHandler() override = default;

  void OnMessage(grpc::ByteBuffer message) override;
  void OnGroup(FinishedGroup group) override;
  void OnClosed(const absl::Status& status) override;

 private:
  class RequestLease;

  absl::Status Decode(const grpc::ByteBuffer& message,
                      v1::RowsRequest* request);
  absl::Status Handle(v1::RowsRequest request);
  absl::Status Open(const v1::OpenRows& open);
  absl::Status SendOpened(const v1::OpenRows& open);
  void OnRuntime(absl::StatusOr<JobTable::Runtime> runtime);
  absl::Status Begin(JobTable::Runtime runtime);
  absl::Status Ask(RowRequest request);
  absl::Status Submit(Scheduler::StreamId id, RowRequest request);
  absl::Status Place(std::span<const size_t> field_bytes, RowRequest& request);
  absl::Status Cancel(uint64_t request_id);
  void OnLeaseEnded(const RequestLease& lease);
  void SendEnded(uint64_t request_id);
  void SendError(uint64_t request_id, uint64_t group_id,
                 std::span<const uint32_t> rows, const absl::Status& status);
  bool Send(const v1::RowsResponse& header,
            std::span<const std::byte> data = {},
            std::shared_ptr<const void> owner = nullptr);

  const std::shared_ptr<RowsShared> shared_;
  const std::shared_ptr<RowsShared::RowsStream> stream_;
  const std::shared_ptr<StreamSharing> sharing_;  // nullptr: none
  std::string consumer_, plan_hash_;              // constant once opened
  IteratorEnd end_;                               // constant likewise
  std::atomic<bool> checksums_{false};            // required in each message
  const SuppliedBytes supplied_bytes_;            // of this stream

  Mutex request_mu_;  // keeps requests in their order of arrival
  Mutex mu_;
  bool opened_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  JobTable::Runtime runtime_ ABSL_GUARDED_BY(mu_);
  // Set while the stream is open.
  std::shared_ptr<const void> use_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const JobRuntime::Reading> reading_ ABSL_GUARDED_BY(mu_);
  Scheduler::StreamId stream_id_ ABSL_GUARDED_BY(mu_) = 0;  // 0: none yet
  std::vector<RowRequest> pending_ ABSL_GUARDED_BY(mu_);
  size_t pending_rows_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, RequestLease*> leases_
      ABSL_GUARDED_BY(mu_);  // by request_id
};

}  // namespace leat::worker
