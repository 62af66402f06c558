// SPDX-License-Identifier: Apache-2.0
#include "worker/rows_service.h"

#include <set>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/server_stream.h"
#include "worker/rows_handler.h"

namespace leat::worker {
namespace {

using rpc::Stream;
using Buffer = grpc::ByteBuffer;

}  // namespace

class RowsService::Grpc final
    : public v1::WorkerService::WithRawCallbackMethod_Rows<
          v1::WorkerService::Service> {
 public:
  explicit Grpc(std::shared_ptr<RowsShared> shared)
      : shared_(std::move(shared)) {}

  grpc::ServerBidiReactor<Buffer, Buffer>* Rows(
      grpc::CallbackServerContext* context) override {
    if (const absl::Status status = Admit(*context); !status.ok())
      return new rpc::RejectedStream<Buffer, Buffer>(status);
    return rpc::ServerStream<Buffer, Buffer>::Start(
        context, shared_->options.max_queued_messages,
        [this](std::shared_ptr<Stream<Buffer>> stream) {
          {
            MutexLock lock(&shared_->mu);
            shared_->streams.insert(stream);
          }
          return std::make_shared<RowsHandler>(shared_, std::move(stream));
        });
  }

  absl::Status Admit(const grpc::ServerContextBase& context) {
    RETURN_IF_ERROR(Check(context));
    return shared_->draining ? DrainingStatus() : absl::OkStatus();
  }
  RowsShared& shared() { return *shared_; }

 private:
  absl::Status Check(const grpc::ServerContextBase& context) {
    MutexLock lock(&shared_->mu);
    const absl::Status status = rpc::CheckMetadata(shared_->security, context);
    if (!absl::IsUnauthenticated(status) || shared_->token_before.empty())
      return status;
    rpc::Security before;
    before.token = shared_->token_before;
    return rpc::CheckMetadata(before, context);
  }

  const std::shared_ptr<RowsShared> shared_;
};

RowsService::RowsService(RowsServiceOptions options, rpc::Security security,
                         JobTable* jobs, Scheduler* scheduler,
                         LendingServer* lending) {
  auto shared = std::make_shared<RowsShared>();
  shared->options = options;
  {
    MutexLock lock(&shared->mu);
    shared->security = std::move(security);
  }
  shared->jobs = jobs;
  shared->scheduler = scheduler;
  shared->lending = lending;
  grpc_ = std::make_unique<Grpc>(std::move(shared));
}

RowsService::~RowsService() = default;

grpc::Service* RowsService::service() { return grpc_.get(); }

absl::Status RowsService::Admit(const grpc::ServerContextBase& context) {
  return grpc_->Admit(context);
}

const RowsCounters& RowsService::counters() const {
  return grpc_->shared().counters;
}

void RowsService::ReplaceToken(std::string token) {
  RowsShared& shared = grpc_->shared();
  MutexLock lock(&shared.mu);
  std::swap(shared.security.token, token);
  shared.token_before = token == shared.security.token ? "" : std::move(token);
}

void RowsService::StartDraining() { grpc_->shared().draining = true; }

void RowsService::CloseStreams() {
  std::set<std::shared_ptr<Stream<Buffer>>> streams;
  {
    MutexLock lock(&grpc_->shared().mu);
    streams = grpc_->shared().streams;
  }
  for (const auto& stream : streams) stream->Close(DrainingStatus());
}

bool RowsService::WaitNoStreams(MonotonicTime deadline) {
  RowsShared& shared = grpc_->shared();
  MutexLock lock(&shared.mu);
  while (!shared.streams.empty())
    if (!shared.changed.WaitUntil(&shared.mu, deadline) &&
        !shared.streams.empty())
      return false;
  return true;
}

}  // namespace leat::worker
