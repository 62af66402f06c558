// SPDX-License-Identifier: Apache-2.0
//
// Event: one durable change of the coordinator's state.
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
  // As in IndexHeader.
  std::optional<IndexBlock> look{};
  std::vector<PassedOver> passed_over{};
  // The ID of the dataset that this one arranges; DatasetInfo::base follows
  // from it. Empty: none.
  std::string base_id{};
};
// The reader was listed again and again names the known dataset with this
// fingerprint, which becomes the current one.
struct DatasetListedAgain {
  std::string id;
  // These replace the dataset's previous values.
  std::optional<IndexBlock> look;
  std::vector<PassedOver> passed_over{};
};
struct DatasetDeleted {
  std::string id;
};
struct JobCreated {
  JobSpec spec;                          // normalised
  std::vector<std::string> dataset_ids;  // one per source
  BatchSchema schema;
  Digest plan_hash{};
  std::string not_on_gpu;  // as in PreparedJob; this and `schema` are not
                           // stored, because they follow from spec and datasets
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
// The jobs were in use at the event's time. Names without a job are ignored.
struct JobsUsed {
  std::vector<std::string> names;
};
// The plans' first workers decode as stated. Ignored for plans without a job,
// and for plans whose decoders are pinned already.
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
// With max 0 the pool's bounds are removed.
struct PoolBounded {
  std::string pool;
  PoolBounds bounds;
};
// Findings with this code are muted until then; nullopt: until unmuted.
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
// A stored event that this version cannot use.
struct SetAside {
  std::string record;  // leat.stored.v1.Event, as it was stored
  std::string what;    // "job cats", "an event of kind 12"
  std::string why;
  std::string job;                       // for a job; otherwise empty
  std::vector<std::string> dataset_ids;  // of a job
};

struct Event {
  WallTime at{};  // for people; also counts a job's age
  std::variant<DatasetIndexed, DatasetDeleted, JobCreated, JobDeleted,
               WorkerDrained, WorkerUndrained, JobsUsed, DecodersPinned,
               AccessCreated, AccessRevoked, PoolBounded, FindingMuted,
               FindingUnmuted, DatasetListedAgain, SetAside>
      kind;
  // The stored bytes of a JobCreated that was read back, including fields that
  // this version does not know.
  std::string record{};
};

}  // namespace leat::server
