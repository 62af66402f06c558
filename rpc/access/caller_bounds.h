// SPDX-License-Identifier: Apache-2.0
//
// CallerBounds limits how often a caller may call, and how many streams it may
// have open, by its role. So a script in a loop, or a stolen token, leaves room
// for other callers:
//
//   trainer/vision at 10.0.0.7   a bucket of calls, and its open streams
//   trainer/vision at 10.0.0.8   separate: a token may be used on many hosts
//   worker/nodes   at 10.0.0.7   separate
//
// An operator has no bounds; without authentication all callers share one
// bound. The server of a stream bounds what may be requested on it.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/clock.h"
#include "core/cluster/roles.h"
#include "core/mutex.h"

namespace leat::rpc {

struct RoleBounds {
  double calls_per_s = 0;  // streams count as calls, too; 0: no bounds
  double burst = 0;        // calls at once, after a pause
  size_t streams = 0;      // open at a time
};

// Indexed by the values of Role. A host has many iterators, each with a stream
// to each worker; a worker transfers an index in blocks.
inline constexpr std::array<RoleBounds, kRoles.size()> kRoleBounds = {
    RoleBounds{100, 500, 16},        // viewer
    RoleBounds{1'000, 4'000, 2048},  // trainer
    RoleBounds{2'000, 10'000, 512},  // worker
    RoleBounds{}};                   // operator

class CallerBounds {
 public:
  // Callers that are tracked separately. Further callers share one bound.
  static constexpr size_t kMaxCallers = 8192;

  // `clock` outlives it.
  explicit CallerBounds(
      const Clock* clock,
      const std::array<RoleBounds, kRoles.size()>& bounds = kRoleBounds)
      : clock_(clock), bounds_(bounds) {}

  // `identity` and `address` are Caller's. kResourceExhausted: the caller
  // exceeds its role's rate; the message names the caller, its address and the
  // bound.
  absl::Status Call(Role role, std::string_view identity,
                    std::string_view address);
  // Counts a stream until `gone` returns true. kResourceExhausted: the caller
  // has as many open streams as its role permits.
  absl::Status Open(Role role, std::string_view identity,
                    std::string_view address, std::function<bool()> gone);
  // Returns how many callers are tracked, for tests.
  size_t callers() const;

 private:
  struct Kept {
    double calls = 0;  // calls available at once, as of `at`
    MonotonicTime at{};
    std::vector<std::function<bool()>> streams;
    size_t sweep_at = 16;
  };
  Kept& Of(const RoleBounds& bounds, std::string_view identity,
           std::string_view address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetIdle(MonotonicTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const std::array<RoleBounds, kRoles.size()> bounds_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, Kept> callers_ ABSL_GUARDED_BY(mu_);
  MonotonicTime swept_at_ ABSL_GUARDED_BY(mu_) = MonotonicTime::min();
};

// Returns "10.0.0.7" for "ipv4:10.0.0.7:1234", as gRPC names peers; a Unix
// socket's name is returned unchanged.
std::string_view HostOf(std::string_view peer);

}  // namespace leat::rpc
