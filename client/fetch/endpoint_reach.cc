// SPDX-License-Identifier: Apache-2.0
//
// Why endpoints of an EndpointTable cannot be reached. If a stream ends before
// the worker has sent anything, its address is probed (LinkProber):
//
//   what is wrong      and it                 then
//   certificates       is settled             every worker so: the step fails
//   a closed port      may be a restart       the step waits, and tells why
//
// The result holds until the worker sends something, or a probe finds no
// problem.
#include <utility>

#include "client/fetch/endpoint_table.h"
#include "core/status.h"

namespace leat::client {
namespace {

constexpr size_t kMaxTold = 8;  // workers per report, and per error
// How often a lasting problem is reported again.
constexpr Duration kTellAgain = std::chrono::seconds(10);
// A worker that ends during a handshake looks permanently broken once.
constexpr uint32_t kSure = 2;

}  // namespace

void EndpointTable::NotReached(WorkerEndpoint& endpoint) {
  if (std::exchange(endpoint.looked_at, true)) return;
  in_flight_.decided.looks.push_back(endpoint.ref.address);
}

void EndpointTable::Looked(const std::string& address,
                           const rpc::Hindrance& hindrance) {
  for (WorkerEndpoint& endpoint : endpoints_) {
    if (!endpoint.looked_at || endpoint.ref.address != address) continue;
    endpoint.looked_at = false;
    if (endpoint.reached()) continue;
    if (endpoint.hindrance != hindrance.what) tell_reach_ = true;
    endpoint.hindrance = hindrance.what;
    endpoint.settled_looks = hindrance.settled ? endpoint.settled_looks + 1 : 0;
    in_flight_.dirty = true;
  }
}

void EndpointTable::Reached(WorkerEndpoint& endpoint) {
  endpoint.settled_looks = 0;
  if (endpoint.hindrance.empty()) return;
  endpoint.hindrance.clear();
  tell_reach_ = true;
}

std::optional<std::vector<EndpointTable::Unreached>>
EndpointTable::TakeUnreached(MonotonicTime now) {
  std::vector<Unreached> unreached;
  for (const WorkerEndpoint& endpoint : endpoints_)
    if (endpoint.present && !endpoint.hindrance.empty() &&
        unreached.size() < kMaxTold)
      unreached.push_back({endpoint.ref.name, endpoint.hindrance});
  if (!tell_reach_ && (unreached.empty() || now < tell_reach_at_))
    return std::nullopt;
  tell_reach_ = false;
  tell_reach_at_ = now + kTellAgain;
  return unreached;
}

bool EndpointTable::NoneReached() const {
  for (const WorkerEndpoint& endpoint : endpoints_) {
    if (endpoint.reached()) return false;
    if (endpoint.present && endpoint.hindrance.empty()) return false;
  }
  return !endpoint_of_.empty();
}

bool EndpointTable::Refuses(const WorkerEndpoint& endpoint) const {
  if (endpoint.failures_in_row < config_.max_refusals) return false;
  return endpoint.settled_looks >= kSure ||
         (endpoint.last_code != absl::StatusCode::kOk &&
          !IsTransient(endpoint.last_code) && !IsBug(endpoint.last_code));
}

absl::Status EndpointTable::Refusal() const {
  if (endpoint_of_.empty()) return absl::OkStatus();
  const WorkerEndpoint* unreached = nullptr;
  for (const uint16_t worker : endpoint_of_) {
    if (worker == Row::kNobody) continue;
    const WorkerEndpoint& endpoint = endpoints_[worker];
    if (!Refuses(endpoint)) return absl::OkStatus();
    if (endpoint.settled_looks >= kSure && unreached == nullptr)
      unreached = &endpoint;
  }
  for (const WorkerEndpoint& endpoint : endpoints_)
    if (LastResort(endpoint) && endpoint.stream) return absl::OkStatus();
  if (unreached != nullptr)
    return FailedPrecondition("no worker can be reached; {}", Describe(Row()));
  const WorkerEndpoint& endpoint = endpoints_[endpoint_of_.front()];
  return MakeStatus(endpoint.last_code, "every worker refuses; {}: {}",
                    endpoint.ref.name, endpoint.last_error);
}

}  // namespace leat::client
