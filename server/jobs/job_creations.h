// SPDX-License-Identifier: Apache-2.0
//
// JobCreations: the CreateJob calls that are not answered yet, by number.
//
// Calls that wait for a listing are also sorted by deadline. A call whose job
// is being written has no deadline any more: its answer comes with the write,
// which is short, and a change that may be on the disk must not be answered by
// "too late". A call that waits is told what it waits for, after kFirstTold and
// then every kToldEvery.
//
//   at 0 s: Add(1, until 10 s), Add(2)       NextDeadline() = 2 s
//   at 2 s: ToTell() = 1, then 2             NextDeadline() = 10 s
//   StartWriting(1)                          NextDeadline() = 12 s
//   Take(1): answered                        size() = 1
//
// Thread-compatible; the owner locks. Reads no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "server/jobs/job_creation.h"

namespace leat::server {

class JobCreations {
 public:
  JobCreation* Add(uint64_t id, JobCreation creation);
  // Returns nullptr if it was answered or cancelled.
  JobCreation* Find(uint64_t id);
  // Returns false where Find returns nullptr.
  bool StartWriting(uint64_t id);
  // Removes it, to be answered or dropped. nullopt: as Find.
  std::optional<JobCreation> Take(uint64_t id);

  // Returns the calls that wait for datasets to be listed, oldest first.
  std::vector<uint64_t> Waiting() const;
  // Returns the calls that wait for the dataset to be listed.
  std::vector<uint64_t> WaitingFor(std::string_view reader_id) const;
  // Returns whether any call needs the dataset.
  bool Wants(std::string_view reader_id) const;
  // Returns a call whose deadline has passed; nullopt: none.
  std::optional<uint64_t> Late(MonotonicTime now) const;
  // Returns a call that must be told now what it waits for, and counts it as
  // told; nullopt: there is none.
  std::optional<uint64_t> ToTell(MonotonicTime now);
  MonotonicTime NextDeadline() const;  // of Late or ToTell; max(): none
  // Returns any call; nullopt: none.
  std::optional<uint64_t> First() const;
  size_t size() const { return creations_.size(); }

 private:
  std::map<uint64_t, JobCreation> creations_;
  // Holds those that are not in Phase::kWriting.
  std::set<std::pair<MonotonicTime, uint64_t>> deadlines_;
  // Holds the next time for each of these that wants to be told.
  std::set<std::pair<MonotonicTime, uint64_t>> tells_;
};

}  // namespace leat::server
