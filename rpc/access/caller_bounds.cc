// SPDX-License-Identifier: Apache-2.0
#include "rpc/access/caller_bounds.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::rpc {
namespace {

// After this time without a call a caller has its whole burst again.
constexpr Duration kIdle = std::chrono::minutes(1);
// Looking for idle callers visits all of them.
constexpr Duration kSweepEvery = std::chrono::seconds(5);

size_t At(Role role) { return static_cast<size_t>(role); }

void DropGone(std::vector<std::function<bool()>>* streams) {
  std::erase_if(*streams,
                [](const std::function<bool()>& gone) { return gone(); });
}

}  // namespace

std::string_view HostOf(std::string_view peer) {
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return peer;
  peer.remove_prefix(5);
  return peer.substr(0, peer.rfind(':'));
}

void CallerBounds::ForgetIdle(MonotonicTime now) {
  if (swept_at_ > MonotonicTime::min() && now < swept_at_ + kSweepEvery) return;
  swept_at_ = now;
  for (auto it = callers_.begin(); it != callers_.end();) {
    DropGone(&it->second.streams);
    const bool idle =
        it->second.streams.empty() && now >= it->second.at + kIdle;
    if (idle)
      callers_.erase(it++);
    else
      ++it;
  }
}

CallerBounds::Kept& CallerBounds::Of(const RoleBounds& bounds,
                                     std::string_view identity,
                                     std::string_view address) {
  const MonotonicTime now = clock_->Now();
  std::string key = fmt::format("{} at {}", identity, address);
  if (callers_.size() >= kMaxCallers && !callers_.contains(key)) {
    ForgetIdle(now);
    if (callers_.size() >= kMaxCallers) key = "others";
  }
  const auto [it, added] = callers_.try_emplace(std::move(key));
  Kept& kept = it->second;
  const double away = std::chrono::duration<double>(now - kept.at).count();
  kept.calls =
      added ? bounds.burst
            : std::min(bounds.burst, kept.calls + away * bounds.calls_per_s);
  kept.at = now;
  return kept;
}

absl::Status CallerBounds::Call(Role role, std::string_view identity,
                                std::string_view address) {
  const RoleBounds& bounds = bounds_.at(At(role));
  if (bounds.calls_per_s <= 0) return absl::OkStatus();
  MutexLock lock(&mu_);
  Kept& kept = Of(bounds, identity, address);
  if (kept.calls >= 1) {
    kept.calls -= 1;
    return absl::OkStatus();
  }
  return ResourceExhausted(
      "{} calls more than {:g} times a second from {}, the bound of role {}: "
      "call less often",
      identity, bounds.calls_per_s, address, Name(role));
}

absl::Status CallerBounds::Open(Role role, std::string_view identity,
                                std::string_view address,
                                std::function<bool()> gone) {
  const RoleBounds& bounds = bounds_.at(At(role));
  if (bounds.calls_per_s <= 0) return absl::OkStatus();
  MutexLock lock(&mu_);
  Kept& kept = Of(bounds, identity, address);
  // Rarely, so that ended streams are few compared with open ones.
  if (kept.streams.size() >= std::min(kept.sweep_at, bounds.streams)) {
    DropGone(&kept.streams);
    kept.sweep_at = std::max<size_t>(16, 2 * kept.streams.size());
  }
  if (kept.streams.size() >= bounds.streams)
    return ResourceExhausted(
        "{} has {} streams open from {}, the bound of role {}: close some",
        identity, kept.streams.size(), address, Name(role));
  kept.streams.push_back(std::move(gone));
  return absl::OkStatus();
}

size_t CallerBounds::callers() const {
  MutexLock lock(&mu_);
  return callers_.size();
}

}  // namespace leat::rpc
