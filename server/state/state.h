// SPDX-License-Identifier: Apache-2.0
//
// State: what the coordinator must not forget: datasets, jobs, drained workers,
// access tokens, bounds of pools, muted findings.
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

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/cluster/pool_policy.h"
#include "core/cluster/roles.h"
#include "core/plan/index_blocks.h"
#include "core/plan/job.h"
#include "server/state/decoders.h"

namespace leat::server {

struct DatasetIndexed {
  DatasetInfo dataset;
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  SharedBlocks blocks = std::make_shared<const std::vector<IndexBlock>>();
  // As IndexHeader's.
  std::optional<IndexBlock> look{};
  std::vector<PassedOver> passed_over{};
};
// A dataset that is known is what its reader names now: it was listed again,
// and has the fingerprint that it had.
struct DatasetListedAgain {
  std::string id;
  // These take the place of those before.
  std::optional<IndexBlock> look;
  std::vector<PassedOver> passed_over{};
};
struct DatasetDeleted {
  std::string id;
};
struct JobCreated {
  JobSpec spec;  // normalised
  std::string dataset_id;
  BatchSchema schema;
  Digest plan_hash{};
  std::string not_on_gpu;  // as in PreparedJob; this and `schema` are not kept
                           // on disk: spec and dataset tell
  std::string created_by{};  // as in JobRecord
};
struct JobDeleted {
  std::string name;
};
struct WorkerDrained {
  std::string name;
};
struct WorkerUndrained {
  std::string name;
};
// The jobs were in use at the event's time. Names of no job mean nothing.
struct JobsUsed {
  std::vector<std::string> names;
};
// The plans' first workers decode so. Of plans that have no job, and of those
// whose decoders are settled, it means nothing.
struct DecodersSettled {
  std::vector<Digest> plans;
  Digest digest{};
  std::string libraries;
};
struct AccessCreated {
  AccessToken token;  // made at the event's time
};
struct AccessRevoked {
  std::string id;
};
// With max 0 the pool has no bounds any more.
struct PoolBounded {
  std::string pool;
  PoolBounds bounds;
};
// Findings of the code are no trouble until then; nullopt: until it is unmuted.
struct FindingMuted {
  std::string code;
  std::optional<WallTime> until;
  std::string severity;  // the worst that is muted: "warn", "error"

