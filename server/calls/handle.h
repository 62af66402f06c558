// SPDX-License-Identifier: Apache-2.0
//
// Unary calls: who calls is checked, then a function answers, at once or later.
//
//   return Handle(access_, "CoordinatorService/Hello", context, [&] {
//     response->set_cluster(…);
//     return absl::OkStatus();
//   });
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "rpc/access/access.h"
#include "rpc/call/grpc_status.h"

namespace leat::server {

// Answers with what `handle` returns, or with why the caller is refused.
// `handle` takes the rpc::Caller, or nothing.
template <class F>
grpc::ServerUnaryReactor* Handle(rpc::Access* access, std::string_view method,
                                 grpc::CallbackServerContext* context,
                                 F&& handle) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<rpc::Caller> caller = access->Admit(method, *context);
  absl::Status status = caller.status();
  if constexpr (std::is_invocable_v<F, const rpc::Caller&>) {
    if (caller.ok()) status = handle(*caller);
  } else {
    if (caller.ok()) status = handle();
  }
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

// The same for what is answered later: `handle` takes a function of an
// absl::Status, which has to be called once.
template <class F>
grpc::ServerUnaryReactor* HandleLater(rpc::Access* access,
                                      std::string_view method,
                                      grpc::CallbackServerContext* context,
                                      F&& handle) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto answer = [reactor](const absl::Status& result) {
    reactor->Finish(rpc::ToGrpc(result));
  };
  if (absl::Status allowed = access->Admit(method, *context).status();
      !allowed.ok())
    answer(allowed);
  else
    handle(answer);
  return reactor;
}

// FirstAnswer decides the race of a call that two may answer: the coordinator,
// whenever it has the answer, and the caller's cancellation. A call must be
// finished once, and is gone soon after, so whoever answers takes the call out
// of here, and the second one finds nothing. The coordinator's callback may run
// when the call is gone: it holds this and not the call.
//
//   coordinator: Take() = call   ─► call->Finish(answer)
//   OnCancel:    Take() = null   ─► the answer is on its way already
//
// Thread-safe.
template <class Call>
class FirstAnswer {
 public:
  explicit FirstAnswer(Call* call) : call_(call) {}
  // Returns the call to the first who asks; then null.
  Call* Take() { return call_.exchange(nullptr); }

 private:
  std::atomic<Call*> call_;
};

}  // namespace leat::server
