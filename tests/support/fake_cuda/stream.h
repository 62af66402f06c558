// SPDX-License-Identifier: Apache-2.0
//
// A fake stream, which is a thread that runs tasks in order; and an event's
// marker in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "core/mutex.h"

namespace leat::fake_cuda {

// One cuEventRecord.
class Marker {
 public:
  void Set();
  bool IsSet();
  void Wait();
  std::chrono::steady_clock::time_point time();

 private:
  Mutex mu_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mu_) = false;
  std::chrono::steady_clock::time_point time_ ABSL_GUARDED_BY(mu_);
};

// Streams begin nothing while the gate is shut.
class Gate {
 public:
  void Shut();
  void Open();
  void Pass();

 private:
  Mutex mu_;
  CondVar changed_;
  bool shut_ ABSL_GUARDED_BY(mu_) = false;
};
Gate& StreamGate();

// Makes a piece of work never end, until Set is called again.
class Stopper {
 public:
  // Stops the nth piece of work of all streams and engines from now on; 0:
  // none, and the stopped one continues.
  void Set(uint64_t nth);
  void Pass();

 private:
  Mutex mu_;
  CondVar changed_;
  uint64_t left_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t times_ ABSL_GUARDED_BY(mu_) = 0;  // how often it was set
};
Stopper& StreamStopper();

// Destruction runs the appended tasks and joins. Not on its own thread.
class StreamThread {
 public:
  StreamThread();
  ~StreamThread();
  void Append(std::function<void()> task);
  void Drain();
  bool IsIdle();
  // While held it begins no new task.
  void Hold(bool held);

 private:
  void Run();

  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  uint64_t appended_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace leat::fake_cuda
