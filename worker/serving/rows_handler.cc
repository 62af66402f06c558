// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/rows_handler.h"

#include <algorithm>
#include <utility>

#include "core/cluster/fault.h"
#include "core/log.h"
#include "core/observe/tracing.h"
#include "core/pipeline/epilogue.h"
#include "core/status.h"
#include "rpc/call/raw_frame.h"
#include "worker/serving/rows_messages.h"

namespace leat::worker {
namespace {

using Buffer = grpc::ByteBuffer;

// True if the message's last slice is the very memory of `data`.
bool Borrows(const Buffer& message, std::span<const std::byte> data) {
  if (data.empty()) return true;
  std::vector<grpc::Slice> slices;
  return message.Dump(&slices).ok() && !slices.empty() &&
         static_cast<const void*>(slices.back().begin()) == data.data();
}

}  // namespace

absl::Status DrainingStatus() {
  return WithFault(Unavailable("this worker is draining: ask another"),
                   Fault::kTransient);
}

// The lease of a request whose rows go to shared memory.
class RowsHandler::RequestLease {
 public:
  RequestLease(std::shared_ptr<RowsHandler> handler, const RowRequest& request,
               uint64_t offer)
      : handler_(std::move(handler)),
        request_id_(request.request_id),
        memory_id_(request.memory_id),
        offer_(offer),
        slots_(request.slots) {}
  ~RequestLease() {
    GiveBack(slots_);
    handler_->OnLeaseEnded(*this);
  }
  void GiveBack(std::span<const uint32_t> slots) const {
    handler_->sharing_->GiveBack(memory_id_, offer_, slots);
  }
  uint64_t request_id() const { return request_id_; }

  bool withdrawn = false;  // guarded by the handler's mu_

