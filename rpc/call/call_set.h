// SPDX-License-Identifier: Apache-2.0
//
// CallSet knows the calls that a client has in progress, so that Stop can
// cancel them.
//
//     CallSet::Call call(&calls, security, timeout);
//     stub->GetJob(&call.context, request, &response);
//
// Thread-safe. It outlives its calls.
#pragma once

#include <cstddef>
#include <set>

#include "core/clock.h"
#include "core/mutex.h"
#include "grpcpp/client_context.h"
#include "rpc/call/auth.h"

namespace leat::rpc {

// Adds the metadata of a call that begins now, and its deadline. A `timeout` of
// more than a year counts as a year.
void PrepareCall(const Security& security, Duration timeout,
                 grpc::ClientContext* context);

class CallSet {
 public:
  class Call {
   public:
    Call(CallSet* set, const Security& security, Duration timeout);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    grpc::ClientContext context;

   private:
    CallSet& set_;
  };

  // Ends the calls in progress, and all later ones, with kCancelled.
  void Stop();
  bool stopped() const;
  size_t size() const;

 private:
  mutable Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::set<Call*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::rpc
