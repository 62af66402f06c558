// SPDX-License-Identifier: Apache-2.0
//
// Tracing: spans of the steps that somebody wants to see.
//
// Which steps are traced, and the ids of their traces and of the spans that
// others refer to, are functions of (plan hash, epoch, step) and of names that
// both sides know. So consumer and workers trace the same steps, and their
// spans fit together, without a word on the wire:
//
//   step        of each consumer       IdOf("step", consumer)
//   ├─ wait     of the trainer
//   └─ request  of each worker         IdOf("request", consumer, request_id)
//      ├─ receive
//      └─ rows  a group, at the worker IdOf("rows", consumer, request_id, group)
//         ├─ queue, send
//         └─ row  of one thread: open, read, decode, augment …
//
// A step of a smaller ratio is one of every larger ratio, too.
//
//   Tracer ── Step() ──► TracedStep ── Record() ──► SpanBuffer, of each
//   listener
//
// Nobody listens: Step costs one load and returns null, and nothing else is
// done. A buffer that is full drops spans and counts them, so that a listener
// that is slow, or does not come back, costs its memory and no more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/observe/stages.h"

namespace leat {

// 16 bytes, as two big-endian numbers.
struct TraceId {
  uint64_t high = 0, low = 0;
  friend bool operator==(const TraceId&, const TraceId&) = default;
};

// Uniform: a step is traced if this is less than the ratio × 2^64.
uint64_t StepHash(std::string_view plan_hash, uint64_t epoch, uint64_t step);
bool IsTraced(std::string_view plan_hash, uint64_t epoch, uint64_t step,
              double ratio);
TraceId TraceIdOf(std::string_view plan_hash, uint64_t epoch, uint64_t step);

// The values are the wire's (leat.v1.SpanKind). Up to kSend they are Stage's.
enum class SpanKind : uint8_t {
  kOther = 0,
  kList = 1,
  kOpen = 2,
  kRead = 3,
  kDecode = 4,
  kAugment = 5,
  kDevice = 6,
  kGroup = 7,
  kSend = 8,
  kReceive = 9,
  kTrain = 10,
  kStep = 11,
  kWait = 12,
  kRequest = 13,
  kRows = 14,
  kQueue = 15,
  kRow = 16,
  kReadAhead = 17,
};
inline constexpr size_t kSpanKinds = 18;
// "read_ahead".
std::string_view Name(SpanKind kind);

// Which step a span belongs to.
struct StepInfo {
  std::string job;
  std::string consumer;
  uint64_t epoch = 0, step = 0;
  TraceId trace;
};

struct Span {
  std::shared_ptr<const StepInfo> of;
  SpanKind kind = SpanKind::kOther;
  bool failed = false;
  uint32_t thread = 0;  // that it is of alone; 0: it overlaps others
  uint64_t id = 0;      // never 0
  uint64_t parent = 0;  // 0: none
  int64_t begin_ns = 0, end_ns = 0;  // since 1970
  uint64_t rows = 0;
  std::string worker;  // of a request: whom
};

// The spans that one listener has not taken. Thread-safe.
class SpanBuffer {
 public:
  explicit SpanBuffer(size_t limit) : limit_(limit) {}
  void Add(Span span);
  // Up to `most` spans, oldest first. Waits until there are `least`, or
  // `deadline`, or Wake.
  std::vector<Span> Take(size_t most, size_t least, MonotonicTime deadline);
  void Wake();  // ends the next wait, or the one under way
  uint64_t dropped() const;
  size_t size() const;

 private:
  const size_t limit_;
  mutable Mutex mu_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  size_t first_ ABSL_GUARDED_BY(mu_) = 0;  // spans before it were taken
  std::vector<Span> spans_ ABSL_GUARDED_BY(mu_);
  uint64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
};

// Records the spans of one step, as one consumer or one request has it. Immutable;
// thread-safe. It keeps the listeners' buffers, and a span in a buffer keeps
// the step's StepInfo only, so that neither keeps the other for ever.
class TracedStep {
 public:
  using Buffers = std::vector<std::shared_ptr<SpanBuffer>>;

