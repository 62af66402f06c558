// SPDX-License-Identifier: Apache-2.0
//
// PoolWatch: a stream to a client that watches a pool.
//
//   opened, or woken ─► Pump ─┬─ nothing new ─► wait for the next wake
//                             ├─ a view ─► Convert ─► StartWrite ─► OnWriteDone
//                             └─ an error ─► Finish                    │
//                               ▲──────────────────────────────────────┘
//
// It holds one message. The coordinator bounds the number of watchers. Deletes
// itself when the call is over.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "core/status.h"
#include "grpcpp/support/server_callback.h"
#include "rpc/access/access.h"
#include "rpc/call/grpc_status.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

template <class Response>
class PoolWatch final : public grpc::ServerWriteReactor<Response> {
 public:
  // Converts a view to a message; nullopt: nothing to send. An error ends the
  // call.
  using Convert = std::function<absl::StatusOr<std::optional<Response>>(
      const PoolView& view)>;

  // All arguments except `pool` outlive it. Ends at once if `caller` is an
  // error, and when the caller's token is revoked.
  static grpc::ServerWriteReactor<Response>* Start(
      Coordinator* coordinator, rpc::Access* access,
      const absl::StatusOr<rpc::Caller>& caller, const std::string& pool,
      Convert convert) {
    auto* const call = new PoolWatch(coordinator, std::move(convert));
    const std::shared_ptr<Open> open = call->open_;
    if (!caller.ok()) {
      End(open, caller.status());
      return call;
    }
    const std::weak_ptr<Open> weak = open;
    access->WatchToken(
        *caller, [weak] { return weak.expired(); },
        [weak](const absl::Status& why) {
          if (const auto strong = weak.lock()) End(strong, why);
        });
    Register(open, coordinator, pool);
    return call;
  }

 private:
  // Shared with wakes, which may run after the call is gone.
  struct Open {
    Mutex mu;
    PoolWatch* call ABSL_GUARDED_BY(mu) = nullptr;  // nullptr: it has ended
    uint64_t watcher ABSL_GUARDED_BY(mu) = 0;
    bool writing ABSL_GUARDED_BY(mu) = false;
  };

  PoolWatch(Coordinator* coordinator, Convert convert)
      : coordinator_(coordinator), convert_(std::move(convert)) {
    MutexLock lock(&open_->mu);
    open_->call = this;
  }

  static void Register(const std::shared_ptr<Open>& open,
                       Coordinator* coordinator, const std::string& pool) {
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
    if (PoolWatch* const call = std::exchange(open->call, nullptr))
      call->Finish(rpc::ToGrpc(status));
  }

  // The lock keeps views in order when two threads pump.
  static void Pump(const std::shared_ptr<Open>& open,
                   Coordinator* coordinator) {
    MutexLock lock(&open->mu);
    if (open->call == nullptr || open->watcher == 0 || open->writing) return;
    const absl::StatusOr<std::optional<PoolView>> next =
        coordinator->NextForWatcher(open->watcher);
    absl::Status status = next.status();
    if (next.ok() && next->has_value()) {
      absl::StatusOr<std::optional<Response>> told =
          open->call->convert_(**next);
      status = told.status();
      if (told.ok() && told->has_value()) {
        open->call->response_ = **std::move(told);
        open->writing = true;
        open->call->StartWrite(&open->call->response_);
      }
    }
    if (!status.ok())
      std::exchange(open->call, nullptr)->Finish(rpc::ToGrpc(status));
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
  const Convert convert_;
  const std::shared_ptr<Open> open_ = std::make_shared<Open>();
  Response response_;
};

}  // namespace leat::server
