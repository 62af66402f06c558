// SPDX-License-Identifier: Apache-2.0
#include "server/calls/index_transfer.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "core/status.h"
#include "rpc/call/grpc_status.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

class GetIndexCall : public grpc::ServerWriteReactor<v1::GetIndexResponse> {
 public:
  GetIndexCall(Coordinator* coordinator, const Clock* clock,
               std::string dataset_id, TransferSlots* slots)
      : coordinator_(coordinator),
        clock_(clock),
        dataset_id_(std::move(dataset_id)),
        slots_(slots),
        taken_(slots->Take()) {
    if (taken_)
      Next();
    else
      Finish(rpc::ToGrpc(TransfersAreBusy()));
  }

 private:
  void OnWriteDone(bool ok) override {
    if (!ok)
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the peer has gone"));
    else
      Next();
  }
  void OnDone() override {
    if (taken_) slots_->Give();
    delete this;
  }

  void Next() {
    absl::StatusOr<std::string> chunk =
        coordinator_->ReadIndex(dataset_id_, next_, Now::Of(*clock_));
    if (next_ > 0 && absl::IsOutOfRange(chunk.status())) {
      Finish(grpc::Status::OK);
    } else if (!chunk.ok()) {
      Finish(rpc::ToGrpc(chunk.status()));
    } else {
      ++next_;
      *response_.mutable_chunk() = *std::move(chunk);
      StartWrite(&response_);
    }
  }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  const std::string dataset_id_;
  TransferSlots* const slots_;
  const bool taken_;
  uint64_t next_ = 0;
  v1::GetIndexResponse response_;
};

class UploadIndexCall : public grpc::ServerReadReactor<v1::UploadIndexRequest> {
 public:
  UploadIndexCall(Coordinator* coordinator, const Clock* clock,
                  TransferSlots* bytes)
      : coordinator_(coordinator), clock_(clock), bytes_(bytes) {
    StartRead(&request_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (finished_) return;
    if (!ok) return End();
    if (absl::Status status = Take(); !status.ok()) return Refuse(status);
    if (header_ && !TakeBytes()) return Answer(TransfersAreBusy());
    if (!finished_) StartRead(&request_);
  }
  void OnCancel() override { cancelled_ = true; }
  // A peer that has gone will try again; one that sent too little will not.
  void OnDone() override {
    if (cut_short_ && !cancelled_)
      coordinator_->RefuseUpload(dataset_id_, request_id_, CutShort(),
                                 Now::Of(*clock_));
    bytes_->Give(taken_);
    delete this;
  }
  // Of an index that comes whole, once. False: others have them, who will end.
  bool TakeBytes() {
    const auto wanted = static_cast<int64_t>(
        header_->blocks.empty() ? header_->index_bytes : 0);
    if (taken_ == wanted) return true;
    if (!bytes_->Take(wanted)) return false;
    taken_ = wanted;
    return true;
  }
  absl::Status CutShort() const {
    return DataLoss("an index of {} bytes ended after {}", header_->index_bytes,
                    index_.size());
  }

  absl::Status Take() {
    switch (request_.kind_case()) {
      case v1::UploadIndexRequest::kHeader: {
        if (header_) return InvalidArgument("an index with two headers");
        dataset_id_ = request_.header().dataset_id();
        request_id_ = request_.header().request_id();
        ASSIGN_OR_RETURN(header_, FromProto(request_.header()));
        RETURN_IF_ERROR(coordinator_->CheckUpload(*header_));
        return absl::OkStatus();
      }
      case v1::UploadIndexRequest::kChunk:
        if (!header_) return InvalidArgument("an index without a header");
        if (!header_->blocks.empty())
          return InvalidArgument("an index in blocks with chunks");
        if (request_.chunk().size() > header_->index_bytes - index_.size())
          return DataLoss("an index longer than the {} bytes of its header",
                          header_->index_bytes);
        index_ += request_.chunk();
        return absl::OkStatus();
      case v1::UploadIndexRequest::kFailure: {
        const v1::IndexFailure& failure = request_.failure();
        const bool known = failure.code() > 0 && failure.code() <= 16;
        const absl::Status why(
            known ? static_cast<absl::StatusCode>(failure.code())
                  : absl::StatusCode::kUnknown,
            failure.message());
        RETURN_IF_ERROR(coordinator_->FailIndex(
            failure.dataset_id(), failure.request_id(), why, Now::Of(*clock_)));
        Answer(absl::OkStatus());
        return absl::OkStatus();
      }
      case v1::UploadIndexRequest::kLooked: {
        RETURN_IF_ERROR(coordinator_->NoteLooked(FromProto(request_.looked()),
                                                 Now::Of(*clock_)));
        Answer(absl::OkStatus());
        return absl::OkStatus();
      }
      case v1::UploadIndexRequest::KIND_NOT_SET:
        break;
    }
    return InvalidArgument("an UploadIndex message of an unknown kind");
  }

  // The peer has sent everything, or has gone.
  void End() {
    if (!header_) return Answer(InvalidArgument("an index without a header"));
    cut_short_ =
        header_->blocks.empty() && index_.size() < header_->index_bytes;
    if (cut_short_) return Answer(CutShort());
    finished_ = true;
    coordinator_->FinishUpload(
        *header_, std::move(index_), Now::Of(*clock_),
        [this](const absl::Status& status) { Finish(rpc::ToGrpc(status)); });
  }

  // Whoever waits for the listing is told, and not only its worker.
  void Refuse(const absl::Status& status) {
    if (!dataset_id_.empty())
      coordinator_->RefuseUpload(dataset_id_, request_id_, status,
                                 Now::Of(*clock_));
    Answer(status);
  }

  void Answer(const absl::Status& status) {
    finished_ = true;
    Finish(rpc::ToGrpc(status));
  }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  TransferSlots* const bytes_;
  int64_t taken_ = 0;  // of them
  v1::UploadIndexRequest request_;
  std::string dataset_id_;  // of the header, also of one that is refused
  uint64_t request_id_ = 0;
  std::optional<IndexHeader> header_;
  std::string index_;
  bool finished_ = false;
  bool cut_short_ = false;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::GetIndexResponse>* StartGetIndex(
    Coordinator* coordinator, const Clock* clock, std::string dataset_id,
    TransferSlots* slots) {
  return new GetIndexCall(coordinator, clock, std::move(dataset_id), slots);
}

grpc::ServerReadReactor<v1::UploadIndexRequest>* StartUploadIndex(
    Coordinator* coordinator, const Clock* clock, TransferSlots* bytes) {
  return new UploadIndexCall(coordinator, clock, bytes);
}

}  // namespace leat::server