  TracedStep(StepInfo info, int64_t offset_ns, Buffers buffers)
      : info_(std::make_shared<const StepInfo>(std::move(info))),
        offset_ns_(offset_ns),
        buffers_(std::move(buffers)) {}

  const StepInfo& info() const { return *info_; }
  int64_t Unix(MonotonicTime at) const {
    return at.time_since_epoch().count() + offset_ns_;
  }

  // Ids that both sides of a stream know. Never 0.
  uint64_t StepId() const;
  uint64_t RequestId(uint64_t request_id) const;
  uint64_t RowsId(uint64_t request_id, uint64_t group) const;
  // Returns an id that nobody else has.
  static uint64_t NewId();

  // `span.of` is set; `span.id` too, where it is 0.
  void Record(Span span) const;

 private:
  const std::shared_ptr<const StepInfo> info_;
  const int64_t offset_ns_;  // of the wall clock to the monotonic one
  const Buffers buffers_;
};

// Knows who listens, for a process or a part of one. Thread-safe.
class Tracer {
 public:
  static constexpr size_t kMaxListeners = 8;

  // `clock` outlives it.
  explicit Tracer(const Clock& clock, size_t max_listeners = kMaxListeners);

  // What a listener wants: steps of this plan (empty: of any), as this consumer
  // has them (empty: any), and their share.
  struct Wanted {
    std::string plan_hash;
    std::string consumer;
    double ratio = 1;
  };
  // nullptr: max_listeners listen already.
  std::shared_ptr<SpanBuffer> Listen(Wanted wanted, size_t limit);
  // No step that begins later is recorded there.
  void Leave(const std::shared_ptr<SpanBuffer>& buffer);

  // null: nobody wants to see it.
  std::shared_ptr<const TracedStep> Step(std::string_view plan_hash,
                                         std::string_view job,
                                         std::string_view consumer,
                                         uint64_t epoch, uint64_t step) const {
    if (!listened_.load(std::memory_order_relaxed)) return nullptr;
    return Find(plan_hash, job, consumer, epoch, step);
  }

 private:
  struct Listener {
    Wanted wanted;
    std::shared_ptr<SpanBuffer> buffer;
  };
  std::shared_ptr<const TracedStep> Find(std::string_view plan_hash,
                                         std::string_view job,
                                         std::string_view consumer,
                                         uint64_t epoch, uint64_t step) const;

  const size_t max_listeners_;
  const int64_t offset_ns_;
  std::atomic<bool> listened_{false};
  mutable Mutex mu_;
  std::vector<Listener> listeners_ ABSL_GUARDED_BY(mu_);
};

// The stages of the calling thread are spans of `step`, below one of `kind`
// that lasts as long as this lives. `step` null: nothing is done. Only on a
// thread that is enrolled (StageThread) are its stages seen.
class SpanScope final : public StageObserver {
 public:
  SpanScope(const std::shared_ptr<const TracedStep>& step, SpanKind kind,
            uint64_t parent, uint64_t rows, const Clock& clock) {
    if (step != nullptr) [[unlikely]]
      Begin(step, kind, parent, rows, clock);
  }
  ~SpanScope() {
    if (step_ != nullptr) [[unlikely]]
      End();
  }
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;

  void set_failed() { failed_ = true; }
  void OnStage(Stage stage, MonotonicTime begin, MonotonicTime end) override;

 private:
  void Begin(std::shared_ptr<const TracedStep> step, SpanKind kind,
             uint64_t parent, uint64_t rows, const Clock& clock);
  void End();

  std::shared_ptr<const TracedStep> step_;
  const Clock* clock_ = nullptr;
  StageObserver* before_ = nullptr;
  SpanKind kind_ = SpanKind::kOther;
  bool failed_ = false;
  uint64_t id_ = 0, parent_ = 0, rows_ = 0;
  MonotonicTime begin_{};
};

// The calling thread's number: 1, 2, … in the order in which they ask.
uint32_t ThreadNumber();

}  // namespace leat
