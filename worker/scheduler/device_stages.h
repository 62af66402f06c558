// SPDX-License-Identifier: Apache-2.0
//
// DeviceStages: the stages in which devices compute rows together, from the
// moment a stage is opened until it finishes.
//
// A device pays off with many rows, and requests may have few: a stage takes
// the groups of as many streams of the job as wait when it is opened. Each
// request's rows stay a separate group, with its buffer or shared memory, its
// turn between the streams, its answer and its error: the stage only knows
// where each row goes.
//
//   streams  a: request 1 (2 rows)  b: request 1 (1 row)  a: request 2 (5 rows)
//   groups   a1: rows 0 1           b1: row 0             a2: rows 0 1 2 3 4
//   stage    0 1                    2                     3 4 5 6 7
//
// When no row is left to prepare, the stage finishes the rows that are still
// wanted:
//
//   decode threads        DeviceStages          GroupStage            sinks
//        │ BeginOpening ──────►│                     │                  │
//        │ ShareStage, RowWork::BeginGroup ─────────►│  (without lock)  │
//        │ Enter, EndOpening ─►│ stages              │                  │
//        │ Prepare(row) ────────────────────────────►│  one row each    │
//        │ Prepared ──────────►│ left − rows         │                  │
//        │                     │                     │                  │
//        │ (a request withdrawn, or a row failed)       │                  │
//        │ Leave ─────────────►│ unwanted, left − …  │                  │
//        │                     │                     │                  │
//        │◄─ left = 0: the stage, by Prepared, or by TakeToFinish where
//        │   its last rows were withdrawn            │                  │
//        │ FinishStage: Forget(unwanted row) ───────►│                  │
//        │              Finish(done) ───────────────►│                  │
//        │                     │      done(statuses) ┤  on any thread   │
//        │              the stage is destroyed, groups are delivered ──►│
//        │ Finished ──────────►│ in_work − 1         │                  │
//
// `done` may be called within Finish. The stage is not destroyed then:
// whichever ends last, `done` or Finish, destroys it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/clock.h"
#include "worker/compute/row_work.h"
#include "worker/scheduler/group.h"

namespace leat::worker {

using Groups = std::vector<std::shared_ptr<Group>>;

// Groups of one work, perhaps of several streams and requests, whose rows go to
// one kind of memory. The stage and its groups hold references to each other
// until it has finished, or all groups have left.
struct SharedStage {
  // Constant once open.
  std::shared_ptr<const RowWork> work;
  std::vector<uint64_t> offsets;   // of all groups, one after the other
  std::vector<RowTarget> targets;  // by row, if there are several groups
  GroupOutputs outputs;
  std::unique_ptr<GroupStage> stage;
  // Guarded by the scheduler's lock until no row is left.
  Groups groups;                 // those still wanted
  std::vector<size_t> unwanted;  // rows of groups that have left
  size_t left = 0;               // rows that are neither prepared nor unwanted
};

// Returns a stage for these groups, which is not begun. Takes no lock.
std::shared_ptr<SharedStage> ShareStage(const Groups& groups);

// Makes a stage finish its rows; then destroys it and calls `deliver` with its
// groups, on any thread. Takes no lock.
void FinishStage(std::shared_ptr<SharedStage> shared, const Clock& clock,
                 std::function<void(Groups)> deliver);

// Thread-compatible: the owner locks.
class DeviceStages {
 public:
  // One stage is opened at a time.
  void BeginOpening() { opening_ = true; }
  bool opening() const { return opening_; }
  // Adds the group to the stage.
  static void Enter(const std::shared_ptr<SharedStage>& shared,
                    const std::shared_ptr<Group>& group);
  // `shared` is nullptr if no stage was made.
  void EndOpening(const std::shared_ptr<SharedStage>& shared);

  // Counts `rows` rows of the group as prepared or failed; `leaves`: the group
  // is answered without its stage. Returns the stage if it is to be finished
  // now; it counts as in work then.
  std::shared_ptr<SharedStage> Prepared(Group& group, size_t rows, bool leaves);
  // The group, with `rows` rows that have not begun, is withdrawn. Returns true
  // if a stage waits to be finished.
  bool Leave(Group& group, size_t rows);
  // Returns a stage whose last rows were withdrawn, which counts as in work
  // from now on; nullptr if there is none.
  std::shared_ptr<SharedStage> TakeToFinish();
  void Finished() { --in_work_; }

  size_t in_work() const { return in_work_; }  // stages being finished
  // True if a stage is to be finished, or is being finished.
  bool owes() const { return in_work_ > 0 || !to_finish_.empty(); }
  // Separates all stages from their groups and returns the groups, which are to
  // be destroyed without the lock.
  Groups TakeGroups();

 private:
  bool opening_ = false;
  absl::flat_hash_set<std::shared_ptr<SharedStage>> stages_;  // with rows left
  std::deque<std::shared_ptr<SharedStage>> to_finish_;
  size_t in_work_ = 0;
};

}  // namespace leat::worker
