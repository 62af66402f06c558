// SPDX-License-Identifier: Apache-2.0
//
// GpuQueue: one GPU, its slots, and the groups that are computed on it.
//
// Its threads are on cores near the GPU. Each slot has one, which puts the
// slot's groups on its queue, waits for them, asleep, and reports their rows'
// statuses: so no group waits for the calls of another one. `repair` decodes
// images that decoders refused and prepares substitutes of bad samples, which
// takes a host's time. `watch` checks that the others' calls and waits end.
//
// A group that fails gets kUnavailable, so that another worker computes it. A
// GPU is lost when an error poisons it; when it hangs (resources/watch.h: it is
// then treated as poisoned, and threads and rows may hang until the process
// ends); or after `max_failures` failed groups in succession. From then on all
// groups are refused. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/bounded_queue.h"
#include "core/mutex.h"
#include "worker/compute/gpu_worker.h"
#include "worker/compute/wake_signal.h"
#include "worker/gpu/device/device.h"
#include "worker/gpu/groups/group.h"
#include "worker/gpu/resources/slots.h"
#include "worker/gpu/resources/watch.h"

namespace leat::worker {

struct GpuQueueOptions {
  int max_failures = 8;
  const Clock* clock = &Clock::Real();  // for the watch
  ImageLimits image;
};

class GpuQueue {
 public:
  // `slots` belong to the GPU, and outlive the queue. `wake`: notified when a
  // slot becomes free. `on_lost`: called once, on a thread of the queue;
  // `poisoned`: nothing on the GPU works any more in this process.
  GpuQueue(const Device* gpu, Slots* slots, GpuQueueOptions options,
           std::shared_ptr<WakeSignal> wake,
           std::function<void(const absl::Status&, bool poisoned)> on_lost);
  // REQUIRES: all groups are destroyed.
  ~GpuQueue();

  // kResourceExhausted: a thread cannot be started; then only destroy the
  // queue.
  const absl::Status& started() const { return started_; }

  const Device& gpu() const { return *gpu_; }
  bool lost() const { return lost_.load(); }
  absl::Status WhyLost() const;

  int free_slots() const { return free_slots_.load(); }
  // Returns nullptr if none is free.
  Slot* TakeSlot();
  void Release(Slot* slot);
  // Computes the group and reports its rows' statuses.
  void Submit(GpuGroup* group);
  // Reports that a call failed outside a group's run: a thread of the queue
  // then checks whether the GPU is lost. Without this, the loss of a GPU on
  // which no row gets as far as a group's run would not be noticed.
  void Suspect();

  // Returns counts of the work of the slots and groups.
  GpuStats stats() const;

 private:
  // Groups of a slot, at most one, and one look at the GPU (nullptr).
  using Submitted = BoundedQueue<GpuGroup*>;

  void Start(const std::string& name, std::function<void()> loop);
  void SlotLoop(Submitted* submitted);
  void RepairLoop();
  void Look();
  // Returns when the group has ended.
  absl::Status Compute(GpuGroup* group);
  absl::Status Enqueue(GpuGroup* group);
  void Complete(GpuGroup* group, absl::Status status);
  absl::Status Repair(GpuGroup* group, GpuThread* thread);
  // Returns the status for consumers; counts the failure, and may lose the GPU.
  absl::Status Failed(const absl::Status& status);
  void LosePoisoned(const absl::Status& status);
  void Lose(const absl::Status& why, bool poisoned);
  void Begin();
  void End();
  void Count(const GpuGroup& group);

  const Device* const gpu_;
  const Slots& slots_;
  const GpuQueueOptions options_;
  const std::shared_ptr<WakeSignal> wake_;
  const std::function<void(const absl::Status&, bool)> on_lost_;
  const size_t num_slots_;
  const Slot* const first_;
  std::atomic<int> free_slots_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> suspected_{false};  // the first slot is to look

  mutable Mutex mu_;
  std::vector<Slot*> free_ ABSL_GUARDED_BY(mu_);
  absl::Status why_lost_ ABSL_GUARDED_BY(mu_);
  int failures_ ABSL_GUARDED_BY(mu_) = 0;  // since the last success
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  MonotonicTime changed_at_ ABSL_GUARDED_BY(mu_);
  GpuStats stats_ ABSL_GUARDED_BY(mu_);

  std::vector<std::unique_ptr<Submitted>> submitted_;  // per slot
  BoundedQueue<GpuGroup*> repairs_;                    // at most one per slot
  GpuWatch watch_;
  std::vector<std::thread> threads_;
  absl::Status started_;
};

}  // namespace leat::worker
