// SPDX-License-Identifier: Apache-2.0
//
//   Pump ─► Read ─┬─ events, or the first answer ─► StartWrite ─► OnWriteDone
//     ▲           ├─ none, without `follow` ─► Finish(OK)             │
//     │           └─ none ─► waits for the wake of ClusterEvents      │
//     └────────────────────────────┴──────────────────────────────────┘
//
// One page is written at a time; wakes that arrive meanwhile are left to
// OnWriteDone, which reads again. Nothing is started once `finished_` is set.
#include "server/calls/event_stream.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "rpc/call/grpc_status.h"
#include "rpc/wire/times.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

constexpr int64_t kMaxSinceSeconds = int64_t{366} * 86'400;

class EventStream final
    : public grpc::ServerWriteReactor<v1::WatchEventsResponse>,
      public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(Coordinator* coordinator, EventQuery query, bool follow)
      : coordinator_(coordinator), follow_(follow), query_(std::move(query)) {}

  // `self` keeps the stream alive until OnDone.
  void Start(std::shared_ptr<EventStream> self) {
    {
      MutexLock lock(&mu_);
      self_ = std::move(self);
    }
    if (follow_) {
      absl::StatusOr<uint64_t> watcher =
          coordinator_->events().Watch([weak = weak_from_this()] {
            if (const auto open = weak.lock()) open->Pump();
          });
      if (!watcher.ok()) return End(watcher.status());
      MutexLock lock(&mu_);
      watcher_ = *watcher;
    }
    Pump();
  }

  // Ends the call with `status`, after the current write.
  void End(const absl::Status& status) {
    MutexLock lock(&mu_);
    if (!ending_) ending_ = status;
    FinishIfIdle();
  }

 private:
  void Pump() {
    MutexLock lock(&mu_);
    if (ending_ || finished_) return;
    if (writing_) return;  // OnWriteDone reads again
    absl::StatusOr<EventPage> page =
        coordinator_->events().Read(query_, watcher_);
    if (!page.ok()) {
      ending_ = page.status();
      return FinishIfIdle();
    }
    query_.after = page->sequence;
    if (page->events.empty() && !first_ && page->missed == 0) {
      if (follow_) return;
      ending_ = absl::OkStatus();
      return FinishIfIdle();
    }
    first_ = false;
    if (!follow_ && !page->more) ending_ = absl::OkStatus();
    response_ = ToProto(*page);
    response_.set_instance(coordinator_->events().instance());
    writing_ = true;
    StartWrite(&response_);
  }

  void FinishIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || finished_ || !ending_) return;
    finished_ = true;
    Finish(rpc::ToGrpc(*ending_));
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mu_);
      writing_ = false;
      if (!ok && !ending_) ending_ = Cancelled("the caller has gone");
      FinishIfIdle();
    }
    Pump();
  }
  void OnCancel() override { End(Cancelled("the caller has gone")); }
  void OnDone() override {
    std::shared_ptr<EventStream> self;
    uint64_t watcher = 0;
    {
      MutexLock lock(&mu_);
      self = std::move(self_);
      watcher = watcher_;
    }
    coordinator_->events().Unwatch(watcher);
  }

  Coordinator* const coordinator_;
  const bool follow_;
  Mutex mu_;
  EventQuery query_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<EventStream> self_ ABSL_GUARDED_BY(mu_);
  uint64_t watcher_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Status> ending_ ABSL_GUARDED_BY(mu_);
  bool first_ ABSL_GUARDED_BY(mu_) = true;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  v1::WatchEventsResponse response_;  // being written
};

class Rejected final
    : public grpc::ServerWriteReactor<v1::WatchEventsResponse> {
 public:
  explicit Rejected(const absl::Status& status) { Finish(rpc::ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

absl::StatusOr<EventQuery> EventQueryOf(const v1::WatchEventsRequest& request,
                                        uint64_t instance, WallTime now) {
  EventQuery query;
  RETURN_IF_ERROR(CheckSubject(request.subject()));
  query.subject = request.subject();
  // Numbers of another start are invalid, so all events are sent.
  if (request.instance() == 0 || request.instance() == instance)
    query.after = request.after();
  if (!request.has_since()) return query;
  const Duration since = rpc::FromProto(request.since());
  if (since < Duration(0) || since > std::chrono::seconds(kMaxSinceSeconds))
    return InvalidArgument("since {} s: want 0 to {}",
                           request.since().seconds(), kMaxSinceSeconds);
  query.since = now - since;
  return query;
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* StartWatchEvents(
    Coordinator* coordinator, rpc::Access* access,
    const absl::StatusOr<rpc::Caller>& caller,
    const v1::WatchEventsRequest& request, WallTime now) {
  if (!caller.ok()) return new Rejected(caller.status());
  absl::StatusOr<EventQuery> query =
      EventQueryOf(request, coordinator->events().instance(), now);
  if (!query.ok()) return new Rejected(query.status());
  const auto stream = std::make_shared<EventStream>(
      coordinator, *std::move(query), request.follow());
  EventStream* const reactor = stream.get();
  reactor->Start(stream);
  const std::weak_ptr<EventStream> weak = stream;
  access->WatchToken(
      *caller, [weak] { return weak.expired(); },
      [weak](const absl::Status& why) {
        if (const auto open = weak.lock()) open->End(why);
      });
  return reactor;
}

}  // namespace leat::server
