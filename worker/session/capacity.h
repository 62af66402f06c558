// SPDX-License-Identifier: Apache-2.0
//
// Capacity: the rows per second that a worker could do if they were requested,
// estimated from what it did. The slower of its decode threads and its GPUs
// counts.
//
// Threads: the mean time of a row, and the number of threads. GPUs: rows per
// second of the time with a group on a GPU. A GPU that waits for groups shows
// less than it could do, so such an interval raises the figure but does not
// lower it. Thread-compatible.
#pragma once

#include <algorithm>

namespace leat::worker {

class Capacity {
 public:
  // The work of threads in an interval.
  struct Threads {
    double rows = 0;
    double threads = 0;
    double thread_seconds = 0;  // at work, sum over all
  };
  struct Devices {
    int devices = 0;
    double rows = 0;
    double busy_seconds = 0;   // with at least one group, sum over all
    double group_seconds = 0;  // sum over all groups
  };

  void Update(const Threads& threads, const Devices& devices) {
    if (threads.rows <= 0 || threads.thread_seconds <= 0) return;
    double measured = threads.threads * threads.rows / threads.thread_seconds;
    bool limit = true;  // true if this is all it can do
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
  double rows_per_s() const { return rows_per_s_; }  // 0: not measured yet

 private:
  // The mean number of groups on a GPU that keeps it from waiting.
  static constexpr double kFull = 1.5;
  double rows_per_s_ = 0;
};

}  // namespace leat::worker
