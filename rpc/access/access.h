// SPDX-License-Identifier: Apache-2.0
//
// Access determines who calls a daemon, and whether the caller may. Every
// handler calls it first.
//
// A caller is identified by an access token of the coordinator's list, by the
// token that the daemon was started with, which permits everything, or by a
// name in its certificate that has a role (--role-from-san). A daemon that was
// started without all of these admits every caller as an operator; with
// callers' certificates (--tls-ca), every caller that has one.
//
// A stream that was opened with a token ends when the token leaves the list.
// The rate of a caller's calls, and the number of its streams, are bounded
// (caller_bounds.h).
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
  // daemon's own token), or a fixed name for unauthenticated callers. A token
  // and its replacement have the same identity.
  std::string identity;
  std::string token;    // its id; empty: it is not in the list
  std::string address;  // of the caller's host
};

class Access {
 public:
  // `clock` outlives it, and is used for expiry.
  Access(Security security, const Clock* clock);
  // Sets a function that receives the address, as gRPC writes it, of each
  // caller that Admit has identified. REQUIRES: called before calls arrive.
  void set_on_known(std::function<void(std::string_view peer)> on_known) {
    on_known_ = std::move(on_known);
  }

  // Identifies the caller, and checks that it may call the method. `method`: as
  // in core/cluster/roles.h. kUnauthenticated: the token is missing, unknown or
  // expired. kPermissionDenied: the role may not; names token, role and the
  // roles that may. kFailedPrecondition: the version. kUnavailable: the list
  // has not arrived yet. kInternal: the method is not in the table.
  // kResourceExhausted: the caller's bound.
  absl::StatusOr<Caller> Admit(std::string_view method,
                               const grpc::ServerContextBase& context) const;
  // The same for a caller of another protocol, which sends no protocol version.
  absl::StatusOr<Caller> AdmitForeign(
      std::string_view method, const grpc::ServerContextBase& context) const;
  // The same for a caller that presents `token` (empty: none) elsewhere than in
  // a call's metadata, and sends no version.
  absl::StatusOr<Caller> AdmitToken(std::string_view method,
                                    std::string_view token) const;
  // Ends `stream` with kUnauthenticated when the caller's token leaves the
  // list, and at once with kResourceExhausted if the caller has too many
  // streams.
  template <class Out>
  void Watch(const Caller& caller, const std::shared_ptr<Stream<Out>>& stream) {
    const std::weak_ptr<Stream<Out>> weak = stream;
    WatchToken(
        caller, [weak] { return weak.expired(); },
        [weak](absl::Status why) {
          if (const auto open = weak.lock()) open->Close(std::move(why));
        });
  }

  // The same for an object that is not a Stream: calls `end` once, unless
  // `gone`.
  void WatchToken(const Caller& caller, std::function<bool()> gone,
                  std::function<void(absl::Status)> end);

  // Checks a call for a server's gate, by its headers alone. A caller with a
  // certificate has proved it earlier, so roles by certificate names are left
  // to Admit. kUnauthenticated, kUnavailable: as Admit. kUnimplemented: the
  // path is not a method of any daemon. kResourceExhausted: unidentified
  // callers call the health service too often.
  absl::Status AdmitHeaders(std::string_view path,
                            std::string_view token) const;

  // Sets the tokens that callers must present from now on. A list of the same
  // instance and a smaller version is ignored.
  void Replace(std::shared_ptr<const AccessTokens> tokens);
  // Sets the token that the daemon itself presents and accepts. The previous
  // one is also accepted for kReplacedTokenAccepted, or until the next one is
  // set, so that callers can be changed one by one. Streams that it has opened
  // continue. If the new one is in the coordinator's list, only the list
  // counts.
  void ReplaceOwn(std::string token);

 private:
  struct Watched {
    std::string token;
    std::function<bool()> gone;
    std::function<void(absl::Status)> end;
  };

  // Known calls Identify, notifies on_known_ and applies the caller's bounds.
  // `ours`: the caller must send a compatible version.
  absl::StatusOr<Caller> Known(const grpc::ServerContextBase& context,
                               bool ours) const;
  absl::StatusOr<Caller> Identify(const grpc::ServerContextBase& context,
                                  bool ours) const;
  absl::StatusOr<Caller> IdentifyToken(std::string_view token) const;
  bool IsTokenBefore(std::string_view text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Caller> FromList(std::string_view text) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  mutable CallerBounds bounds_;   // has its own lock
  mutable CallerBounds unknown_;  // for health calls; has its own lock
  std::function<void(std::string_view)> on_known_;  // constant; may be empty
  mutable Mutex mu_;
  Security own_ ABSL_GUARDED_BY(mu_);
  std::string before_ ABSL_GUARDED_BY(mu_);  // own token; empty: none
  MonotonicTime before_until_ ABSL_GUARDED_BY(mu_);
  // nullptr: none has arrived.
  std::shared_ptr<const AccessTokens> tokens_ ABSL_GUARDED_BY(mu_);
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mu_);
  size_t sweep_at_ ABSL_GUARDED_BY(mu_) = 64;
};

// Returns a token of kTokenRandomBytes bytes from OpenSSL. kUnavailable:
// OpenSSL has no random bytes.
absl::StatusOr<std::string> RandomTokenText();

}  // namespace leat::rpc
