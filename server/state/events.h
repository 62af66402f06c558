// SPDX-License-Identifier: Apache-2.0
//
// Event: one durable change of what the coordinator must not forget.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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
// whose decoders are pinned, it means nothing.
struct DecodersPinned {
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
// Findings of the code do not count until then; nullopt: until it is unmuted.
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
               WorkerDrained, WorkerUndrained, JobsUsed, DecodersPinned,
               AccessCreated, AccessRevoked, PoolBounded, FindingMuted,
               FindingUnmuted, DatasetListedAgain, SetAside>
      kind;
  // The bytes of a JobCreated that was read back, as it was stored, with what
  // this version does not know of it.
  std::string record{};
};

}  // namespace leat::server
