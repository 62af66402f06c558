// SPDX-License-Identifier: Apache-2.0
//
// Feed: where an engine whose samples are in no storage (readers.external) and
// the thread that brings them meet.
//
// The engine wants the samples of one step at a time, in order, and is told
// when they are there; how many steps it has under way is its window's matter.
// So the one who brings works ahead of the requests, and holds up nobody.
//
// Thread-safe; the feeder's side is of one thread at a time. The engine may end
// before the feeder, and the other way round.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/batch/revocable.h"
#include "client/leat/client.h"
#include "core/clock.h"
#include "core/mutex.h"
#include "core/pipeline/operators.h"

namespace leat::client {

// Samples as they were supplied: all that a step needs. Thread-compatible.
class Supplied {
 public:
  using Fields = std::vector<SampleField>;

  // `samples`: in any order, also twice.
  explicit Supplied(std::span<const uint64_t> samples);

  // Ascending, each once.
  std::span<const uint64_t> samples() const { return samples_; }
  uint64_t bytes() const { return bytes_; }
  bool complete() const { return missing_ == 0; }
  // REQUIRES: one of samples(), and it was set.
  const Fields& Of(uint64_t sample) const;
  static uint64_t BytesOf(const Fields& fields);
  // False: it is none of samples(), or was set before.
  bool Set(uint64_t sample, Fields fields);

 private:
  size_t IndexOf(uint64_t sample) const;  // samples().size(): none

  std::vector<uint64_t> samples_;
  std::vector<Fields> fields_;
  std::vector<bool> there_;
  size_t missing_;
  uint64_t bytes_ = 0;
};

class Feed {
 public:
  using Result = absl::StatusOr<std::shared_ptr<const Supplied>>;
  // What is to be brought next: samples of one step, ascending, each once.
  struct Want {
    uint64_t epoch = 0;
    std::vector<uint64_t> samples;
  };

  // `types`: of the reader's outputs; `name`: of the source, for errors.
  Feed(std::vector<ValueType> types, std::string name);

  // The engine's side. `on_ready` runs when what was wanted has come or failed,
  // on the feeder's thread, without a lock. Once this has returned, the one
  // before is not running.
  void SetOnReady(std::function<void()> on_ready);
  // Whether something is wanted and has not come.
  bool waiting() const;
  // These samples, if they are there; if nothing is under way, they are wanted
  // from now on. nullopt: not yet. An error is final.
  std::optional<Result> Take(uint64_t epoch, std::span<const uint64_t> samples);
  // Nothing is wanted any more: Next returns. Idempotent.
  void Close();

  // The feeder's side. nullopt: the end. kDeadlineExceeded: nothing is wanted
  // yet.
  absl::StatusOr<std::optional<Want>> Next(MonotonicTime deadline);
  // kInvalidArgument: not of the types, over kMaxSuppliedBytes (and the
  // iterator fails by it), or nobody wants the sample. kCancelled: nothing is
  // wanted any more.
  absl::Status Supply(uint64_t sample, Supplied::Fields fields);
  // The sample cannot be had: the iterator fails, at the step that needs it.
  void Fail(uint64_t sample, const absl::Status& status);
  // Nobody brings anything any more: what is wanted fails.
  void Abandon();
  // Brings what `source` reads until the end.
  void Serve(SampleSource& source);

 private:
  absl::Status Check(const Supplied::Fields& fields) const;
  // False: it has failed before.
  bool FailLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool closed() const;

  const std::vector<ValueType> types_;
  const std::string name_;

  mutable Mutex mu_;
  CondVar wanted_;
  Revocable<> on_ready_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  bool told_ ABSL_GUARDED_BY(mu_) = false;  // Next has returned the want
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  uint64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  // What is wanted, as far as it has come; null: nothing.
  std::shared_ptr<Supplied> supplied_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
