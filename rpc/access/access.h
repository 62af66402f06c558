// SPDX-License-Identifier: Apache-2.0
//
// Access: who calls a daemon, and whether the caller may. The first line of
// every handler asks it.
//
// A caller is known by an access token of the coordinator's list, or by the
// token that the daemon was started with, which opens everything, or by a name
// in its certificate that has a role (--role-from-san). A daemon that was
// started without all of these admits everybody as an operator: with callers'
// certificates (--tls-ca), everybody who has one.
//
// Streams that were opened with a token end when it leaves the list. How often
// a caller calls, and how many streams it has, is bounded (caller_bounds.h).
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/cluster/roles.h"
#include "core/mutex.h"
#include "grpcpp/server_context.h"
#include "rpc/access/caller_bounds.h"
#include "rpc/call/auth.h"
#include "rpc/call/stream.h"

namespace leat::rpc {

struct Caller {
  Role role = Role::kOperator;
  // "worker/gpu-nodes": a token's role and name. "certificate/NAME", "own" (the
  // daemon's own token), "anybody". Is the same for a token and for the one
  // that takes its place.
  std::string identity;
  std::string token;    // its id; empty: it is not of the list
  std::string address;  // its host's
};

class Access {
 public:
  // `clock` outlives it: for expiries.
  Access(Security security, const Clock* clock);
  // Is told from where each caller calls whom Admit has identified, as gRPC
  // names it. REQUIRES: called before calls come.
  void set_on_known(std::function<void(std::string_view peer)> on_known) {
    on_known_ = std::move(on_known);
  }

  // `method`: as in core/cluster/roles.h. kUnauthenticated: no token, or one
  // that is not known or has expired. kPermissionDenied: the role may not;
  // names token, role and the roles that may. kFailedPrecondition: the version.
  // kUnavailable: the list has not been told yet. kInternal: a method without a
  // line in the table. kResourceExhausted: the caller's bound.
  absl::StatusOr<Caller> Admit(std::string_view method,
                               const grpc::ServerContextBase& context) const;
  // The same of a caller that speaks a protocol that is not ours, and so tells
  // no version of it.
  absl::StatusOr<Caller> AdmitForeign(
      std::string_view method, const grpc::ServerContextBase& context) const;
  // The same of a caller that shows `token` (empty: none) elsewhere than in a
  // call's metadata, and tells no version.
  absl::StatusOr<Caller> AdmitToken(std::string_view method,
                                    std::string_view token) const;
  // Ends `stream` by kUnauthenticated when the caller's token leaves the list,
  // and at once by kResourceExhausted if the caller has too many.
  template <class Out>
  void Watch(const Caller& caller, const std::shared_ptr<Stream<Out>>& stream) {
    const std::weak_ptr<Stream<Out>> weak = stream;
    WatchToken(
        caller, [weak] { return weak.expired(); },
        [weak](absl::Status why) {
          if (const auto open = weak.lock()) open->Close(std::move(why));
        });
  }

  // The same for what is no Stream: `end` is called once, unless `gone`.
  void WatchToken(const Caller& caller, std::function<bool()> gone,
                  std::function<void(absl::Status)> end);

  // For a server's gate: what is known of a call by its headers alone. A caller
  // who shows a certificate has proved it before, so roles by names are left to
  // Admit. kUnauthenticated, kUnavailable: as Admit. kUnimplemented: no method
  // of any daemon. kResourceExhausted: callers that nobody knows ask for health
  // too often.
  absl::Status AdmitHeaders(std::string_view path,
                            std::string_view token) const;

  // Callers must show one of these tokens from now on. A list of the same
  // instance and a smaller version is ignored.
  void Replace(std::shared_ptr<const AccessTokens> tokens);
  // The token that the daemon itself shows, and takes. So that trainings go on,
  // the one before it is taken, too, until another one comes.
  void ReplaceOwn(std::string token);

 private:
  struct Watched {
    std::string token;
    std::function<bool()> gone;
    std::function<void(absl::Status)> end;
  };

  // `ours`: the caller has to tell a version that fits.
  // Identify, for a caller whose address and bounds count.
  absl::StatusOr<Caller> Known(const grpc::ServerContextBase& context,
                               bool ours) const;
  absl::StatusOr<Caller> Identify(const grpc::ServerContextBase& context,
                                  bool ours) const;
  absl::StatusOr<Caller> IdentifyToken(std::string_view token) const;
  absl::StatusOr<Caller> FromList(std::string_view text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  mutable CallerBounds bounds_;                     // synchronises itself
  mutable CallerBounds unknown_;                    // of health, the same
  std::function<void(std::string_view)> on_known_;  // constant; may be empty
  mutable Mutex mu_;
  Security own_ ABSL_GUARDED_BY(mu_);
  Security before_ ABSL_GUARDED_BY(mu_);  // no token: none
  // nullptr: none was told.
  std::shared_ptr<const AccessTokens> tokens_ ABSL_GUARDED_BY(mu_);
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mu_);
  size_t sweep_at_ ABSL_GUARDED_BY(mu_) = 64;
};

// Of kTokenRandomBytes bytes by OpenSSL. kUnavailable: it has none.
absl::StatusOr<std::string> RandomTokenText();

}  // namespace leat::rpc
