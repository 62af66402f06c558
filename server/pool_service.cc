// SPDX-License-Identifier: Apache-2.0
//
// A watcher's stream:
//
//   opened, or woken ─► Pump ─┬─ nothing new ─► wait for the next wake
//                             ├─ a view ─► StartWrite ─► OnWriteDone ─► Pump
//                             └─ an error ─► Finish
#include "server/pool_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "core/status.h"
#include "rpc/status.h"
#include "server/convert.h"

namespace leat::server {
namespace {

class WatchCall : public grpc::ServerWriteReactor<v1::WatchPoolResponse> {
 public:
  explicit WatchCall(Coordinator* coordinator) : coordinator_(coordinator) {
    MutexLock lock(&open_->mu);
    open_->call = this;
  }

  // Shared with wakes, which may come when the call has gone.
  struct Open {
    Mutex mu;
    WatchCall* call ABSL_GUARDED_BY(mu) = nullptr;  // nullptr: it has ended
    uint64_t watcher ABSL_GUARDED_BY(mu) = 0;
    bool writing ABSL_GUARDED_BY(mu) = false;
  };
  const std::shared_ptr<Open>& open() const { return open_; }

  static void Start(const std::shared_ptr<Open>& open, Coordinator* coordinator,
                    const std::string& pool) {
    const absl::StatusOr<uint64_t> watcher = coordinator->WatchPool(
        pool, [weak = std::weak_ptr<Open>(open), coordinator] {
          if (const auto strong = weak.lock()) Pump(strong, coordinator);
        });
    if (!watcher.ok()) return End(open, watcher.status());
    {
      MutexLock lock(&open->mu);
      open->watcher = *watcher;
    }
    Pump(open, coordinator);
  }

  static void End(const std::shared_ptr<Open>& open,
                  const absl::Status& status) {
    MutexLock lock(&open->mu);
    if (WatchCall* const call = std::exchange(open->call, nullptr))
      call->Finish(rpc::ToGrpc(status));
  }

 private:
  // The lock keeps views in order when two threads pump.
  static void Pump(const std::shared_ptr<Open>& open,
                   Coordinator* coordinator) {
    MutexLock lock(&open->mu);
    if (open->call == nullptr || open->watcher == 0 || open->writing) return;
    absl::StatusOr<std::optional<PoolView>> next =
        coordinator->NextForWatcher(open->watcher);
    if (!next.ok()) {
      std::exchange(open->call, nullptr)->Finish(rpc::ToGrpc(next.status()));
    } else if (next->has_value()) {
      *open->call->response_.mutable_pool() = ToProto(**next);
      open->writing = true;
      open->call->StartWrite(&open->call->response_);
    }
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(open_, Cancelled("the peer has gone"));
    {
      MutexLock lock(&open_->mu);
      open_->writing = false;
    }
    Pump(open_, coordinator_);
  }
  void OnCancel() override { End(open_, Cancelled("the peer has gone")); }
  void OnDone() override {
    uint64_t watcher = 0;
    {
      MutexLock lock(&open_->mu);
      open_->call = nullptr;
      watcher = open_->watcher;
    }
    if (watcher != 0) coordinator_->CloseWatcher(watcher);
    delete this;
  }

  Coordinator* const coordinator_;
  const std::shared_ptr<Open> open_ = std::make_shared<Open>();
  v1::WatchPoolResponse response_;
};

}  // namespace

grpc::ServerUnaryReactor* PoolService::ListPools(
    grpc::CallbackServerContext* context, const v1::ListPoolsRequest*,
    v1::ListPoolsResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::Status allowed =
      access_->Admit("PoolService/ListPools", *context).status();
  if (allowed.ok())
    for (const PoolView& view : coordinator_->Pools())
      *response->add_pools() = ToProto(view);
  reactor->Finish(rpc::ToGrpc(allowed));
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchPoolResponse>* PoolService::WatchPool(
    grpc::CallbackServerContext* context, const v1::WatchPoolRequest* request) {
  auto* const call = new WatchCall(coordinator_);
  const std::shared_ptr<WatchCall::Open> open = call->open();
  const absl::StatusOr<rpc::Caller> caller =
      access_->Admit("PoolService/WatchPool", *context);
  if (!caller.ok()) {
    WatchCall::End(open, caller.status());
    return call;
  }
  const std::weak_ptr<WatchCall::Open> weak = open;
  access_->WatchToken(
      *caller, [weak] { return weak.expired(); },
      [weak](const absl::Status& why) {
        if (const auto strong = weak.lock()) WatchCall::End(strong, why);
      });
  WatchCall::Start(open, coordinator_, request->name());
  return call;
}

grpc::ServerUnaryReactor* PoolService::SetPool(
    grpc::CallbackServerContext* context, const v1::SetPoolRequest* request,
    v1::SetPoolResponse*) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (absl::Status allowed =
          access_->Admit("PoolService/SetPool", *context).status();
      !allowed.ok())
    reactor->Finish(rpc::ToGrpc(allowed));
  else
    coordinator_->SetPool(request->name(), {request->min(), request->max()},
                          [reactor](const absl::Status& result) {
                            reactor->Finish(rpc::ToGrpc(result));
                          });
  return reactor;
}

}  // namespace leat::server
