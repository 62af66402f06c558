// SPDX-License-Identifier: Apache-2.0
#include "worker/rows_service.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/raw_frame.h"
#include "rpc/server_stream.h"
#include "worker/job_table.h"
#include "worker/scheduler.h"

namespace leat::worker {
namespace {

constexpr size_t kPlanHashBytes = 32;
constexpr size_t kMaxConsumerBytes = 256;

using rpc::Stream;
using Buffer = grpc::ByteBuffer;

// What streams share with the service, and may outlive it by a moment.
struct Shared {
  RowsServiceOptions options;
  rpc::Security security;
  JobTable* jobs = nullptr;
  Scheduler* scheduler = nullptr;
  RowsCounters counters;
  std::atomic<bool> draining{false};

  Mutex mu;
  CondVar changed;
  std::set<std::shared_ptr<Stream<Buffer>>> streams ABSL_GUARDED_BY(mu);
};

RowAsk FromProto(const v1::AskRows& proto) {
  return {.ask_id = proto.ask_id(),
          .epoch = proto.epoch(),
          .step = proto.step(),
          .rows = {proto.rows().begin(), proto.rows().end()},
          .samples = {proto.samples().begin(), proto.samples().end()}};
}

absl::Status CheckOpen(const v1::OpenRows& open) {
  if (open.plan_hash().size() != kPlanHashBytes)
    return InvalidArgument("open: a plan hash of {} bytes: want {}",
                           open.plan_hash().size(), kPlanHashBytes);
  if (open.consumer().size() > kMaxConsumerBytes)
    return InvalidArgument("open: a consumer's name of {} bytes: want up to {}",
                           open.consumer().size(), kMaxConsumerBytes);
  return absl::OkStatus();
}

absl::Status Draining() {
  return Unavailable("this worker is draining: ask another");
}

// Whether the message's last slice is the very memory of `data`.
bool Borrows(const Buffer& message, std::span<const std::byte> data) {
  if (data.empty()) return true;
  std::vector<grpc::Slice> slices;
  return message.Dump(&slices).ok() && !slices.empty() &&
         static_cast<const void*>(slices.back().begin()) == data.data();
}

// One consumer's stream.
class RowsHandler final : public rpc::StreamHandler<Buffer>,
                          public GroupSink,
                          public std::enable_shared_from_this<RowsHandler> {
 public:
  RowsHandler(std::shared_ptr<Shared> shared,
              std::shared_ptr<Stream<Buffer>> stream)
      : shared_(std::move(shared)), stream_(std::move(stream)) {}

  void OnMessage(Buffer message) override {
    v1::RowsRequest request;
    absl::Status status = rpc::DecodeMessage(message, &request);
    if (status.ok()) status = Handle(request);
    if (!status.ok()) stream_->Close(std::move(status));
  }

  void OnGroup(FinishedGroup group) override {
    v1::RowsResponse header;
    header.set_ask_id(group.ask_id);
    header.set_group_id(group.group_id);
    header.mutable_rows()->Add(group.rows.begin(), group.rows.end());
    if (!group.status.ok()) return SendError(std::move(header), group.status);
    header.set_payload_bytes(group.payload.size());
    for (size_t at = 0; at < group.payload.size(); at += rpc::kMaxChunkBytes) {
      const auto data = group.payload.subspan(
          at, std::min(rpc::kMaxChunkBytes, group.payload.size() - at));
      header.set_offset(at);
      Buffer message = rpc::EncodeRows(header, data, group.owner);
      if (!Borrows(message, data)) ++shared_->counters.payload_copies;
      shared_->counters.bytes_sent += data.size();
      if (!Send(std::move(message))) return;
    }
  }

  void OnClosed(const absl::Status& status) override {
    Scheduler::StreamId id = 0;
    {
      MutexLock lock(&mu_);
      closed_ = true;
      id = std::exchange(stream_id_, 0);
      pending_.clear();
    }
    if (id != 0) shared_->scheduler->CloseStream(id);
    LOG_DEBUG("rows.closed consumer={} status=\"{}\"", consumer_,
              Message(status));
    MutexLock lock(&shared_->mu);
    shared_->streams.erase(stream_);
    shared_->changed.NotifyAll();
  }

 private:
  absl::Status Handle(const v1::RowsRequest& request) {
    switch (request.kind_case()) {
      case v1::RowsRequest::kOpen:
        return Open(request.open());
      case v1::RowsRequest::kAsk:
        return Ask(FromProto(request.ask()));
      case v1::RowsRequest::kCancel:
        return Cancel(request.cancel().ask_id());
      case v1::RowsRequest::KIND_NOT_SET:
        break;
    }
    return InvalidArgument("a request of no known kind");
  }

  absl::Status Open(const v1::OpenRows& open) {
    RETURN_IF_ERROR(CheckOpen(open));
    ASSIGN_OR_RETURN(const Finish finish, FinishFromWire(open.finish()));
    {
      MutexLock lock(&mu_);
      if (std::exchange(opened_, true))
        return InvalidArgument("the stream is open already");
    }
    consumer_ = open.consumer();
    shared_->jobs->Get(
        open.plan_hash(), finish,
        [weak = weak_from_this()](absl::StatusOr<JobTable::Runtime> runtime) {
          if (const auto handler = weak.lock())
            handler->OnRuntime(std::move(runtime));
        });
    return absl::OkStatus();
  }

  // Not while OnMessage hands on asks of its own: both hold ask_mu_.
  void OnRuntime(absl::StatusOr<JobTable::Runtime> runtime) {
    absl::Status status = runtime.status();
    if (status.ok()) status = Begin(*std::move(runtime));
    if (!status.ok()) stream_->Close(std::move(status));
  }

  absl::Status Begin(JobTable::Runtime runtime) {
    MutexLock asks(&ask_mu_);
    ASSIGN_OR_RETURN(
        const Scheduler::StreamId id,
        shared_->scheduler->OpenStream(runtime, shared_from_this()));
    std::vector<RowAsk> pending;
    bool closed = false;
    {
      MutexLock lock(&mu_);
      closed = closed_;
      if (!closed) {
        runtime_ = std::move(runtime);
        stream_id_ = id;
        pending = std::exchange(pending_, {});
        pending_rows_ = 0;
      }
    }
    if (closed) {
      shared_->scheduler->CloseStream(id);
      return absl::OkStatus();
    }
    for (RowAsk& ask : pending) RETURN_IF_ERROR(Submit(id, std::move(ask)));
    return absl::OkStatus();
  }

  absl::Status Ask(RowAsk ask) {
    if (shared_->draining) {
      v1::RowsResponse header;
      header.set_ask_id(ask.ask_id);
      header.mutable_rows()->Add(ask.rows.begin(), ask.rows.end());
      SendError(std::move(header), Draining());
      return absl::OkStatus();
    }
    MutexLock asks(&ask_mu_);
    Scheduler::StreamId id = 0;
    {
      MutexLock lock(&mu_);
      if (!opened_) return InvalidArgument("an ask before the stream's open");
      id = stream_id_;
      if (id == 0) {  // the job is being fetched
        pending_rows_ += ask.rows.size() + 1;
        if (pending_rows_ > shared_->options.max_rows_per_stream)
          return ResourceExhausted(
              "{} rows wait for their job: the limit is {}", pending_rows_,
              shared_->options.max_rows_per_stream);
        pending_.push_back(std::move(ask));
        return absl::OkStatus();
      }
    }
    return Submit(id, std::move(ask));
  }

  absl::Status Submit(Scheduler::StreamId id, RowAsk ask) {
    JobTable::Runtime runtime;
    {
      MutexLock lock(&mu_);
      runtime = runtime_;
    }
    RETURN_IF_ERROR(runtime->CheckAsk(ask));
    return shared_->scheduler->Ask(id, std::move(ask));
  }

  absl::Status Cancel(uint64_t ask_id) {
    MutexLock asks(&ask_mu_);
    Scheduler::StreamId id = 0;
    {
      MutexLock lock(&mu_);
      std::erase_if(pending_,
                    [&](const RowAsk& ask) { return ask.ask_id == ask_id; });
      id = stream_id_;
    }
    if (id != 0) shared_->scheduler->Cancel(id, ask_id);
    return absl::OkStatus();
  }

  void SendError(v1::RowsResponse header, const absl::Status& status) {
    header.mutable_error()->set_code(static_cast<int32_t>(status.code()));
    header.mutable_error()->set_message(std::string(Message(status)));
    Send(rpc::EncodeMessage(header));
  }

  bool Send(Buffer message) {
    const absl::Status status = stream_->Send(std::move(message));
    if (absl::IsResourceExhausted(status)) stream_->Cancel();
    return status.ok();
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Stream<Buffer>> stream_;
  std::string consumer_;  // OnMessage's

  Mutex ask_mu_;  // keeps asks in the order in which they came
  Mutex mu_;
  bool opened_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  JobTable::Runtime runtime_ ABSL_GUARDED_BY(mu_);
  Scheduler::StreamId stream_id_ ABSL_GUARDED_BY(mu_) = 0;  // 0: not yet
  std::vector<RowAsk> pending_ ABSL_GUARDED_BY(mu_);
  size_t pending_rows_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

class RowsService::Grpc final
    : public v1::WorkerService::WithRawCallbackMethod_Rows<
          v1::WorkerService::Service> {
 public:
  explicit Grpc(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  grpc::ServerBidiReactor<Buffer, Buffer>* Rows(
      grpc::CallbackServerContext* context) override {
    absl::Status status = rpc::CheckMetadata(shared_->security, *context);
    if (status.ok() && shared_->draining) status = Draining();
    if (!status.ok()) return new rpc::RejectedStream<Buffer, Buffer>(status);
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

  Shared& shared() { return *shared_; }

 private:
  const std::shared_ptr<Shared> shared_;
};

RowsService::RowsService(RowsServiceOptions options, rpc::Security security,
                         JobTable* jobs, Scheduler* scheduler) {
  auto shared = std::make_shared<Shared>();
  shared->options = options;
  shared->security = std::move(security);
  shared->jobs = jobs;
  shared->scheduler = scheduler;
  grpc_ = std::make_unique<Grpc>(std::move(shared));
}

RowsService::~RowsService() = default;

grpc::Service* RowsService::service() { return grpc_.get(); }

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
  for (const auto& stream : streams) stream->Close(Draining());
}

bool RowsService::WaitNoStreams(MonotonicTime deadline) {
  Shared& shared = grpc_->shared();
  MutexLock lock(&shared.mu);
  while (!shared.streams.empty())
    if (!shared.changed.WaitUntil(&shared.mu, deadline) &&
        !shared.streams.empty())
      return false;
  return true;
}

}  // namespace leat::worker
