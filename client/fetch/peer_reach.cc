// SPDX-License-Identifier: Apache-2.0
//
// Why the peers of a PeerTable cannot be reached. A stream that ends before the
// worker has said anything has its address looked at (LinkProber):
//
//   what is wrong      and it                 then
//   certificates       is settled             every worker so: the step fails
//   a closed port      may be a restart       the step waits, and it is told
//   why
//
// What was found holds until the worker says something, or a look finds
// nothing.
#include <utility>

#include "client/fetch/peer_table.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr size_t kMaxTold = 8;  // workers: in a report, and in an error
// A report of what lasts is told again so often.
constexpr Duration kTellAgain = std::chrono::seconds(10);
// A worker that ends in the midst of a handshake looks wrong once.
constexpr uint32_t kSure = 2;

}  // namespace

void PeerTable::NotReached(Peer& peer) {
  if (std::exchange(peer.looked_at, true)) return;
  looks_.push_back(peer.ref.address);
}

void PeerTable::Looked(const std::string& address,
                       const rpc::Hindrance& hindrance) {
  for (Peer& peer : peers_) {
    if (!peer.looked_at || peer.ref.address != address) continue;
    peer.looked_at = false;
    if (peer.lane && peer.lane->last_heard != MonotonicTime{}) continue;
    if (peer.hindrance != hindrance.what) tell_reach_ = true;
    peer.hindrance = hindrance.what;
    peer.settled_looks = hindrance.settled ? peer.settled_looks + 1 : 0;
    window_.dirty = true;
  }
}

void PeerTable::Reached(Peer& peer) {
  peer.settled_looks = 0;
  if (peer.hindrance.empty()) return;
  peer.hindrance.clear();
  tell_reach_ = true;
}

std::optional<std::vector<PeerTable::Unreached>> PeerTable::TakeUnreached(
    MonotonicTime now) {
  std::vector<Unreached> unreached;
  for (const Peer& peer : peers_)
    if (peer.present && !peer.hindrance.empty() && unreached.size() < kMaxTold)
      unreached.push_back({peer.ref.name, peer.hindrance});
  if (!tell_reach_ && (unreached.empty() || now < tell_reach_at_))
    return std::nullopt;
  tell_reach_ = false;
  tell_reach_at_ = now + kTellAgain;
  return unreached;
}

bool PeerTable::NoneReached() const {
  const auto reached = [&](const Peer& peer) {
    return peer.lane && peer.lane->last_heard != MonotonicTime{};
  };
  for (const Peer& peer : peers_) {
    if (reached(peer)) return false;
    if (peer.present && peer.hindrance.empty()) return false;
  }
  return !peer_of_.empty();
}

bool PeerTable::Refuses(const Peer& peer) const {
  if (peer.failures_in_row < config_.max_refusals) return false;
  return peer.settled_looks >= kSure ||
         (peer.last_code != absl::StatusCode::kOk &&
          !IsPassing(peer.last_code) && !IsBug(peer.last_code));
}

absl::Status PeerTable::Refusal() const {
  if (peer_of_.empty()) return absl::OkStatus();
  const Peer* unreached = nullptr;
  for (const uint16_t worker : peer_of_) {
    if (worker == Row::kNobody) continue;
    const Peer& peer = peers_[worker];
    if (!Refuses(peer)) return absl::OkStatus();
    if (peer.settled_looks >= kSure && unreached == nullptr) unreached = &peer;
  }
  for (const Peer& peer : peers_)
    if (LastResort(peer) && peer.lane) return absl::OkStatus();
  if (unreached != nullptr)
    return FailedPrecondition("no worker can be reached; {}", Describe(Row()));
  const Peer& peer = peers_[peer_of_.front()];
  return MakeStatus(peer.last_code, "every worker refuses; {}: {}",
                    peer.ref.name, peer.last_error);
}

}  // namespace leat::client
