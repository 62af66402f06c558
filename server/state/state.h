// SPDX-License-Identifier: Apache-2.0
//
// State: what the coordinator must not forget: datasets, jobs, drained workers,
// access tokens, bounds of pools, muted findings.
//
// Each kind of thing has a class of its own (kept_*.h), with the events that
// change it. State has what holds between them: a dataset with jobs cannot be
// deleted, a plan goes with its last job.
//
// Changed only by Apply(event), so that a replay of the same events gives the
// same state: recovery, simulation and tests share one path.
//
// An event that this version cannot use is set aside: one of a kind that a
// newer version wrote, or a job that today's checks refuse. It is kept as it
// was stored and goes into Events() unchanged, so that the version that wrote
// it finds it again. It is no damage.
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
  // Whether Apply would succeed. kAlreadyExists, kNotFound: the thing that the
  // event makes or needs. kFailedPrecondition: a dataset with jobs is deleted,
  // or a job is created beside one of its name that was set aside. kDataLoss: a
  // job's plan hash is not that of its spec and dataset.
  absl::Status Check(const Event& event) const;
  // The state is unchanged on error.
  absl::Status Apply(const Event& event);
  // Applies an event that was read back from a store. One that does not fit is
  // set aside: a chain of checksums says that it was written so.
  void Replay(const Event& event);

  // The shortest list of events that makes this state.
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
  // The key is the token's id.
  const std::map<std::string, AccessToken>& access() const {
    return tokens_.all();
  }
  // Those that have bounds, by name.
  const std::map<std::string, KeptPools::Bounded>& pools() const {
    return pools_.all();
  }
  // The key is the code. Mutes that have ended stay until the code is muted
  // again: there are as many as codes at most.
  const std::map<std::string, FindingMuted>& mutes() const {
    return mutes_.all();
  }
  // What the plan began with; nullopt: it has not.
  std::optional<Decoders> DecodersOf(const Digest& plan_hash) const;
  // Plans of jobs of the class that have not begun.
  const std::set<Digest>& Unpinned(DecoderClass decoder_class) const {
    return plans_.Unpinned(decoder_class);
  }
  // What the plans of all jobs began with.
  std::vector<DecoderGroup> DecoderGroups() const { return plans_.Groups(); }

  // nullptr: none.
  const DatasetRecord* FindDataset(std::string_view id) const {
    return datasets_.Find(id);
  }
  // For people: the dataset's name, or the beginning of its id.
  std::string NameOf(const std::string& id) const;
  // What the reader named when it was listed last; nullptr: it was not.
  const DatasetRecord* CurrentListing(std::string_view reader_id) const {
    return datasets_.Current(reader_id);
  }
  bool IsCurrent(const DatasetRecord& dataset) const {
    return datasets_.IsCurrent(dataset);
  }
  // The listing of the reader that has the fingerprint; nullptr: none.
  const DatasetRecord* FindListing(std::string_view reader_id,
                                   const Digest& fingerprint) const {
    return datasets_.FindListing(reader_id, fingerprint);
  }
  const JobRecord* FindJob(std::string_view name) const {
    return jobs_.Find(name);
  }
  const JobRecord* FindJob(const Digest& plan_hash) const {
    return jobs_.Find(plan_hash);
  }
  // Names of all jobs of the plan: they differ in nothing else.
  std::set<std::string> JobsWith(const Digest& plan_hash) const {
    return jobs_.With(plan_hash);
  }
  // Finds a dataset by id, by unique prefix of it (at least 4 digits), or by
  // name, which of several listings of one reader means the last. kNotFound;
  // kInvalidArgument: several match (lists them).
  absl::StatusOr<const DatasetRecord*> ResolveDataset(
      std::string_view key) const {
    return datasets_.Resolve(key);
  }
  // Those that were set aside included.
  std::vector<std::string> JobsOf(std::string_view dataset_id) const;
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
