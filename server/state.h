// SPDX-License-Identifier: Apache-2.0
//
// State: what the coordinator must not forget: datasets, jobs, drained workers.
//
// Changed only by Apply(event), so that a replay of the same events gives the
// same state: recovery, simulation and tests share one path. Sans-I/O: no
// clock, no files, no locks. Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/job.h"

namespace leat::server {

struct DatasetIndexed {
  DatasetInfo dataset;
  uint64_t index_bytes = 0;
  Digest index_sha256{};
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

struct Event {
  WallTime at{};  // for people
  std::variant<DatasetIndexed, DatasetDeleted, JobCreated, JobDeleted,
               WorkerDrained, WorkerUndrained>
      kind;
};

struct DatasetRecord {
  DatasetInfo info;
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  WallTime indexed_at{};
};

struct JobRecord {
  std::shared_ptr<const JobInfo> info;  // shared with replies being written
  WallTime created_at{};
  std::string not_on_gpu;  // as in PreparedJob
};

class State {
 public:
  // The state is unchanged on error. kAlreadyExists, kNotFound: the thing that
  // the event makes or needs. kFailedPrecondition: a dataset with jobs is
  // deleted. kDataLoss: a job's plan hash is not that of its spec and dataset.
  absl::Status Apply(const Event& event);

  // The shortest list of events that makes this state.
  std::vector<Event> Events() const;

  const std::map<std::string, DatasetRecord>& datasets() const {
    return datasets_;
  }
  const std::map<std::string, JobRecord>& jobs() const { return jobs_; }
  const std::map<std::string, WallTime>& drained() const { return drained_; }

  // nullptr: none.
  const DatasetRecord* FindDataset(std::string_view id) const;
  const JobRecord* FindJob(std::string_view name) const;
  const JobRecord* FindJob(const Digest& plan_hash) const;
  // By id, by unique prefix of it (at least 4 digits), or by name. kNotFound;
  // kInvalidArgument: several match (lists them).
  absl::StatusOr<const DatasetRecord*> ResolveDataset(
      std::string_view key) const;
  std::vector<std::string> JobsOf(std::string_view dataset_id) const;

 private:
  absl::Status On(const Event& event, const DatasetIndexed& indexed);
  absl::Status On(const Event& event, const DatasetDeleted& deleted);
  absl::Status On(const Event& event, const JobCreated& created);
  absl::Status On(const Event& event, const JobDeleted& deleted);
  absl::Status On(const Event& event, const WorkerDrained& drained);
  absl::Status On(const Event& event, const WorkerUndrained& undrained);

  std::map<std::string, DatasetRecord> datasets_;  // by id
  std::map<std::string, JobRecord> jobs_;          // by name
  std::map<std::string, WallTime> drained_;        // by name
};

}  // namespace leat::server
