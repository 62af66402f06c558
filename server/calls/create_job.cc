// SPDX-License-Identifier: Apache-2.0
#include "server/calls/create_job.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "rpc/call/grpc_status.h"
#include "rpc/wire/messages.h"

namespace leat::server {
namespace {

class CreateJobCall final
    : public grpc::ServerWriteReactor<v1::CreateJobResponse> {
 public:
  explicit CreateJobCall(Coordinator* coordinator)
      : coordinator_(coordinator) {}

  // `self`: this call, which it keeps until OnDone.
  void Start(const std::shared_ptr<CreateJobCall>& self, const JobSpec& spec,
             const JobCreator& by, Relist relist, MonotonicTime deadline,
             Now now) {
    self_ = self;
    wait_ = coordinator_->CreateJob(
        spec, deadline, now,
        [self](const absl::StatusOr<CreatedJob>& created) {
          self->Answer(created);
        },
        by, relist, [self](const std::string& text) { self->Tell(text); });
  }

 private:
  void Tell(const std::string& waits_for) {
    MutexLock lock(&mu_);
    if (writing_ || over_) return;
    waiting_.set_waiting(waits_for);
    writing_ = true;
    StartWrite(&waiting_);
  }
  void Answer(const absl::StatusOr<CreatedJob>& created) {
    MutexLock lock(&mu_);
    if (over_) return;
    if (created.ok()) {
      *answer_.mutable_job() = rpc::ToProto(*created->info);
      answer_.set_attached(created->attached);
      answer_.set_dataset_changed(created->dataset_changed);
      answer_.set_consumers(created->consumers);
    }
    End(rpc::ToGrpc(created.status()));
  }
  void OnCancel() override {
    coordinator_->CancelWait(wait_);
    MutexLock lock(&mu_);
    if (!over_)
      End(grpc::Status(grpc::StatusCode::CANCELLED, "the caller has gone"));
  }
  void OnWriteDone(bool) override {
    MutexLock lock(&mu_);
    writing_ = false;
    if (over_) Close();
  }
  void OnDone() override { const auto last = std::move(self_); }

  void End(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    over_ = true;
    status_ = std::move(status);
    if (!writing_) Close();
  }
  // Sends the answer, which must not overtake a message that is written.
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (status_.ok())
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), status_);
    else
      Finish(status_);
  }

  Coordinator* const coordinator_;
  std::shared_ptr<CreateJobCall> self_;  // until OnDone
  std::atomic<uint64_t> wait_ = 0;
  v1::CreateJobResponse waiting_, answer_;  // gRPC reads what it writes

  Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

grpc::ServerWriteReactor<v1::CreateJobResponse>* StartCreateJob(
    Coordinator* coordinator, const JobSpec& spec, const JobCreator& by,
    Relist relist, MonotonicTime deadline, Now now) {
  const auto call = std::make_shared<CreateJobCall>(coordinator);
  call->Start(call, spec, by, relist, deadline, now);
  return call.get();
}

}  // namespace leat::server
