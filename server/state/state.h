// SPDX-License-Identifier: Apache-2.0
//
// State: the coordinator's durable state: datasets, jobs, drained workers,
// access tokens, bounds of pools, muted findings.
//
// Each kind has a class of its own (kept_*.h), with the events that change it.
// State keeps the invariants between them: a dataset with jobs or arrangements
// cannot be deleted, and a plan is removed with its last job.
//
// Only Apply(event) changes the state, so that a replay of the same events
// gives the same state: recovery, simulation and tests share one path.
//
// An event that this version cannot use is set aside: one of a kind that a
// newer version wrote, or a job that today's checks reject. It is kept as it
// was stored and is part of Events() unchanged, so that the version that wrote
// it finds it again. It does not count as damage.
//
// Sans-I/O: no clock, no files, no locks. Thread-compatible; the owner locks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/state/decoders.h"
#include "server/state/events.h"
#include "server/state/kept_datasets.h"
#include "server/state/kept_jobs.h"
#include "server/state/kept_plans.h"
#include "server/state/kept_settings.h"

namespace leat::server {

class State {
 public:
  // Checks that Apply would succeed. kAlreadyExists, kNotFound: the entity that
  // the event creates or needs. kFailedPrecondition: a dataset with jobs is
  // deleted, or a job is created beside one of the same name that was set
  // aside. kDataLoss: a job's plan hash is not that of its spec and dataset.
  absl::Status Check(const Event& event) const;
  // The state is unchanged on error.
  absl::Status Apply(const Event& event);
  // Applies an event that was read back from a store. An event that does not
  // fit is set aside: the chain of checksums proves that it was written so.
  void Replay(const Event& event);

  // Returns the shortest list of events that recreates this state.
  std::vector<Event> Events() const;

  const std::map<std::string, DatasetRecord>& datasets() const {
    return datasets_.all();
  }
  const std::map<std::string, JobRecord>& jobs() const { return jobs_.all(); }
  size_t NumJobsOf(std::string_view creator) const {
    return jobs_.NumOf(creator);
  }
  const std::map<std::string, WallTime>& drained() const {
    return drained_.all();
  }
  const std::vector<Event>& set_aside() const { return set_aside_; }
  // Keyed by token ID.
  const std::map<std::string, AccessToken>& access() const {
    return tokens_.all();
  }
  // The pools that have bounds, by name.
  const std::map<std::string, KeptPools::Bounded>& pools() const {
    return pools_.all();
  }
  // Keyed by finding code. A mute that has ended stays until the code is muted
  // again, so there is at most one per code.
  const std::map<std::string, FindingMuted>& mutes() const {
    return mutes_.all();
  }
  // Returns the decoders that the plan began with; nullopt: it has not begun.
  std::optional<Decoders> DecodersOf(const Digest& plan_hash) const;
  // Returns the plans with jobs of the class that have not begun.
  const std::set<Digest>& Unpinned(DecoderClass decoder_class) const {
    return plans_.Unpinned(decoder_class);
  }
  // Returns the decoders that the plans of all jobs began with.
  std::vector<DecoderGroup> DecoderGroups() const { return plans_.Groups(); }

  // Returns nullptr if there is none.
  const DatasetRecord* FindDataset(std::string_view id) const {
    return datasets_.Find(id);
  }
  // Returns the dataset's name, or the beginning of its ID, for people.
  std::string NameOf(const std::string& id) const;
  // Returns the reader's current listing; nullptr: it was never listed.
  const DatasetRecord* CurrentListing(std::string_view reader_id) const {
    return datasets_.Current(reader_id);
  }
  bool IsCurrent(const DatasetRecord& dataset) const {
    return datasets_.IsCurrent(dataset);
  }
  // Returns the reader's listing with the fingerprint; nullptr: none.
  const DatasetRecord* FindListing(std::string_view reader_id,
                                   const Digest& fingerprint) const {
    return datasets_.FindListing(reader_id, fingerprint);
  }
  // Returns the datasets of a job's sources, in their order; an element is
  // nullptr if there is no such dataset.
  std::vector<const DatasetRecord*> DatasetsOf(const JobCreated& created) const;
  const JobRecord* FindJob(std::string_view name) const {
    return jobs_.Find(name);
  }
  const JobRecord* FindJob(const Digest& plan_hash) const {
    return jobs_.Find(plan_hash);
  }
  // Returns the names of all jobs of the plan, which differ in nothing else.
  std::set<std::string> JobsWith(const Digest& plan_hash) const {
    return jobs_.With(plan_hash);
  }
  // Finds a dataset by ID, by a unique prefix of the ID (at least 4 digits), or
  // by name. A name means the last of several listings of one reader.
  // kNotFound; kInvalidArgument: several match (lists them).
  absl::StatusOr<const DatasetRecord*> ResolveDataset(
      std::string_view key) const {
    return datasets_.Resolve(key);
  }
  // Returns the blocks that datasets and jobs name, with their sizes in bytes:
  // of indexes, of what listings saw of storage, and of long lists.
  std::map<Digest, uint64_t> BlocksInUse() const;
  // Includes jobs that were set aside, and those of the dataset's arrangements.
  std::vector<std::string> JobsOf(std::string_view dataset_id) const;
  // True if a job, or an arrangement, uses the dataset.
  bool HasJobs(std::string_view dataset_id) const;

 private:
  struct Checker;
  struct Applier;
  bool IsSetAside(std::string_view job) const;

  KeptDatasets datasets_;
  KeptJobs jobs_;
  KeptPlans plans_;
  KeptDrains drained_;
  KeptTokens tokens_;
  KeptPools pools_;
  KeptMutes mutes_;
  std::vector<Event> set_aside_;  // in order
};

}  // namespace leat::server
