// SPDX-License-Identifier: Apache-2.0
//
// Hashes use SplitMix64's finalizer over words, one after another. Ids must be
// distinct, and StepHash uniform; neither needs to resist attacks.
#include "core/observe/tracing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

namespace leat {
namespace {

constexpr std::array<std::string_view, kSpanKinds> kSpanNames = {
    "other",  "list",    "open", "read",    "decode", "augment",
    "device", "group",   "send", "receive", "train",  "step",
    "wait",   "request", "rows", "queue",   "row",    "read_ahead"};

// The purpose of a hash, so that equal numbers give different ids.
enum SpanSalt : uint64_t {
  kSampledSalt = 0x6c65'6174'7331,
  kHighSalt = 0x6c65'6174'7332,
  kLowSalt = 0x6c65'6174'7333,
  kStepSalt = 0x6c65'6174'7334,
  kRequestSalt = 0x6c65'6174'7335,
  kRowsSalt = 0x6c65'6174'7336,
};

uint64_t Mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ x >> 31;
}

uint64_t Combined(uint64_t hash, uint64_t word) {
  return Mixed(hash ^ (word + 0x9e3779b97f4a7c15));
}

// Combines the text's words (little-endian, zero-padded), then its length.
uint64_t Combined(uint64_t hash, std::string_view text) {
  for (size_t at = 0; at < text.size(); at += 8) {
    uint64_t word = 0;
    for (size_t i = 0; i < std::min<size_t>(8, text.size() - at); ++i)
      word |= uint64_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
    hash = Combined(hash, word);
  }
  return Combined(hash, text.size());
}

uint64_t HashOfStep(SpanSalt salt, std::string_view plan_hash, uint64_t epoch,
                    uint64_t step) {
  return Combined(Combined(Combined(Mixed(salt), plan_hash), epoch), step);
}

uint64_t NotZero(uint64_t id) { return id == 0 ? 1 : id; }

// Returns the wall clock minus the monotonic clock.
int64_t OffsetOf(const Clock& clock) {
  const auto wall =
      std::chrono::duration_cast<Duration>(clock.WallNow().time_since_epoch());
  return (wall - clock.Now().time_since_epoch()).count();
}

}  // namespace

uint64_t StepHash(std::string_view plan_hash, uint64_t epoch, uint64_t step) {
  return HashOfStep(kSampledSalt, plan_hash, epoch, step);
}

bool IsTraced(std::string_view plan_hash, uint64_t epoch, uint64_t step,
              double ratio) {
  if (!(ratio > 0)) return false;
  const double limit = std::ldexp(ratio, 64);
  return limit >= 0x1p64 ||
         StepHash(plan_hash, epoch, step) < static_cast<uint64_t>(limit);
}

TraceId TraceIdOf(std::string_view plan_hash, uint64_t epoch, uint64_t step) {
  return {HashOfStep(kHighSalt, plan_hash, epoch, step),
          NotZero(HashOfStep(kLowSalt, plan_hash, epoch, step))};
}

std::string_view Name(SpanKind kind) {
  return kSpanNames.at(static_cast<size_t>(kind));
}

void SpanBuffer::Add(Span span) {
  MutexLock lock(&mu_);
  if (spans_.size() - first_ >= limit_) {
    ++dropped_;
    return;
  }
  if (first_ > 0 && spans_.size() == spans_.capacity()) {
    spans_.erase(spans_.begin(),
                 spans_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  spans_.push_back(std::move(span));
  changed_.NotifyOne();
}

std::vector<Span> SpanBuffer::Take(size_t most, size_t least,
                                   MonotonicTime deadline) {
  MutexLock lock(&mu_);
  while (!woken_ && spans_.size() - first_ < least)
    if (!changed_.WaitUntil(&mu_, deadline)) break;
  woken_ = false;
  const size_t count = std::min(most, spans_.size() - first_);
  const auto begin = spans_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  std::vector<Span> taken(std::make_move_iterator(begin),
                          std::make_move_iterator(end));
  first_ += count;
  if (first_ == spans_.size()) {
    spans_.clear();
    first_ = 0;
  }
  return taken;
}

void SpanBuffer::Wake() {
  MutexLock lock(&mu_);
  woken_ = true;
  changed_.NotifyAll();
}

uint64_t SpanBuffer::dropped() const {
  MutexLock lock(&mu_);
  return dropped_;
}

size_t SpanBuffer::size() const {
  MutexLock lock(&mu_);
  return spans_.size() - first_;
}

uint64_t TracedStep::StepId() const {
  return NotZero(
      Combined(Combined(Mixed(kStepSalt), info_->trace.low), info_->consumer));
}

uint64_t TracedStep::RequestId(uint64_t request_id) const {
  return NotZero(
      Combined(Combined(Combined(Mixed(kRequestSalt), info_->trace.low),
                        info_->consumer),
               request_id));
}

uint64_t TracedStep::RowsId(uint64_t request_id, uint64_t group) const {
  return NotZero(
      Combined(Combined(Mixed(kRowsSalt), RequestId(request_id)), group));
}

uint64_t TracedStep::NewId() {
  static std::atomic<uint64_t> next{0};
  // Processes that begin in the same nanosecond differ in the address.
  static const uint64_t seed = Combined(
      static_cast<uint64_t>(Clock::Real().WallNow().time_since_epoch().count()),
      static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&next)));
  return NotZero(Combined(seed, next.fetch_add(1, std::memory_order_relaxed)));
}

