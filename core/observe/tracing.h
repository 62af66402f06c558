// SPDX-License-Identifier: Apache-2.0
//
// Tracing records spans of the steps that a listener wants.
//
// The choice of traced steps, and the ids of their traces and of spans that
// other processes refer to, are functions of (plan hash, epoch, step) and of
// names that both sides know. So consumer and workers trace the same steps, and
// their spans fit together, without any field on the wire:
//
//   step        of each consumer      IdOf("step", consumer)
//   ├─ wait     of the trainer
//   └─ request  of each worker        IdOf("request", consumer, request_id)
//      ├─ receive
//      └─ rows  a group, at a worker  IdOf("rows", consumer, request_id, group)
//         ├─ queue, send
//         └─ row  of one thread: open, read, decode, augment …
//
// The steps of a smaller ratio are a subset of those of every larger ratio.
//
//   Tracer ── Step() ──► TracedStep ── Record() ──► SpanBuffer per listener
//
// Without a listener, Step costs one load and returns nullptr, and nothing else
// is done. A full buffer drops spans and counts them, so that a listener that
// is slow, or never reads, costs only its buffer's memory.
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

// Returns a uniform hash: a step is traced if it is less than the ratio × 2^64.
uint64_t StepHash(std::string_view plan_hash, uint64_t epoch, uint64_t step);
bool IsTraced(std::string_view plan_hash, uint64_t epoch, uint64_t step,
              double ratio);
TraceId TraceIdOf(std::string_view plan_hash, uint64_t epoch, uint64_t step);

// The values are those of leat.v1.SpanKind. Up to kSend they are also Stage's.
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
// Returns a name such as "read_ahead".
std::string_view Name(SpanKind kind);

// The step that a span belongs to.
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
  uint32_t thread = 0;  // the thread that it ran on; 0: it overlaps other spans
  uint64_t id = 0;      // never 0
  uint64_t parent = 0;  // 0: none
  int64_t begin_ns = 0, end_ns = 0;  // since 1970
  uint64_t rows = 0;
  std::string worker;  // for a request: the worker that it was sent to
};

// Holds the spans that one listener has not taken yet. Thread-safe.
class SpanBuffer {
 public:
  explicit SpanBuffer(size_t limit) : limit_(limit) {}
  void Add(Span span);
  // Returns up to `most` spans, oldest first. Waits until there are `least`, or
  // until `deadline`, or for Wake.
  std::vector<Span> Take(size_t most, size_t least, MonotonicTime deadline);
  void Wake();  // ends the current wait, or the next one
  uint64_t dropped() const;
  size_t size() const;

 private:
  const size_t limit_;
  mutable Mutex mu_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
  size_t first_ ABSL_GUARDED_BY(mu_) = 0;  // spans before this index were taken
  std::vector<Span> spans_ ABSL_GUARDED_BY(mu_);
  uint64_t dropped_ ABSL_GUARDED_BY(mu_) = 0;
};

// Records the spans of one step for one consumer or one request. Immutable;
// thread-safe. It owns the listeners' buffers, and a span in a buffer owns only
// the step's StepInfo, so that there is no reference cycle.
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

  // Return ids that both sides of a stream can compute. Never 0.
  uint64_t StepId() const;
  uint64_t RequestId(uint64_t request_id) const;
  uint64_t RowsId(uint64_t request_id, uint64_t group) const;
  // Returns an id that is unique among all processes.
  static uint64_t NewId();

  // Records `span`, after it has set `span.of` and, if it is 0, `span.id`.
  void Record(Span span) const;

 private:
  const std::shared_ptr<const StepInfo> info_;
  const int64_t offset_ns_;  // wall clock minus monotonic clock
  const Buffers buffers_;
};

// Keeps the listeners of a process or of a part of it. Thread-safe.
class Tracer {
 public:
  static constexpr size_t kMaxListeners = 8;

  // `clock` outlives it. It is read for each traced step, because a machine's
  // wall clock may be set while the process runs.
  explicit Tracer(const Clock& clock, size_t max_listeners = kMaxListeners)
      : clock_(clock), max_listeners_(max_listeners) {}

  // The steps that a listener wants: those of this plan (empty: any) and this
  // consumer (empty: any), and the fraction of them.
  struct Wanted {
    std::string plan_hash;
    std::string consumer;
    double ratio = 1;
  };
  // Returns nullptr if there are max_listeners already.
  std::shared_ptr<SpanBuffer> Listen(Wanted wanted, size_t limit);
  // Ends a listener: no step that begins later is recorded in its buffer.
  void Leave(const std::shared_ptr<SpanBuffer>& buffer);

  // Returns nullptr if no listener wants the step.
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

  const Clock& clock_;
  const size_t max_listeners_;
  std::atomic<bool> listened_{false};
  mutable Mutex mu_;
  std::vector<Listener> listeners_ ABSL_GUARDED_BY(mu_);
};

// Records the stages of the calling thread as spans of `step`, below a span of
// `kind` that has the lifetime of this object. Does nothing if `step` is
// nullptr. The thread's stages are recorded only if it is enrolled
// (StageThread).
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

// Returns the calling thread's number: 1, 2, … in the order of first calls.
uint32_t ThreadNumber();

}  // namespace leat
