// SPDX-License-Identifier: Apache-2.0
//
// Feed connects an engine whose samples are in no storage (readers.external)
// with the thread that supplies them.
//
// The engine requests the samples of one step at a time, in order, and is
// notified when they have arrived; its window determines how many steps it has
// in flight. The supplying thread therefore works ahead of the row requests,
// and delays none.
//
// Thread-safe; one thread at a time may use the feeder's side. The engine may
// end before the feeder, and vice versa.
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

// Supplied: the supplied samples of one step, as they came. Thread-compatible.
class Supplied {
 public:
  using Fields = std::vector<SampleField>;

  // `samples`: in any order, possibly repeated.
  explicit Supplied(std::span<const uint64_t> samples);

  // Ascending, each once.
  std::span<const uint64_t> samples() const { return samples_; }
  uint64_t bytes() const { return bytes_; }
  bool complete() const { return missing_ == 0; }
  // REQUIRES: `sample` is one of samples(), and was set.
  const Fields& Of(uint64_t sample) const;
  static uint64_t BytesOf(const Fields& fields);
  // Returns false if it is not one of samples(), or was set before.
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
  // A request to supply samples of one step, ascending, each once.
  struct Want {
    uint64_t epoch = 0;
    std::vector<uint64_t> samples;
  };

  // `types`: of the reader's outputs; `name`: of the source, for errors.
  Feed(std::vector<ValueType> types, std::string name);

  // The engine's side. `on_ready` runs when the requested samples have arrived
  // or failed, on the feeder's thread, without a lock. Once this has returned,
  // the previous callback is not running.
  void SetOnReady(std::function<void()> on_ready);
  // Returns whether requested samples have not arrived yet.
  bool waiting() const;
  // Returns these samples if they are there; otherwise requests them, if no
  // request is open. nullopt: not yet. An error is final.
  std::optional<Result> Take(uint64_t epoch, std::span<const uint64_t> samples);
  // Ends all requests: Next returns nullopt. Idempotent.
  void Close();

  // The feeder's side. Returns the next request; nullopt: the end.
  // kDeadlineExceeded: there is none yet.
  absl::StatusOr<std::optional<Want>> Next(MonotonicTime deadline);
  // kInvalidArgument: not of the types, over kMaxSuppliedBytes (and the
  // iterator fails with it), or the sample is not requested. kCancelled: there
  // are no more requests.
  absl::Status Supply(uint64_t sample, Supplied::Fields fields);
  // Reports that the sample is unavailable: the iterator fails at the step that
  // needs it.
  void Fail(uint64_t sample, const absl::Status& status);
  // Reports that no more samples will come: open requests fail.
  void Abandon();
  // Supplies what `source` reads, until the end.
  void Serve(SampleSource& source);

 private:
  absl::Status Check(const Supplied::Fields& fields) const;
  // Returns false if it had failed before.
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
  // The requested samples, as far as they have arrived; null: no request.
  std::shared_ptr<Supplied> supplied_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
