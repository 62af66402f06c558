// SPDX-License-Identifier: Apache-2.0
//
// JobCreation: one CreateJob as a command: its request, its caller and its next
// step. It decides on the state as it is; its owner executes the decision.
//
//   Begin ──┬─ the name is taken ───────────────► answered: attached, or
//           │                                     kAlreadyExists; or, to say
//           │                                     what has changed, kAttaching
//           ├─ no worker has the decoder class ─► answered: kFailedPrecondition
//           ├─ the dataset is known, and need
//           │  not be looked at ────────────────► kWriting
//           └─ otherwise ───────────────────────► kListing
//   kListing ─┬─ the dataset was listed, or a
//             │  look found it as it was ───────► kWriting
//             ├─ it could not be ───────────────► answered: why
//             └─ the deadline ──────────────────► answered: Late
//   kAttaching ── looked at, or not ────────────► answered: attached
//   kWriting, when its turn to write has come:
//   Decide ─┬─ the name was taken meanwhile ────► answered, as by Begin
//           ├─ refused ─────────────────────────► answered: why
//           └─ an event ── appended, applied ───► answered: created
//
// A mixture waits for the datasets of all its sources, which several workers
// list at once.
//
// Two calls for one new dataset: both are kListing, and the same listing ends
// both waits. Both are kWriting then; the first to be decided creates the job,
// and the second finds the name taken and attaches.
//
// Thread-compatible; the owner locks. Reads no clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/jobs/indexing.h"
#include "server/membership/membership.h"
#include "server/state/job_check.h"
#include "server/state/state.h"
#include "server/state/types.h"

namespace leat::server {

// JobLimits bounds how many jobs may exist; a creation beyond them is refused.
struct JobLimits {
  size_t all = 10'000;
  size_t of_one = 5'000;  // per caller of role trainer
};

// A JobCreator identifies the caller that creates a job.
struct JobCreator {
  std::string identity;  // of the rpc::Caller
  bool bounded = false;  // by JobLimits::of_one
};

struct CreatedJob {
  std::shared_ptr<const JobInfo> info;
  bool attached = false;
  // As in v1::CreateJobResponse.
  std::string dataset_changed{};
  uint64_t consumers = 0;
};

// How long CreateJob of an existing job waits to report whether its dataset has
// changed.
inline constexpr Duration kAttachPatience = std::chrono::seconds(3);

// A call that waits is told what it waits for after kFirstTold, and then every
// kToldEvery.
inline constexpr Duration kFirstTold = std::chrono::seconds(2);
inline constexpr Duration kToldEvery = std::chrono::seconds(10);

// Returns the error with which the worker's calls to storage for this reader
// (CanonicalText) fail while they are retried; empty: it has reported none, or
// there is no such worker.
std::string StorageWaitOf(const Membership& membership,
                          const std::string& worker,
                          const std::string& reader_text);

class JobCreation {
 public:
  using Answer = absl::StatusOr<CreatedJob>;
  using Done = std::function<void(Answer)>;
  using Tell = std::function<void(const std::string& waits_for)>;
  enum class Phase { kListing, kAttaching, kWriting };
  // Exactly one of the two is set.
  struct Decision {
    std::optional<Event> event;    // to be appended
    std::optional<Answer> answer;  // nothing is to be appended
  };

  JobCreation(PreparedJob job, JobCreator by, Relist relist,
              MonotonicTime deadline, Now now, Done done, Tell tell = {});

  // Takes the first step. nullopt: `phase` says what it waits for.
  std::optional<Answer> Begin(const State& state, const Membership& membership);
  void StartWriting() { phase_ = Phase::kWriting; }
  Decision Decide(const State& state, const Membership& membership,
                  const JobLimits& limits) const;
  // The sources whose datasets it waits for, by the ID of what is to be listed:
  // the reader's dataset, or an arrangement of it. Arrangements come last, when
  // all that they arrange is listed.
  const std::map<std::string, const PreparedSource*>& waits_for() const {
    return waits_for_;
  }
  // Returns what is to be listed under the ID. kAborted: what it arranges is
  // gone.
  absl::StatusOr<Indexing::Over> OverOf(const State& state,
                                        std::string_view id) const;
  // Returns what it wants of a dataset. REQUIRES: kListing or kAttaching.
  Indexing::Want Wanted(const State& state, std::string_view reader_id) const;
  // Returns whether the known listing of a dataset is good enough, since it is
  // not to be looked at.
  bool TakesAsItIs(const State& state, std::string_view reader_id) const;
  // The dataset was listed or looked at. Returns whether all have been.
  bool Listed(const State& state, std::string_view reader_id);
  // Returns whether the result of `request` answers it. `id`: its number.
  bool IsCoveredBy(const Indexing::Request& request, uint64_t id) const;
  // Returns the error of a dataset's listing. In a mixture it names the source.
  absl::Status OfSource(std::string_view reader_id, absl::Status status) const;
  // Returns the answer to a creation whose deadline has passed. In a mixture it
  // names a source that is still listed.
  Answer Late(const State& state, const Indexing& indexing,
              const Membership& membership, Now now) const;
  // Returns what it waits for, for people: which worker lists what, and how
  // much it has found.
  std::string WaitingText(const Indexing& indexing,
                          const Membership& membership, Now now) const;
  // Attaches to the existing job. `changed`: CreatedJob::dataset_changed.
  Answer AttachedTo(const State& state, std::string changed) const;

  const PreparedJob& job() const { return *job_; }
  Phase phase() const { return phase_; }
  MonotonicTime deadline() const { return deadline_; }
  Done TakeDone() { return std::move(done_); }
  const Tell& tell() const { return tell_; }  // may be null
  MonotonicTime next_told() const { return next_told_; }
  void Told(MonotonicTime now) { next_told_ = now + kToldEvery; }

 private:
  // A dataset that it waits for: one that is listed now, if any is.
  struct Waited {
    std::string id;
    const PreparedSource* source = nullptr;
    const Indexing::Request* request = nullptr;  // null: no worker has it
  };
  Waited FirstWaited(const Indexing& indexing) const;
  // Waits for the arrangements that are not known.
  void WaitForArrangements(const State& state);
  absl::StatusOr<Event> Make(const State& state, const Membership& membership,
                             const JobLimits& limits) const;

  std::shared_ptr<const PreparedJob> job_;
  JobCreator by_;
  Relist relist_;
  MonotonicTime deadline_, started_;
  Done done_;
  Tell tell_;
  MonotonicTime next_told_;
  Phase phase_ = Phase::kListing;
  bool arranges_ = false;  // the datasets below are listed
  std::map<std::string, const PreparedSource*> waits_for_;  // into job_
};

}  // namespace leat::server
