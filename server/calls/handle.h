// SPDX-License-Identifier: Apache-2.0
//
// Unary calls: the caller is checked, then a function answers, now or later.
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

using CallContext = grpc::CallbackServerContext;
using UnaryReactor = grpc::ServerUnaryReactor;

// Answers with the result of `handle`, or with the reason why the caller is
// rejected. `handle` takes the rpc::Caller, or nothing.
template <class F>
UnaryReactor* Handle(rpc::Access* access, std::string_view method,
                     CallContext* context, F&& handle) {
  UnaryReactor* const reactor = context->DefaultReactor();
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

// The same for later answers: `handle` takes a function of an absl::Status, and
// has to call it once.
template <class F>
UnaryReactor* HandleLater(rpc::Access* access, std::string_view method,
                          CallContext* context, F&& handle) {
  UnaryReactor* const reactor = context->DefaultReactor();
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

// FirstAnswer decides a race between two answers to one call: the
// coordinator's, whenever it is ready, and the caller's cancellation. A call
// must be finished once, and is gone soon after. The first to answer takes the
// call out of here, and the second finds nothing. The coordinator's callback
// may run after the call is gone: it holds this object and not the call.
//
//   coordinator: Take() = call   ─► call->Finish(answer)
//   OnCancel:    Take() = null   ─► the answer is on its way already
//
// Thread-safe.
template <class Call>
class FirstAnswer {
 public:
  explicit FirstAnswer(Call* call) : call_(call) {}
  // Returns the call the first time, then nullptr.
  Call* Take() { return call_.exchange(nullptr); }

 private:
  std::atomic<Call*> call_;
};

}  // namespace leat::server