 private:
  const std::shared_ptr<RowsHandler> handler_;
  const uint64_t request_id_;
  const uint64_t memory_id_;
  const uint64_t offer_;
  const std::vector<uint32_t> slots_;
};

RowsHandler::RowsHandler(std::shared_ptr<RowsShared> shared,
                         std::shared_ptr<RowsShared::RowsStream> stream)
    : shared_(std::move(shared)),
      stream_(std::move(stream)),
      sharing_(shared_->sharing != nullptr ? shared_->sharing->OpenStream()
                                           : nullptr),
      supplied_bytes_{.of_stream = std::make_shared<std::atomic<uint64_t>>(0),
                      .of_all = {shared_, &shared_->supplied_bytes}} {}

void RowsHandler::OnMessage(Buffer message) {
  v1::RowsRequest request;
  absl::Status status = Decode(message, &request);
  if (status.ok()) status = Handle(std::move(request));
  if (!status.ok()) stream_->Close(std::move(status));
}

// Consumers that request checksums send them, from their first message on.
absl::Status RowsHandler::Decode(const Buffer& message,
                                 v1::RowsRequest* request) {
  absl::Status status = rpc::DecodeRequest(message, request);
  if (status.ok() && (checksums_ || request->open().checksums()) &&
      !request->has_crc32c())
    status = DataLoss("a RowsRequest lost its checksum on its way");
  if (!status.ok() && checksums_ && !absl::IsDataLoss(status))
    status = DataLoss("changed on its way: {}", Message(status));
  if (absl::IsDataLoss(status)) {
    ++shared_->counters.damaged_streams;
    LOG_WARN("rows.damaged consumer={} reason=\"{}\"", consumer_,
             Message(status));
  }
  return status;
}

void RowsHandler::OnGroup(FinishedGroup group) {
  // The slots are free before the answer: after it they may be requested again.
  if (group.placed)
    static_cast<const RequestLease*>(group.lease)->GiveBack(group.slots);
  if (!group.status.ok())
    return SendError(group.request_id, group.group_id, group.rows,
                     group.status);
  v1::RowsResponse header;
  header.set_request_id(group.request_id);
  header.set_group_id(group.group_id);
  header.mutable_rows()->Add(group.rows.begin(), group.rows.end());
  if (group.placed) {
    header.set_placed(true);
    Send(header, {}, std::move(group.owner));
    return;
  }
  header.set_payload_bytes(group.payload.size());
  header.set_worker_us(group.took_us);
  for (size_t at = 0; at < group.payload.size(); at += rpc::kMaxChunkBytes) {
    const auto data = group.payload.subspan(
        at, std::min(rpc::kMaxChunkBytes, group.payload.size() - at));
    header.set_offset(at);
    if (!Send(header, data, group.owner)) return;
  }
}

void RowsHandler::OnClosed(const absl::Status& status) {
  Scheduler::StreamId id = 0;
  std::vector<RowRequest> pending;
  std::shared_ptr<const void> use;
  std::shared_ptr<const JobRuntime::Reading> reading;
  {
    MutexLock lock(&mu_);
    closed_ = true;
    use.swap(use_);
    reading.swap(reading_);
    id = std::exchange(stream_id_, 0);
    pending.swap(pending_);
  }
  use.reset();
  reading.reset();
  if (id != 0) shared_->scheduler->CloseStream(id);
  if (sharing_ != nullptr) sharing_->Close();
  LOG_DEBUG("rows.closed consumer={} status=\"{}\"", consumer_,
            Message(status));
  MutexLock lock(&shared_->mu);
  shared_->streams.erase(stream_);
  shared_->changed.NotifyAll();
}

absl::Status RowsHandler::Handle(v1::RowsRequest request) {
  switch (request.kind_case()) {
    case v1::RowsRequest::kOpen:
      return Open(request.open());
    case v1::RowsRequest::kRequest: {
      ASSIGN_OR_RETURN(
          RowRequest request,
          ReadRequest(std::move(*request.mutable_request()), supplied_bytes_,
                      shared_->options.max_supplied_bytes_per_stream));
      return Ask(std::move(request));
    }
    case v1::RowsRequest::kCancel:
      return Cancel(request.cancel().request_id());
    case v1::RowsRequest::KIND_NOT_SET:
      break;
  }
  return InvalidArgument("a request of no known kind");
}

absl::Status RowsHandler::Open(const v1::OpenRows& open) {
  RETURN_IF_ERROR(CheckOpen(open));
  ASSIGN_OR_RETURN(const auto epilogue, EpilogueFromWire(open.epilogue()));
  {
    MutexLock lock(&mu_);
    if (std::exchange(opened_, true))
      return InvalidArgument("the stream is open already");
  }
  consumer_ = open.consumer();
  plan_hash_ = open.plan_hash();
  end_ = {.end_epoch = open.end_epoch(), .rows = open.rows()};
  checksums_ = open.checksums();
  RETURN_IF_ERROR(SendOpened(open));
  shared_->jobs->Get(
      open.plan_hash(), epilogue,
      [weak = weak_from_this()](absl::StatusOr<JobTable::Runtime> runtime) {
        if (const auto handler = weak.lock())
          handler->OnRuntime(std::move(runtime));
      });
  return absl::OkStatus();
}

absl::Status RowsHandler::SendOpened(const v1::OpenRows& open) {
  v1::RowsResponse response;
  v1::Opened& opened = *response.mutable_opened();
  if (shared_->options.key != nullptr) {
    ASSIGN_OR_RETURN(*opened.mutable_proof(),
                     shared_->options.key->Prove(open));
  }
  if (sharing_ != nullptr) {
    opened.set_memory_address(shared_->sharing->address());
    opened.set_memory_secret(sharing_->secret());
    for (const std::string& uuid : shared_->sharing->device_uuids())
      opened.add_device_uuids(uuid);
  }
  Send(response);
  return absl::OkStatus();
}

// Not called while OnMessage hands on a request: both hold request_mu_.
void RowsHandler::OnRuntime(absl::StatusOr<JobTable::Runtime> runtime) {
  absl::Status status = runtime.status();
  if (status.ok()) status = Begin(*std::move(runtime));
  if (!status.ok()) stream_->Close(std::move(status));
}

absl::Status RowsHandler::Begin(JobTable::Runtime runtime) {
  MutexLock requests(&request_mu_);
  ASSIGN_OR_RETURN(const Scheduler::StreamId id,
                   shared_->scheduler->OpenStream(runtime, shared_from_this()));
  std::vector<RowRequest> pending;
  std::shared_ptr<const void> use = runtime->BeginUse();
  std::shared_ptr<const JobRuntime::Reading> reading =
      runtime->BeginReading(end_);
  bool closed = false;
  {
    MutexLock lock(&mu_);
    closed = closed_;
    if (!closed) {
      use_ = std::move(use);
      reading_ = std::move(reading);
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
  for (RowRequest& request : pending)
    RETURN_IF_ERROR(Submit(id, std::move(request)));
  return absl::OkStatus();
}

absl::Status RowsHandler::Ask(RowRequest request) {
  absl::Status refused;
  if (shared_->draining)
    refused = DrainingStatus();
  else if (!request.supplied.empty() &&
           shared_->supplied_bytes > shared_->options.max_supplied_bytes_total)
    refused = WithFault(
        ResourceExhausted(
            "samples of {} bytes wait at this worker: the limit is {}",
            shared_->supplied_bytes.load(),
            shared_->options.max_supplied_bytes_total),
        Fault::kTransient);
  if (!refused.ok()) {
    SendError(request.request_id, 0, request.rows, refused);
    return absl::OkStatus();
  }
  MutexLock requests(&request_mu_);
  Scheduler::StreamId id = 0;
  {
    MutexLock lock(&mu_);
    if (!opened_) return InvalidArgument("a request before the stream's open");
    id = stream_id_;
    if (id == 0) {  // the job is being fetched
      pending_rows_ += request.rows.size() + 1;
      if (pending_rows_ > shared_->options.max_rows_per_stream)
        return ResourceExhausted("{} rows wait for their job: the limit is {}",
                                 pending_rows_,
                                 shared_->options.max_rows_per_stream);
      pending_.push_back(std::move(request));
      return absl::OkStatus();
    }
  }
  return Submit(id, std::move(request));
}

absl::Status RowsHandler::Submit(Scheduler::StreamId id, RowRequest request) {
  JobTable::Runtime runtime;
  std::shared_ptr<const JobRuntime::Reading> reading;
  {
    MutexLock lock(&mu_);
    runtime = runtime_;
    reading = reading_;
  }
  RETURN_IF_ERROR(runtime->CheckRequest(request));
  if (reading != nullptr) reading->At(request.epoch, request.step);
  if (request.memory_id != 0) {
    const absl::Status placed = Place(runtime->field_bytes(), request);
    if (absl::IsUnavailable(placed)) {
      SendError(request.request_id, 0, request.rows,
                WithFault(placed, Fault::kTransient));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(placed);
  }
  if (const Tracer* const tracer = shared_->options.tracer; tracer != nullptr)
    request.trace = tracer->Step(plan_hash_, runtime->job_key(), consumer_,
                                 request.epoch, request.step);
  return shared_->scheduler->Ask(id, std::move(request));
}

// Takes the request's slots, and a lease on them.
absl::Status RowsHandler::Place(std::span<const size_t> field_bytes,
                                RowRequest& request) {
  if (sharing_ == nullptr)
    return InvalidArgument("request {}: this worker takes no memory",
                           request.request_id);
  absl::StatusOr<StreamSharing::Offer> offer =
      sharing_->Borrow(request.memory_id, request.slots, field_bytes);
  if (!offer.ok())
    return Annotate(offer.status(),
                    fmt::format("request {}", request.request_id));
  auto lease = std::make_shared<RequestLease>(shared_from_this(), request,
                                              offer->number);
  {
    MutexLock lock(&mu_);
    leases_.insert_or_assign(request.request_id, lease.get());
  }
  request.memory = std::move(offer->memory);
  request.lease = std::move(lease);
  return absl::OkStatus();
}

absl::Status RowsHandler::Cancel(uint64_t request_id) {
  MutexLock requests(&request_mu_);
  Scheduler::StreamId id = 0;
  bool ended = false;
  {
    MutexLock lock(&mu_);
    std::erase_if(pending_, [&](const RowRequest& each) {
      mu_.AssertHeld();
      if (each.request_id != request_id) return false;
      pending_rows_ -= each.rows.size() + 1;
      ended = ended || each.memory_id != 0;
      return true;
    });
    if (const auto it = leases_.find(request_id); it != leases_.end())
      it->second->withdrawn = true;
    id = stream_id_;
  }
  if (ended) SendEnded(request_id);
  if (id != 0) shared_->scheduler->Cancel(id, request_id);
  return absl::OkStatus();
}

void RowsHandler::OnLeaseEnded(const RequestLease& lease) {
  bool withdrawn = false;
  {
    MutexLock lock(&mu_);
    const auto it = leases_.find(lease.request_id());
    if (it != leases_.end() && it->second == &lease) leases_.erase(it);
    withdrawn = lease.withdrawn;
  }
  if (withdrawn) SendEnded(lease.request_id());
}

void RowsHandler::SendEnded(uint64_t request_id) {
  v1::RowsResponse response;
  response.set_request_id(request_id);
  response.set_request_ended(true);
  Send(response);
}

void RowsHandler::SendError(uint64_t request_id, uint64_t group_id,
                            std::span<const uint32_t> rows,
                            const absl::Status& status) {
  v1::RowsResponse header;
  header.set_request_id(request_id);
  header.set_group_id(group_id);
  header.mutable_rows()->Add(rows.begin(), rows.end());
  v1::RowError& error = *header.mutable_error();
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(std::string(Message(status)));
  // An error without a fault does not judge the sample.
  error.set_fault(
      static_cast<v1::Fault>(FaultOf(status).value_or(Fault::kWorker)));
  error.set_sample(SampleOf(status).value_or(0));
  Send(header);
}

bool RowsHandler::Send(const v1::RowsResponse& header,
                       std::span<const std::byte> data,
                       std::shared_ptr<const void> owner) {
  const Buffer message =
      rpc::EncodeRows(header, data, std::move(owner), checksums_);
  if (!Borrows(message, data)) ++shared_->counters.payload_copies;
  shared_->counters.bytes_sent += data.size();
  const absl::Status status = stream_->Send(message);
  if (absl::IsResourceExhausted(status)) stream_->Cancel();
  return status.ok();
}

}  // namespace leat::worker
