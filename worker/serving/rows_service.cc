// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/rows_service.h"

#include <set>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/server_stream.h"
#include "worker/serving/rows_handler.h"

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
    const absl::StatusOr<rpc::Caller> caller =
        Admit("WorkerService/Rows", *context);
    if (!caller.ok())
      return new rpc::RejectedStream<Buffer, Buffer>(caller.status());
    return rpc::ServerStream<Buffer, Buffer>::Start(
        context, shared_->options.max_queued_messages,
        [&, this](std::shared_ptr<Stream<Buffer>> stream) {
          shared_->access.Watch(*caller, stream);
          {
            MutexLock lock(&shared_->mu);
            shared_->streams.insert(stream);
          }
          return std::make_shared<RowsHandler>(shared_, std::move(stream));
        });
  }

  absl::StatusOr<rpc::Caller> Admit(std::string_view method,
                                    const grpc::ServerContextBase& context) {
    absl::StatusOr<rpc::Caller> caller = shared_->access.Admit(method, context);
    if (caller.ok() && shared_->draining) return DrainingStatus();
    return caller;
  }
  RowsShared& shared() { return *shared_; }

 private:
  const std::shared_ptr<RowsShared> shared_;
};

RowsService::RowsService(RowsServiceOptions options, rpc::Security security,
                         JobTable* jobs, Scheduler* scheduler,
                         SharedMemoryServer* sharing) {
  auto shared = std::make_shared<RowsShared>(std::move(security));
  shared->options = std::move(options);
  shared->jobs = jobs;
  shared->scheduler = scheduler;
  shared->sharing = sharing;
  grpc_ = std::make_unique<Grpc>(std::move(shared));
}

RowsService::~RowsService() = default;

grpc::Service* RowsService::service() { return grpc_.get(); }

absl::Status RowsService::Admit(std::string_view method,
                                const grpc::ServerContextBase& context) {
  return grpc_->Admit(method, context).status();
}

rpc::Access& RowsService::access() { return grpc_->shared().access; }

const RowsCounters& RowsService::counters() const {
  return grpc_->shared().counters;
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
