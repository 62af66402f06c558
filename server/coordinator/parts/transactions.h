// SPDX-License-Identifier: Apache-2.0
//
// Transactions makes durable changes, one after the other.
//
//   Enqueue ─► queued ── Next ─► Decide ─┬─ an error ─────────► Failed
//      │                                 ├─ nothing to append ─► Applied
//      │                                 └─ event ─► Append (no lock) ── End
//      └─ full, stopping ─► Failed                     ├─ error ─► Failed
//                                                      └─ OK ─► Apply, Applied
//
// Each transaction decides on the state as it is when its turn comes. A refused
// or failed transaction changes nothing.
//
// Thread-compatible; the owner locks.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/state/state.h"

namespace leat::server {

// A Transaction is one durable change. All its functions are called with the
// lock held.
class Transaction {
 public:
  virtual ~Transaction() = default;
  // Returns the event to append; nullopt: none, which is a success. Called
  // once.
  virtual absl::StatusOr<std::optional<Event>> Decide(
      DeferredActions* deferred) = 0;
  // The event is durable and in the state, or there was none to append.
  virtual void Applied(DeferredActions* deferred) = 0;
  // It was refused, or could not be appended. May be called without Decide.
  virtual void Failed(const absl::Status& why, DeferredActions* deferred) = 0;
};

// An AnsweredTransaction reports its result to its caller, after Changed.
class AnsweredTransaction : public Transaction {
 public:
  using Done = std::function<void(absl::Status)>;
  explicit AnsweredTransaction(Done done) : done_(std::move(done)) {}
  void Applied(DeferredActions* deferred) final {
    Changed(deferred);
    Answer(absl::OkStatus(), deferred);
  }
  void Failed(const absl::Status& why, DeferredActions* deferred) final {
    Refused(why, deferred);
    Answer(why, deferred);
  }

 protected:
  virtual void Changed(DeferredActions* deferred) = 0;  // as Applied
  virtual void Refused(const absl::Status& why, DeferredActions* deferred) {}

 private:
  void Answer(const absl::Status& status, DeferredActions* deferred) {
    deferred->Add([done = std::move(done_), status] { done(status); });
  }
  Done done_;
};

// A transaction whose decision and effects have nothing in common. `decide` is
// Decide, `changed` is Changed.
class PlainTransaction final : public AnsweredTransaction {
 public:
  using Decision = std::function<absl::StatusOr<std::optional<Event>>()>;
  PlainTransaction(Decision decide,
                   std::function<void(DeferredActions*)> changed, Done done)
      : AnsweredTransaction(std::move(done)),
        decide_(std::move(decide)),
        changed_(std::move(changed)) {}
  absl::StatusOr<std::optional<Event>> Decide(DeferredActions*) override {
    return decide_();
  }

 private:
  void Changed(DeferredActions* deferred) override { changed_(deferred); }

  const Decision decide_;
  const std::function<void(DeferredActions*)> changed_;
};

class Transactions {
 public:
  // `state` outlives it. At most `most` wait. `wake`: there is one to run.
  Transactions(State* state, size_t most, std::function<void()> wake)
      : state_(state), most_(most), wake_(std::move(wake)) {}

  void Enqueue(std::unique_ptr<Transaction> transaction,
               DeferredActions* deferred);
  // Begins the next transaction. Returns false if none waits, or one is being
  // appended. If `*event` is set, the caller appends it and calls End; nullopt:
  // the transaction has ended.
  bool Next(Now now, std::optional<Event>* event, DeferredActions* deferred);
  // `appended`: the store's result for the event.
  void End(const Event& event, const absl::Status& appended,
           DeferredActions* deferred);
  // Fails the waiting transactions, and later ones.
  void Stop(DeferredActions* deferred);

  // Returns the store's result for the last transaction; OK before the first
  // one.
  const absl::Status& last() const { return last_; }

 private:
  State* const state_;
  const size_t most_;
  const std::function<void()> wake_;
  std::deque<std::unique_ptr<Transaction>> waiting_;
  std::unique_ptr<Transaction> current_;  // being appended
  bool stopped_ = false;
  absl::Status last_;
};

}  // namespace leat::server
