// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/sessions.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::server {
namespace {

constexpr size_t kWakesAtOnce = 64;
constexpr size_t kMaxText = 256;

}  // namespace

absl::Status CheckText(std::string_view what, std::string_view text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 32 &&
           static_cast<unsigned char>(c) < 127;
  });
  if (text.empty() || text.size() > kMaxText || !printable)
    return InvalidArgument(
        "{} \"{}\": want 1 to {} printable characters without spaces", what,
        printable ? text.substr(0, 64) : "(unprintable)", kMaxText);
  return absl::OkStatus();
}

WokenSession* Sessions::Find(SessionId id) {
  if (const auto worker = workers_.find(id); worker != workers_.end())
    return &worker->second;
  return consumers_.Find(id);
}

WorkerSession* Sessions::OfWorker(std::string_view name) {
  const Membership::Worker* const worker = membership_->Find(name);
  if (worker == nullptr) return nullptr;
  const auto it = workers_.find(worker->session);
  return it == workers_.end() ? nullptr : &it->second;
}

void Sessions::WakeLater(SessionId id) {
  WokenSession* const session = Find(id);
  if (session != nullptr && !std::exchange(session->waking, true))
    to_wake_.push_back(id);
}

void Sessions::WakeWorkersLater() {
  for (const auto& [id, session] : workers_) WakeLater(id);
}

void Sessions::WakeAllLater() {
  WakeWorkersLater();
  for (const auto& [id, consumer] : consumers_.all()) WakeLater(id);
}

std::vector<Sessions::Wake> Sessions::TakeWakes() {
  std::vector<Wake> wakes;
  while (!to_wake_.empty() && wakes.size() < kWakesAtOnce) {
    if (WokenSession* const session = Find(to_wake_.front())) {
      session->waking = false;
      wakes.push_back(session->wake);
    }
    to_wake_.pop_front();
  }
  return wakes;
}

void Sessions::TellTable(const TableKey& key) {
  for (const SessionId id : consumers_.OfTable(key)) {
    consumers_.Find(id)->pending.insert(key);
    WakeLater(id);
  }
}

void Sessions::TellOwned(const std::string& dataset,
                         const std::vector<std::string>& workers) {
  for (const std::string& name : workers)
    if (WorkerSession* const session = OfWorker(name)) {
      session->datasets.insert(dataset);
      WakeLater(membership_->Find(name)->session);
    }
}

}  // namespace leat::server
