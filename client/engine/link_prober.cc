// SPDX-License-Identifier: Apache-2.0
#include "client/engine/link_prober.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::client {

LinkProber::LinkProber(Probe probe, Found found)
    : probe_(std::move(probe)), found_(std::move(found)) {}

void LinkProber::Ask(std::vector<std::string> addresses) {
  if (addresses.empty()) return;
  if (!started_) {
    const absl::Status status = StartThread(
        "link-prober", [this] { Run(); }, &thread_);
    if (!status.ok()) {
      LOG_DEBUG("link.not_probed reason=\"{}\"", Message(status));
      for (const std::string& address : addresses) found_(address, {});
      return;
    }
    started_ = true;
  }
  std::vector<std::string> left;
  {
    MutexLock lock(&mu_);
    for (std::string& address : addresses)
      if (waiting_.size() < kMostWaiting)
        waiting_.push_back(std::move(address));
      else
        left.push_back(std::move(address));
    changed_.NotifyAll();
  }
  for (const std::string& address : left) found_(address, {});
}

void LinkProber::Stop() {
  {
    MutexLock lock(&mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void LinkProber::Run() {
  while (true) {
    std::string address;
    {
      MutexLock lock(&mu_);
      while (waiting_.empty() && !stopped_) changed_.Wait(&mu_);
      if (stopped_) return;
      address = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const rpc::Hindrance hindrance = probe_(address);
    {
      MutexLock lock(&mu_);
      if (stopped_) return;
    }
    found_(address, hindrance);
  }
}

}  // namespace leat::client
