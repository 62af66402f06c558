// SPDX-License-Identifier: Apache-2.0
//
// Unary calls: the caller is checked, then a function answers, now or later.
//
//   return Handle(access_, "CoordinatorService/Hello", context, [&] {
//     response->set_cluster(…);
//     return absl::OkStatus();
//   });
#pragma once

#include <functional>
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

}  // namespace leat::server
