// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/resources/pinned_memory.h"

#include <deque>
#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"

namespace leat::worker {

std::byte* PinnedMemory::Allocate(size_t bytes) {
  absl::Status status = gpu_->MakeCurrent();
  if (status.ok()) {
    const auto memory = gpu_->AllocatePinned(bytes);
    if (memory.ok()) return *memory;
    status = memory.status();
  }
  if (!said_.exchange(true))
    LOG_WARN(
        "gpu.no_pinned_memory bytes={} error=\"{}\" note=\"batches go to "
        "ordinary memory, which takes longer\"",
        bytes, Message(status));
  return nullptr;
}

void PinnedMemory::Free(std::byte* memory, size_t) {
  (void)gpu_->MakeCurrent();
  gpu_->FreePinned(memory);
}

struct SharedPinner::State {
  explicit State(std::shared_ptr<const Device> of) : gpu(std::move(of)) {}

  // A memory that is no longer used.
  struct Used {
    std::shared_ptr<const SharedMemory> memory;
    bool locked = false;
  };

  void Run();
  void Lock(Pinned& pinned) const;
  void Unlock(const Used& used) const {
    if (!used.locked) return;
    (void)gpu->MakeCurrent();
    gpu->Unpin(used.memory->base());
  }

  const std::shared_ptr<const Device> gpu;
  Mutex mu;
  CondVar changed;
  std::deque<std::weak_ptr<Pinned>> to_lock ABSL_GUARDED_BY(mu);
  // Bounded by the number of shared memories: they count until they are
  // dropped.
  std::deque<Used> to_unlock ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;
};

class SharedPinner::Pinned final : public SharedMemory {
 public:
  Pinned(std::shared_ptr<State> state,
         std::shared_ptr<const SharedMemory> memory, uint64_t bytes)
      : bytes(bytes), state_(std::move(state)), memory_(std::move(memory)) {}
  ~Pinned() override {
    State::Used used{std::move(memory_), locked};
    {
      MutexLock lock(&state_->mu);
      if (!state_->stopping) {
        state_->to_unlock.push_back(std::move(used));
        state_->changed.NotifyOne();
        return;
      }
    }
    state_->Unlock(used);
  }

  std::byte* base() const override { return memory_->base(); }
  int device() const override { return memory_->device(); }
  uint32_t rows() const override { return memory_->rows(); }
  std::span<const uint64_t> field_offsets() const override {
    return memory_->field_offsets();
  }

  const uint64_t bytes;
  bool locked = false;  // belongs to the thread until the object is destroyed

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<const SharedMemory> memory_;
};

void SharedPinner::State::Lock(Pinned& pinned) const {
  absl::Status status = gpu->MakeCurrent();
  if (status.ok()) status = gpu->Pin(pinned.base(), pinned.bytes);
  pinned.locked = status.ok();
  if (!status.ok())
    LOG_WARN("gpu.shared_not_pinned bytes={} error=\"{}\"", pinned.bytes,
             Message(status));
}

// Unlocking goes first: it frees memory.
void SharedPinner::State::Run() {
  while (true) {
    Used used;
    std::shared_ptr<Pinned> pinned;
    {
      MutexLock lock(&mu);
      while (!stopping && to_unlock.empty() && to_lock.empty())
        changed.Wait(&mu);
      if (!to_unlock.empty()) {
        used = std::move(to_unlock.front());
        to_unlock.pop_front();
      } else if (stopping) {
        return;
      } else {
        pinned = to_lock.front().lock();
        to_lock.pop_front();
      }
    }
    if (used.memory != nullptr) Unlock(used);
    if (pinned != nullptr) Lock(*pinned);
  }
}

SharedPinner::SharedPinner(std::shared_ptr<const Device> gpu)
    : state_(std::make_shared<State>(std::move(gpu))) {
  started_ = StartThread(
      "gpu-pin", [state = state_] { state->Run(); }, &thread_);
}

SharedPinner::~SharedPinner() {
  {
    MutexLock lock(&state_->mu);
    state_->stopping = true;
    state_->changed.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const SharedMemory> SharedPinner::Pin(
    std::shared_ptr<const SharedMemory> memory, uint64_t mapped_bytes) {
  auto pinned =
      std::make_shared<Pinned>(state_, std::move(memory), mapped_bytes);
  MutexLock lock(&state_->mu);
  if (state_->to_lock.size() >= kMaxWaiting) return pinned;
  state_->to_lock.push_back(pinned);
  state_->changed.NotifyOne();
  return pinned;
}

}  // namespace leat::worker
