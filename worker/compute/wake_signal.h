// SPDX-License-Identifier: Apache-2.0
//
// WakeSignal: wakes idle threads from anywhere, also from gRPC's release hooks:
// Notify takes no lock and never blocks.
//
//   const uint32_t seen = signal.Prepare();
//   if (!FindWork()) signal.Wait(seen);   // returns if notified since Prepare
#pragma once

#include <atomic>
#include <cstdint>

namespace leat::worker {

class WakeSignal {
 public:
  uint32_t Prepare() const { return count_.load(std::memory_order_seq_cst); }
  void Wait(uint32_t seen) const { count_.wait(seen); }
  void Notify() {
    count_.fetch_add(1);
    count_.notify_one();
  }
  void NotifyAll() {
    count_.fetch_add(1);
    count_.notify_all();
  }

 private:
  std::atomic<uint32_t> count_{0};
};

}  // namespace leat::worker