  bool Covers(std::string_view severity_found, WallTime now) const {
    return (!until || now < *until) &&
           (severity == "error" || severity_found != "error");
  }
};
struct FindingUnmuted {
  std::string code;
};
// An event that was stored and cannot be used.
struct SetAside {
  std::string record;  // leat.stored.v1.Event, as it was stored
  std::string what;    // "job cats", "an event of kind 12"
  std::string why;
  std::string job, dataset_id;  // of a job; otherwise empty
};

struct Event {
  WallTime at{};  // for people; a job's age is counted by it
  std::variant<DatasetIndexed, DatasetDeleted, JobCreated, JobDeleted,
               WorkerDrained, WorkerUndrained, JobsUsed, DecodersSettled,
               AccessCreated, AccessRevoked, PoolBounded, FindingMuted,
               FindingUnmuted, DatasetListedAgain, SetAside>
      kind;
  // The bytes of a JobCreated that was read back, as it was stored, with what
  // this version does not know of it.
  std::string record{};
};

struct DatasetRecord {
  std::shared_ptr<const DatasetInfo> info;  // shared with views
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  WallTime indexed_at{};
  SharedBlocks blocks{};  // of DatasetIndexed
  std::optional<IndexBlock> look{};
  std::vector<PassedOver> passed_over{};
  WallTime listed_at{};   // last
  std::string reader_id;  // of the reader, as in PreparedJob
};

struct JobRecord {
  std::shared_ptr<const JobInfo> info;  // shared with replies being written
  WallTime created_at{};
  WallTime last_used_at{};  // a day late, at most
  std::string not_on_gpu;   // as in PreparedJob
  std::string created_by;   // rpc::Caller's identity; empty: not known
};

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
    return datasets_;
  }
  const std::map<std::string, JobRecord>& jobs() const { return jobs_; }
  size_t NumJobsOf(std::string_view creator) const;
  const std::map<std::string, WallTime>& drained() const { return drained_; }
  const std::vector<Event>& set_aside() const { return set_aside_; }
  // The key is the token's id.
  const std::map<std::string, AccessToken>& access() const { return access_; }
  struct BoundedPool {
    PoolBounds bounds;
    WallTime at{};
  };
  // Those that have bounds, by name.
  const std::map<std::string, BoundedPool>& pools() const { return pools_; }
  // The key is the code. Mutes that have ended stay until the code is muted
  // again: there are as many as codes at most.
  const std::map<std::string, FindingMuted>& mutes() const { return mutes_; }
  // What the plan began with; nullopt: it has not.
  std::optional<Decoders> DecodersOf(const Digest& plan_hash) const;
  // Plans of jobs of the class that have not begun.
  const std::set<Digest>& Unsettled(DecoderClass decoder_class) const;
  // What the plans of all jobs began with.
  std::vector<DecoderGroup> DecoderGroups() const;

  // nullptr: none.
  const DatasetRecord* FindDataset(std::string_view id) const;
  // For people: the dataset's name, or the beginning of its id.
  std::string NameOf(const std::string& id) const;
  // What the reader named when it was listed last; nullptr: it was not.
  const DatasetRecord* CurrentListing(std::string_view reader_id) const;
  bool IsCurrent(const DatasetRecord& dataset) const;
  // The listing of the reader that has the fingerprint; nullptr: none.
  const DatasetRecord* FindListing(std::string_view reader_id,
                                   const Digest& fingerprint) const;
  const JobRecord* FindJob(std::string_view name) const;
  const JobRecord* FindJob(const Digest& plan_hash) const;
  // Names of all jobs of the plan: they differ in nothing else.
  std::set<std::string> JobsWith(const Digest& plan_hash) const;
  // Finds a dataset by id, by unique prefix of it (at least 4 digits), or by
  // name, which of several listings of one reader means the last. kNotFound;
  // kInvalidArgument: several match (lists them).
  absl::StatusOr<const DatasetRecord*> ResolveDataset(
      std::string_view key) const;
  // Those that were set aside included.
  std::vector<std::string> JobsOf(std::string_view dataset_id) const;
  bool HasJobs(std::string_view dataset_id) const;

 private:
  absl::Status Fits(const DatasetIndexed& indexed) const;
  absl::Status Fits(const DatasetListedAgain& again) const;
  absl::Status Fits(const DatasetDeleted& deleted) const;
  absl::Status Fits(const JobCreated& created) const;
  absl::Status Fits(const JobDeleted& deleted) const;
  absl::Status Fits(const WorkerDrained&) const { return absl::OkStatus(); }
  absl::Status Fits(const WorkerUndrained&) const { return absl::OkStatus(); }
  absl::Status Fits(const JobsUsed&) const { return absl::OkStatus(); }
  absl::Status Fits(const DecodersSettled&) const { return absl::OkStatus(); }
  absl::Status Fits(const AccessCreated& created) const;
  absl::Status Fits(const AccessRevoked& revoked) const;
  absl::Status Fits(const PoolBounded&) const { return absl::OkStatus(); }
  absl::Status Fits(const FindingMuted&) const { return absl::OkStatus(); }
  absl::Status Fits(const FindingUnmuted&) const { return absl::OkStatus(); }
  absl::Status Fits(const SetAside&) const { return absl::OkStatus(); }
  void On(const Event& event, const DatasetIndexed& indexed);
  void On(const Event& event, const DatasetListedAgain& again);
  void On(const Event& event, const DatasetDeleted& deleted);
  void On(const Event& event, const JobCreated& created);
  void On(const Event& event, const JobDeleted& deleted);
  void On(const Event& event, const WorkerDrained& drained);
  void On(const Event& event, const WorkerUndrained& undrained);
  void On(const Event& event, const JobsUsed& used);
  void On(const Event& event, const DecodersSettled& settled);
  void On(const Event& event, const AccessCreated& created);
  void On(const Event& event, const AccessRevoked& revoked);
  void On(const Event& event, const PoolBounded& bounded);
  void On(const Event& event, const FindingMuted& muted);
  void On(const Event& event, const FindingUnmuted& unmuted);
  void On(const Event& event, const SetAside& aside);
  // What the job's spec and its dataset tell.
  struct Told {
    BatchSchema schema;
    std::string not_on_gpu;
  };
  // The job's own, or by the dataset's types.
  absl::StatusOr<Told> ToldOf(const JobCreated& created,
                              const DatasetRecord& dataset) const;
  bool IsSetAside(std::string_view job) const;
  // The plan has jobs, or has them no more.
  void PlanCame(const Digest& plan_hash);
  void PlanWent(const Digest& plan_hash, DecoderClass decoder_class);

  std::map<std::string, DatasetRecord> datasets_;  // by id
  // Ids of a reader's listings, by its id; the last is what it names now.
  std::map<std::string, std::vector<std::string>, std::less<>> listings_;
  std::map<std::string, JobRecord> jobs_;  // by name
  // Counts the jobs that each caller has created, so that a bound is one look.
  std::map<std::string, size_t, std::less<>> by_creator_;
  std::map<std::string, WallTime> drained_;    // by name
  std::map<std::string, AccessToken> access_;  // by id
  std::map<std::string, BoundedPool> pools_;   // by name
  std::map<std::string, FindingMuted> mutes_;  // by code
  std::map<std::string, WallTime> muted_at_;   // by code
  std::vector<Event> set_aside_;               // in order
  // Names of jobs, by plan hash and by dataset.
  std::map<Digest, std::set<std::string>> by_hash_;
  std::map<std::string, std::set<std::string>, std::less<>> by_dataset_;
  // The key is the plan's hash; jobs that were set aside are here, too.
  struct Settled {
    Digest digest{};
    std::string libraries;
    WallTime at{};
  };
  std::map<Digest, Settled> settled_;
  // Plans that have jobs, and whose decoders are not settled yet.
  std::map<DecoderClass, std::set<Digest>> unsettled_;
  std::map<std::pair<DecoderClass, Digest>, DecoderGroup> groups_;
};

}  // namespace leat::server
