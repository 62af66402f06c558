// SPDX-License-Identifier: Apache-2.0
//
// Capacity: rows a second that a worker could do if it were asked, from what it
// did. The slower of its decode threads and its GPUs counts.
//
// Threads: a row's mean time, and all of them. GPUs: rows a second of the time
// with a group on a GPU. A GPU that waits for groups shows less than it could
// do, so that such an interval raises the figure but does not lower it.
// Thread-compatible.
#pragma once

#include <algorithm>

namespace leat::worker {

class Capacity {
 public:
  // What threads did in an interval.
  struct Threads {
    double rows = 0;
    double threads = 0;
    double thread_seconds = 0;  // at work, of all
  };
  struct Devices {
    int devices = 0;
    double rows = 0;
    double busy_seconds = 0;   // with at least one group, of all
    double group_seconds = 0;  // of all groups
  };

  void Update(const Threads& threads, const Devices& devices) {
    if (threads.rows <= 0 || threads.thread_seconds <= 0) return;
    double measured = threads.threads * threads.rows / threads.thread_seconds;
    bool limit = true;  // that this is all it can do
    if (devices.rows > 0 && devices.busy_seconds > 0) {
      const double gpus = devices.devices * devices.rows / devices.busy_seconds;
      limit = measured < gpus ||
              devices.group_seconds >= kFull * devices.busy_seconds;
      measured = std::min(measured, gpus);
    }
    if (rows_per_s_ == 0)
      rows_per_s_ = measured;
    else if (limit || measured > rows_per_s_)
      rows_per_s_ += (measured - rows_per_s_) / 4;
  }
  double rows_per_s() const { return rows_per_s_; }  // 0: not yet measured

 private:
  // Groups on a GPU, on average, that keep it from waiting.
  static constexpr double kFull = 1.5;
  double rows_per_s_ = 0;
};

}  // namespace leat::worker
