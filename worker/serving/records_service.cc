// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/records_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/mutex.h"
#include "core/status.h"
#include "leat/v1/records.grpc.pb.h"
#include "worker/cache/read_form.h"
#include "worker/job/job_table.h"
#include "worker/sample/stored_bytes.h"
#include "worker/serving/call_queue.h"

namespace leat::worker {
namespace {

constexpr int kRecordThreads = 2;
// The time for the coordinator to inform the new owners, and the longest time
// between two records.
constexpr Duration kFirstAsk = std::chrono::milliseconds(1500);
constexpr Duration kNextAsk = std::chrono::milliseconds(500);

using GetRecordCall = QueuedCallOf<v1::GetRecordRequest, v1::GetRecordResponse>;

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

class RecordCalls::Grpc final
    : public v1::RecordsService::WithCallbackMethod_GetRecord<
          v1::RecordsService::Service> {
 public:
  Grpc(Admit admit, JobTable* jobs, FormCodec codec,
       std::shared_ptr<const rpc::WorkerKey> key)
      : admit_(std::move(admit)),
        jobs_(jobs),
        codec_(std::move(codec)),
        key_(std::move(key)) {}
  ~Grpc() override { queue_.Close(); }

  grpc::ServerUnaryReactor* GetRecord(
      grpc::CallbackServerContext* context, const v1::GetRecordRequest* request,
      v1::GetRecordResponse* response) override {
    const auto call =
        std::make_shared<GetRecordCall>(context, request, response);
    grpc::ServerUnaryReactor* const reactor = call->reactor();
    if (const absl::Status status =
            admit_("RecordsService/GetRecord", *context);
        !status.ok())
      call->Finish(status);
    else if (queue_.Add(call).ok()) {
      {
        MutexLock lock(&mu_);
        asked_.NotifyAll();
      }
      queue_.Answer(call, [this, call = call.get()] {
        return Answer(call->request, &call->answer);
      });
    }
    return reactor;
  }

  void WaitTaken(MonotonicTime deadline) {
    MonotonicTime until = std::min(deadline, Clock::Real().Now() + kFirstAsk);
    MutexLock lock(&mu_);
    while (asked_.WaitUntil(&mu_, until))
      until = std::min(deadline, Clock::Real().Now() + kNextAsk);
  }

  CallQueue& queue() { return queue_; }
  uint64_t given() const { return given_; }

 private:
  absl::Status Answer(const v1::GetRecordRequest& request,
                      v1::GetRecordResponse* answer) {
    ASSIGN_OR_RETURN(const Digest dataset,
                     DigestOf("dataset", request.dataset()));
    const JobTable::SourcePtr source = jobs_->FindReading(dataset);
    const std::optional<StoredSample> kept =
        source == nullptr ? std::nullopt
                          : source->records().FindKept(request.record());
    if (!kept || kept->record_bytes() > kMaxRecordBytes)
      return NotFound("record {} is not kept here", request.record());
    const std::vector<std::byte> record = PackSample(*kept);
    answer->set_record(TextOf(record));
    AddForm(request, *kept, answer);
    answer->set_crc32c(ExtendCrc32c(Crc32c(answer->record()),
                                    std::as_bytes(std::span(answer->form()))));
    ASSIGN_OR_RETURN(*answer->mutable_proof(),
                     key_->Prove(request, answer->crc32c()));
    ++given_;
    return absl::OkStatus();
  }

  // Pixels are left out, since sending them takes as long as decoding the file,
  // and so are forms that do not fit beside the record.
  void AddForm(const v1::GetRecordRequest& request, const StoredSample& kept,
               v1::GetRecordResponse* answer) const {
    if (kept.form == nullptr || codec_.bytes_of == nullptr ||
        request.form_version() != codec_.version ||
        kept.form->kept.kind == JpegFormKind::kPixels)
      return;
    const std::span<const std::byte> form = codec_.bytes_of(kept.form->kept);
    if (answer->record().size() + form.size() > kMaxRecordBytes) return;
    answer->set_form(TextOf(form));
    answer->set_form_kind(static_cast<uint32_t>(kept.form->kept.kind));
  }

  const Admit admit_;
  JobTable* const jobs_;
  const FormCodec codec_;
  const std::shared_ptr<const rpc::WorkerKey> key_;
  std::atomic<uint64_t> given_{0};
  Mutex mu_;
  CondVar asked_;  // a record was requested
  CallQueue queue_{"records", kRecordThreads, kMaxRecordCalls};
};

RecordCalls::RecordCalls(Admit admit, JobTable* jobs, FormCodec codec,
                         std::shared_ptr<const rpc::WorkerKey> key)
    : grpc_(std::make_unique<Grpc>(std::move(admit), jobs, std::move(codec),
                                   std::move(key))) {}
RecordCalls::~RecordCalls() = default;

const absl::Status& RecordCalls::started() const {
  return grpc_->queue().started();
}
grpc::Service* RecordCalls::service() { return grpc_.get(); }
void RecordCalls::Stop() { grpc_->queue().Stop(); }
uint64_t RecordCalls::given() const { return grpc_->given(); }
void RecordCalls::WaitTaken(MonotonicTime deadline) {
  grpc_->WaitTaken(deadline);
}

}  // namespace leat::worker
