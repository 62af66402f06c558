// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cuda/stream.h"

#include <utility>

namespace leat::fake_cuda {

void Marker::Set() {
  MutexLock lock(&mu_);
  set_ = true;
  time_ = std::chrono::steady_clock::now();
  changed_.NotifyAll();
}

bool Marker::IsSet() {
  MutexLock lock(&mu_);
  return set_;
}

void Marker::Wait() {
  MutexLock lock(&mu_);
  while (!set_) changed_.Wait(&mu_);
}

std::chrono::steady_clock::time_point Marker::time() {
  MutexLock lock(&mu_);
  return time_;
}

void Gate::Shut() {
  MutexLock lock(&mu_);
  shut_ = true;
}

void Gate::Open() {
  MutexLock lock(&mu_);
  shut_ = false;
  changed_.NotifyAll();
}

void Gate::Pass() {
  MutexLock lock(&mu_);
  while (shut_) changed_.Wait(&mu_);
}

Gate& StreamGate() {
  static Gate* const gate = new Gate;
  return *gate;
}

void Stopper::Set(uint64_t nth) {
  MutexLock lock(&mu_);
  left_ = nth;
  ++times_;
  changed_.NotifyAll();
}

void Stopper::Pass() {
  MutexLock lock(&mu_);
  if (left_ == 0 || --left_ > 0) return;
  const uint64_t stopped = times_;
  while (times_ == stopped) changed_.Wait(&mu_);
}

Stopper& StreamStopper() {
  static Stopper* const stopper = new Stopper;
  return *stopper;
}

StreamThread::StreamThread() : thread_([this] { Run(); }) {}

StreamThread::~StreamThread() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void StreamThread::Append(std::function<void()> task) {
  MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  ++appended_;
  changed_.NotifyAll();
}

void StreamThread::Drain() {
  MutexLock lock(&mu_);
  const uint64_t target = appended_;
  while (done_ < target) changed_.Wait(&mu_);
}

void StreamThread::Hold(bool held) {
  MutexLock lock(&mu_);
  held_ = held;
  changed_.NotifyAll();
}

bool StreamThread::IsIdle() {
  MutexLock lock(&mu_);
  return done_ == appended_;
}

void StreamThread::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mu_);
      while ((tasks_.empty() || held_) && !stop_) changed_.Wait(&mu_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    StreamGate().Pass();
    StreamStopper().Pass();
    task();
    task = nullptr;
    MutexLock lock(&mu_);
    ++done_;
    changed_.NotifyAll();
  }
}

}  // namespace leat::fake_cuda
