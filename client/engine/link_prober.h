// SPDX-License-Identifier: Apache-2.0
//
// LinkProber finds out, on its own thread, why streams to some addresses fail.
// gRPC's own error ("Socket closed") names no cause.
//
// The Engine owns it. One thread at a time calls Ask and Stop. A probe of a name
// may take as long as the system's resolver, and Stop waits for it.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "rpc/tls/tls_probe.h"

namespace leat::client {

class LinkProber {
 public:
  using Probe = std::function<rpc::Hindrance(const std::string& address)>;
  using Found = std::function<void(const std::string& address,
                                   const rpc::Hindrance& hindrance)>;

  // Both are called on the thread, without a lock.
  LinkProber(Probe probe, Found found);
  ~LinkProber() { Stop(); }

  // Calls `found` for each address. Beyond kMostWaiting the caller is told at
  // once that nothing was found. The first call starts the thread.
  void Ask(std::vector<std::string> addresses);
  // `found` is not called afterwards. Idempotent.
  void Stop();

  static constexpr size_t kMostWaiting = 1024;

 private:
  void Run();

  const Probe probe_;
  const Found found_;
  std::thread thread_;  // of the thread that calls Ask and Stop
  bool started_ = false;

  Mutex mu_;
  CondVar changed_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace leat::client