void TracedStep::Record(Span span) const {
  span.of = info_;
  if (span.id == 0) span.id = NewId();
  for (size_t i = 0; i + 1 < buffers_.size(); ++i) buffers_[i]->Add(span);
  buffers_.back()->Add(std::move(span));
}

std::shared_ptr<SpanBuffer> Tracer::Listen(Wanted wanted, size_t limit) {
  auto buffer = std::make_shared<SpanBuffer>(limit);
  MutexLock lock(&mu_);
  if (listeners_.size() >= max_listeners_) return nullptr;
  listeners_.push_back({std::move(wanted), buffer});
  listened_ = true;
  return buffer;
}

void Tracer::Leave(const std::shared_ptr<SpanBuffer>& buffer) {
  MutexLock lock(&mu_);
  std::erase_if(listeners_, [&](const Listener& listener) {
    return listener.buffer == buffer;
  });
  listened_ = !listeners_.empty();
}

std::shared_ptr<const TracedStep> Tracer::Find(std::string_view plan_hash,
                                               std::string_view job,
                                               std::string_view consumer,
                                               uint64_t epoch,
                                               uint64_t step) const {
  TracedStep::Buffers buffers;
  {
    MutexLock lock(&mu_);
    for (const Listener& each : listeners_)
      if ((each.wanted.plan_hash.empty() ||
           each.wanted.plan_hash == plan_hash) &&
          (each.wanted.consumer.empty() || each.wanted.consumer == consumer) &&
          IsTraced(plan_hash, epoch, step, each.wanted.ratio))
        buffers.push_back(each.buffer);
  }
  if (buffers.empty()) return nullptr;
  return std::make_shared<const TracedStep>(
      StepInfo{std::string(job), std::string(consumer), epoch, step,
               TraceIdOf(plan_hash, epoch, step)},
      OffsetOf(clock_), std::move(buffers));
}

void SpanScope::Begin(std::shared_ptr<const TracedStep> step, SpanKind kind,
                      uint64_t parent, uint64_t rows, const Clock& clock) {
  step_ = std::move(step);
  clock_ = &clock;
  kind_ = kind;
  id_ = TracedStep::NewId();
  parent_ = parent;
  rows_ = rows;
  begin_ = clock.Now();
  before_ = ExchangeStageObserver(this);
}

void SpanScope::End() {
  ExchangeStageObserver(before_);
  step_->Record({.of = nullptr,
                 .kind = kind_,
                 .failed = failed_,
                 .thread = ThreadNumber(),
                 .id = id_,
                 .parent = parent_,
                 .begin_ns = step_->Unix(begin_),
                 .end_ns = step_->Unix(clock_->Now()),
                 .rows = rows_});
}

void SpanScope::OnStage(Stage stage, MonotonicTime begin, MonotonicTime end) {
  step_->Record({.of = nullptr,
                 .kind = static_cast<SpanKind>(stage),
                 .thread = ThreadNumber(),
                 .id = 0,
                 .parent = id_,
                 .begin_ns = step_->Unix(begin),
                 .end_ns = step_->Unix(end)});
}

uint32_t ThreadNumber() {
  static std::atomic<uint32_t> last{0};
  thread_local const uint32_t number = ++last;
  return number;
}

}  // namespace leat
