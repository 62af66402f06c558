// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/groups/queue.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/gpu/device/error.h"
#include "worker/gpu/groups/run.h"

namespace leat::worker {
namespace {

uint64_t Nanoseconds(Duration duration) {
  return static_cast<uint64_t>(duration.count());
}

}  // namespace

GpuQueue::GpuQueue(const Device* gpu, Slots* slots, GpuQueueOptions options,
                   std::shared_ptr<WakeSignal> wake,
                   std::function<void(const absl::Status&, bool)> on_lost)
    : gpu_(gpu),
      slots_(*slots),
      options_(std::move(options)),
      wake_(std::move(wake)),
      on_lost_(std::move(on_lost)),
      num_slots_(slots->all().size()),
      first_(slots->all().front()),
      free_slots_(static_cast<int>(num_slots_)),
      free_(slots->all()),
      changed_at_(Clock::Real().Now()),
      repairs_(num_slots_),
      watch_(options_.clock, [this](const std::string& stuck) {
        LosePoisoned(Unavailable("{}", stuck));
      }) {
  Start("watch", [this] { watch_.Run(); });
  Start("repair", [this] { RepairLoop(); });
  for (size_t slot = 0; slot < num_slots_; ++slot) {
    submitted_.push_back(std::make_unique<Submitted>(2));
    Start(fmt::format("slot-{}", slot),
          [this, submitted = submitted_.back().get()] { SlotLoop(submitted); });
  }
}

void GpuQueue::Start(const std::string& name, std::function<void()> loop) {
  if (!started_.ok()) return;
  std::thread thread;
  started_ = StartThread(
      fmt::format("gpu-{}-{}", gpu_->info().index, name),
      [this, loop = std::move(loop)] {
        gpu_->NearThread();
        if (absl::Status status = gpu_->MakeCurrent(); !status.ok())
          Lose(Unavailable("GPU {} cannot be used: {}", gpu_->info().index,
                           Message(status)),
               IsPoisoned(status));
        loop();
      },
      &thread);
  if (started_.ok()) threads_.push_back(std::move(thread));
}

GpuQueue::~GpuQueue() {
  for (const std::unique_ptr<Submitted>& slot : submitted_) slot->Close();
  repairs_.Close();
  watch_.Stop();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status GpuQueue::WhyLost() const {
  MutexLock lock(&mu_);
  return why_lost_;
}

Slot* GpuQueue::TakeSlot() {
  MutexLock lock(&mu_);
  if (free_.empty()) return nullptr;
  Slot* const slot = free_.back();
  free_.pop_back();
  --free_slots_;
  return slot;
}

void GpuQueue::Release(Slot* slot) {
  {
    MutexLock lock(&mu_);
    free_.push_back(slot);
    ++free_slots_;
  }
  wake_->Notify();
}

// There is room for the slot's only group; after Close no caller waits for it.
void GpuQueue::Submit(GpuGroup* group) {
  Begin();
  submitted_[static_cast<size_t>(group->slot().index)]->TryPush(
      std::move(group));
}

void GpuQueue::SlotLoop(Submitted* submitted) {
  while (std::optional<GpuGroup*> group =
             submitted->Pop(MonotonicTime::max())) {
    if (*group == nullptr)
      Look();
    else
      Complete(*group, lost() ? WhyLost() : Compute(*group));
  }
}

void GpuQueue::Suspect() {
  if (!suspected_.exchange(true)) submitted_.front()->TryPush(nullptr);
}

// The result of waiting applies to the whole context.
void GpuQueue::Look() {
  suspected_ = false;
  if (lost()) return;
  const GpuWatch::Turn turn(&watch_, "what was on a queue");
  if (const absl::Status status = first_->queue->Wait(); !status.ok())
    Lose(Unavailable("GPU {} cannot be used any more: {}", gpu_->info().index,
                     Message(status)),
         true);
}

absl::Status GpuQueue::Enqueue(GpuGroup* group) {
  const GpuWatch::Turn turn(&watch_, "putting a group on its queue");
  GroupRun run(group);
  const MonotonicTime begin = Clock::Real().Now();
  absl::Status status = run.Enqueue();
  const Duration took = Clock::Real().Now() - begin;
  // Nothing may be written after the rows' statuses are reported, so this waits
  // for the queue. If the device is lost, that wait may never end: so the loss
  // is reported before it, and the process still ends.
  const bool poisoned = IsPoisoned(status);
  if (poisoned) LosePoisoned(status);
  if (!status.ok())
    if (absl::Status end = group->slot().queue->Wait(); !end.ok() && !poisoned)
      status = Poisoned(end);
  MutexLock lock(&mu_);
  stats_.enqueue_ns_total += Nanoseconds(took);
  stats_.decoder_ns_total += Nanoseconds(run.decoding());
  stats_.splits_total += run.splits();
  return status;
}

absl::Status GpuQueue::Compute(GpuGroup* group) {
  RETURN_IF_ERROR(Enqueue(group));
  const GpuWatch::Turn turn(&watch_, "a group");
  const MonotonicTime begin = Clock::Real().Now();
  absl::Status status = group->slot().queue->WaitMark();
  const Duration took = Clock::Real().Now() - begin;
  // The result of waiting applies to the whole context.
  if (!status.ok()) status = Poisoned(status);
  MutexLock lock(&mu_);
  stats_.waiting_ns_total += Nanoseconds(took);
  return status;
}

void GpuQueue::Complete(GpuGroup* group, absl::Status status) {
  if (!status.ok()) status = Failed(status);
  if (status.ok()) {
    group->TakeFaults();
    group->KeepLeftIndexes();
  }
  const bool repair =
      status.ok() && std::ranges::any_of(group->rows(), IsForRepair);
  if (repair) {
    repairs_.TryPush(std::move(group));
    return;
  }
  if (status.ok()) Count(*group);
  End();
  group->Answer(status, nullptr);
}

void GpuQueue::RepairLoop() {
  GpuThread thread(options_.image);
  while (std::optional<GpuGroup*> group = repairs_.Pop(MonotonicTime::max())) {
    absl::Status status = lost() ? WhyLost() : Repair(*group, &thread);
    if (!status.ok())
      status = Failed(status);
    else
      Count(**group);
    End();
    (*group)->Answer(status, &thread);
  }
}

absl::Status GpuQueue::Repair(GpuGroup* group, GpuThread* thread) {
  for (size_t row = 0; row < group->rows().size(); ++row) {
    GroupRow& r = group->rows()[row];
    if (r.stage == RowStage::kFailed && group->IsSound(row, thread))
      return Unavailable("{} fails on sample {}, an image that is not damaged",
                         group->slot().decoder->name(), r.input.sample);
    if (r.stage == RowStage::kRefused || r.stage == RowStage::kFailed)
      r.status = group->ComputeOnCpu(row, thread);
  }
  const GpuWatch::Turn turn(&watch_, "copying a repaired group");
  absl::Status status = GroupRun(group).EnqueueStores();
  if (absl::Status end = group->slot().queue->Wait(); !end.ok())
    status = Poisoned(end);
  return status;
}

absl::Status GpuQueue::Failed(const absl::Status& status) {
  const int index = gpu_->info().index;
  bool give_up = false;
  {
    MutexLock lock(&mu_);
    ++stats_.groups_failed_total;
    // A lack of memory does not mean that the GPU is broken: it passes.
    if (!absl::IsResourceExhausted(status)) ++failures_;
    give_up = failures_ >= options_.max_failures;
  }
  LOG_WARN("gpu.group_failed gpu={} error=\"{}\"", index, Message(status));
  if (IsPoisoned(status)) {
    LosePoisoned(status);
  } else if (give_up) {
    Lose(Unavailable("GPU {} is given up after {} failures: {}", index,
                     options_.max_failures, Message(status)),
         false);
  }
  return Unavailable("GPU {}: {}", index, Message(status));
}

void GpuQueue::LosePoisoned(const absl::Status& status) {
  Lose(Unavailable("GPU {} cannot be used any more: {}", gpu_->info().index,
                   Message(status)),
       /*poisoned=*/true);
}

void GpuQueue::Lose(const absl::Status& why, bool poisoned) {
  {
    MutexLock lock(&mu_);
    if (!why_lost_.ok()) return;
    why_lost_ = why;
  }
  lost_ = true;
  LOG_ERROR("gpu.lost gpu={} error=\"{}\"", gpu_->info().index, Message(why));
  on_lost_(why, poisoned);
  wake_->NotifyAll();
}

void GpuQueue::Begin() {
  const MonotonicTime now = Clock::Real().Now();
  MutexLock lock(&mu_);
  const uint64_t ns = Nanoseconds(now - changed_at_);
  if (running_ > 0) stats_.busy_ns_total += ns;
  stats_.group_ns_total += static_cast<uint64_t>(running_) * ns;
  changed_at_ = now;
  ++running_;
}

void GpuQueue::End() {
  const MonotonicTime now = Clock::Real().Now();
  MutexLock lock(&mu_);
  const uint64_t ns = Nanoseconds(now - changed_at_);
  stats_.busy_ns_total += ns;
  stats_.group_ns_total += static_cast<uint64_t>(running_) * ns;
  changed_at_ = now;
  --running_;
}

void GpuQueue::Count(const GpuGroup& group) {
  const bool exact = group.program().decoder_class == DecoderClass::kExact;
  const auto& rows = group.rows();
  // A group with bad samples will run again.
  const bool last =
      std::all_of(rows.begin(), rows.end(),
                  [](const GroupRow& row) { return row.status.ok(); });
  MutexLock lock(&mu_);
  failures_ = 0;
  if (!last) return;
  ++stats_.groups_total;
  for (const GroupRow& row : rows) {
    if (row.by == DecodedBy::kHardware)
      ++stats_.rows_hardware_total;
    else if (row.by == DecodedBy::kKernels)
      ++stats_.rows_kernels_total;
    else
      ++(exact ? stats_.rows_exact_total : stats_.rows_host_total);
    if (row.by == DecodedBy::kCoefficients || row.by == DecodedBy::kCodes)
      ++stats_.rows_coefficients_total;
    if (row.by == DecodedBy::kCodes) ++stats_.rows_codes_total;
  }
}

GpuStats GpuQueue::stats() const {
  MutexLock lock(&mu_);
  GpuStats stats = stats_;
  stats.index = gpu_->info().index;
  stats.memory_bytes = slots_.device_bytes();
  stats.slots = static_cast<int>(num_slots_);
  for (const Slot* slot : slots_.all())
    stats.pageable_copies_total += slot->queue->pageable_copies();
  stats.slots_in_use = static_cast<int>(num_slots_ - free_.size());
  if (running_ > 0) {
    const uint64_t ns = Nanoseconds(Clock::Real().Now() - changed_at_);
    stats.busy_ns_total += ns;
    stats.group_ns_total += static_cast<uint64_t>(running_) * ns;
  }
  return stats;
}

}  // namespace leat::worker
