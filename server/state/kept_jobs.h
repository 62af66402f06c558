// SPDX-License-Identifier: Apache-2.0
//
// KeptJobs: the jobs of a State, by name, by plan, by dataset, by creator.
//
// Invariant: an index names a job if and only if it is kept.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/abilities.h"
#include "server/state/events.h"
#include "server/state/kept_datasets.h"

namespace leat::server {

struct JobRecord {
  std::shared_ptr<const JobInfo> info;  // shared with replies being written
  WallTime created_at{};
  WallTime last_used_at{};  // a day late, at most
  std::string not_on_gpu;   // as in PreparedJob
  std::string created_by;   // rpc::Caller's identity; empty: unknown
  Abilities abilities{};    // that a worker needs
};

class KeptJobs {
 public:
  // `datasets`: the job's, in the order of its sources; an element is nullptr if
  // there is no such dataset. Errors: see State::Check.
  absl::Status Check(const JobCreated& created,
                     std::span<const DatasetRecord* const> datasets) const;
  // Returns whether the job is the first of its plan. REQUIRES: Check.
  bool Apply(WallTime at, const JobCreated& created,
             std::span<const DatasetRecord* const> datasets);
  // Returns the deleted job; nullptr: none had the name.
  std::shared_ptr<const JobInfo> Apply(WallTime at, const JobDeleted& deleted);
  void Apply(WallTime at, const JobsUsed& used);
  // Appends the shortest list of events that recreates these jobs.
  void AddEvents(std::vector<Event>* events) const;

  const std::map<std::string, JobRecord>& all() const { return jobs_; }
  // Return nullptr if there is none.
  const JobRecord* Find(std::string_view name) const;
  const JobRecord* Find(const Digest& plan_hash) const;
  // Return the names of jobs.
  std::set<std::string> With(const Digest& plan_hash) const;
  const std::set<std::string>& Of(std::string_view dataset_id) const;
  bool Uses(const Digest& plan_hash) const {
    return by_hash_.contains(plan_hash);
  }
  size_t NumOf(std::string_view creator) const;

 private:
  std::map<std::string, JobRecord> jobs_;  // by name
  // Counts the jobs that each caller created, so that a bound needs one lookup.
  std::map<std::string, size_t, std::less<>> by_creator_;
  // Names of jobs, by plan hash and by dataset.
  std::map<Digest, std::set<std::string>> by_hash_;
  std::map<std::string, std::set<std::string>, std::less<>> by_dataset_;
};

}  // namespace leat::server
