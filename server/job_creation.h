// SPDX-License-Identifier: Apache-2.0
//
// JobCreation: one CreateJob as a command: what is wanted, who waits for the
// answer, and what the next step is. It decides on the state as it is; its
// owner does what it says.
//
//   Begin ──┬─ the name is taken ───────────────► answered: attached, or
//           │                                     kAlreadyExists
//           ├─ no worker has the decoder class ─► answered: kFailedPrecondition
//           ├─ the dataset is known ────────────► kWriting
//           └─ otherwise ───────────────────────► kListing
//   kListing ─┬─ the dataset was listed ────────► kWriting
//             ├─ it could not be ───────────────► answered: why
//             └─ the deadline ──────────────────► answered: Late
//   kWriting, when its turn to write has come:
//   Decide ─┬─ the name was taken meanwhile ────► answered, as by Begin
//           ├─ refused ─────────────────────────► answered: why
//           └─ an event ── appended, applied ───► answered: created
//
// Two calls for one new dataset: both are kListing, and the one listing ends
// for both. Both are kWriting then; the first to be decided makes the job, and
// the second finds the name taken and attaches.
//
// Thread-compatible; the owner locks. Reads no clock.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/coordinator_config.h"
#include "server/indexing.h"
#include "server/job_check.h"
#include "server/membership.h"
#include "server/state.h"
#include "server/types.h"

namespace leat::server {

// A JobCreator says who asks for a job.
struct JobCreator {
  std::string identity;  // rpc::Caller's
  bool bounded = false;  // by max_jobs_of_one
};

struct CreatedJob {
  std::shared_ptr<const JobInfo> info;
  bool attached = false;
};

class JobCreation {
 public:
  using Answer = absl::StatusOr<CreatedJob>;
  using Done = std::function<void(Answer)>;
  enum class Phase { kListing, kWriting };
  // At most one of the two; neither cannot be.
  struct Decision {
    std::optional<Event> event;    // is to be appended
    std::optional<Answer> answer;  // nothing is
  };

  JobCreation(PreparedJob job, JobCreator by, MonotonicTime deadline, Now now,
              Done done);

  // The first step. nullopt: `phase` says what is waited for.
  std::optional<Answer> Begin(const State& state, const Membership& membership);
  void StartWriting() { phase_ = Phase::kWriting; }
  Decision Decide(const State& state, const Membership& membership,
                  const CoordinatorConfig& config) const;
  // Returns the answer to a creation whose deadline has passed.
  absl::Status Late(const Indexing& indexing, const Membership& membership,
                    Now now) const;

  const PreparedJob& job() const { return *job_; }
  Phase phase() const { return phase_; }
  MonotonicTime deadline() const { return deadline_; }
  Done TakeDone() { return std::move(done_); }

 private:
  absl::StatusOr<Event> Make(const State& state, const Membership& membership,
                             const CoordinatorConfig& config) const;

  std::shared_ptr<const PreparedJob> job_;
  JobCreator by_;
  MonotonicTime deadline_, started_;
  Done done_;
  Phase phase_ = Phase::kListing;
};

}  // namespace leat::server
