// SPDX-License-Identifier: Apache-2.0
//
// What goes into the coordinator and comes out of it. Fields have the meaning
// of those of the same name in proto/leat/v1; views are for people and programs
// that ask how things stand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/cluster/pool_policy.h"
#include "core/cluster/roles.h"
#include "core/hash.h"
#include "core/observe/bottleneck.h"
#include "core/pipeline/graph.h"
#include "core/plan/index_blocks.h"
#include "core/plan/job.h"
#include "core/plan/passed_over.h"
#include "leat/v1/types.pb.h"

namespace leat::server {

class KeptShares;

// The moment of a decision: its monotonic part decides, its wall part is shown.
struct Now {
  MonotonicTime mono;
  WallTime wall;
  static Now Of(const Clock& clock) { return {clock.Now(), clock.WallNow()}; }
};

// A worker's or consumer's stream; unique for the life of the process; never 0.
using SessionId = uint64_t;

// A worker's report. The coordinator decides by the number alone. The
// statistics are shown to people as they came, with fields that this version
// may not know.
struct WorkerReport {
  double capacity_rows_per_s = 0;                // 0: not yet measured
  std::shared_ptr<const v1::WorkerStats> stats;  // nullptr: none yet
  // nullopt: it has no certificate, or is of a release that does not tell.
  std::optional<WallTime> certificate_expiry = std::nullopt;
};

struct UnreachedWorker {
  std::string worker, why;
  bool operator==(const UnreachedWorker&) const = default;
};

// What a consumer reports: as WorkerReport.
struct ConsumerReport {
  uint64_t epoch = 0, step = 0, steps_per_epoch = 0;
  double rows_per_s = 0;
  double stall_fraction = 0;
  std::shared_ptr<const v1::ConsumerStats> stats;  // nullptr: none yet
  // nullopt: as it said before.
  std::optional<std::vector<UnreachedWorker>> unreached{};
};

// GPUs of one worker that are remembered.
inline constexpr int kMaxDevices = 64;
// Storage failures of one worker that are remembered.
inline constexpr int kMaxFailures = 64;

// Storage that workers cannot read, by their own fault. A failure without
// fingerprints concerns all datasets.
using StorageFailures = std::vector<v1::StorageFailure>;

struct JobBadSamples {
  std::string job;
  std::vector<v1::BadSample> samples;
};

// The bad samples of a plan whose jobs have a budget, each once.
struct CountedBadSamples {
  Digest plan_hash{};
  std::vector<uint64_t> samples;
};

// What a heartbeat says of samples that are no fault of the worker.
struct BadSampleReport {
  std::vector<JobBadSamples> jobs;
  std::vector<CountedBadSamples> plans;
};

// v1::Decoders.
struct Decoders {
  DecoderClass decoder_class = DecoderClass::kExact;
  Digest digest{};
  std::string libraries;
};

struct WorkerRegistration {
  std::string name;
  std::string address;
  std::string version;
  uint32_t threads = 0;
  std::vector<DecoderClass> decoder_classes;
  std::string host;
  uint64_t pid = 0;
  uint64_t highest_sequence_seen = 0;
  std::string identity;  // rpc::Caller's
  std::vector<v1::Device> devices;
  std::vector<Decoders> decoders;  // each of another class that it has
  std::string pool = std::string(kDefaultPool);
  std::string public_key;  // v1::WorkerRef's; empty: it proves nothing
  // As in v1::WorkerInfo.
  std::string not_confined, insecure_listener;

  // nullptr: it does not tell them.
  const Decoders* DecodersOf(DecoderClass decoder_class) const {
    for (const Decoders& own : decoders)
      if (own.decoder_class == decoder_class) return &own;
    return nullptr;
  }
  // Class nvjpeg by JPEG engines, on each of its GPUs. Without them
  // images are decoded one after the other.
  bool HasEngines() const {
    return Has(DecoderClass::kNvjpeg) && !devices.empty() &&
           std::all_of(
               devices.begin(), devices.end(),
               [](const v1::Device& gpu) { return gpu.jpeg_engines() > 0; });
  }
  bool Has(DecoderClass decoder_class) const {
    return std::find(decoder_classes.begin(), decoder_classes.end(),
                     decoder_class) != decoder_classes.end();
  }
};

// The values are the wire's: v1::Relist.
enum class Relist : uint8_t { kAuto = 1, kAlways = 2, kNever = 3 };

// The values are the wire's.
enum class WorkerState : uint8_t { kReady = 1, kDraining = 2, kLost = 3 };

struct WorkerRef {
  std::string name;
  std::string address;
  std::string public_key{};  // as in v1::WorkerRef
  friend bool operator==(const WorkerRef&, const WorkerRef&) = default;
};

// Immutable once published; shared by all streams that send it.
struct Assignment {
  std::string dataset_id;
  uint64_t instance = 0;
  uint64_t version = 0;
  std::vector<WorkerRef> workers;  // sorted by name
  uint32_t owners_per_shard = 0;
  std::string owners;  // little-endian uint16
  // The shards that worker i owns first are shards[starts[i] .. starts[i + 1]).
  std::vector<uint32_t> starts, shards;
  // The places of `owners` that worker i has are
  // places[place_starts[i] .. place_starts[i + 1]).
  std::vector<uint32_t> place_starts, places;
  // A v1.ConsumerSessionResponse with this assignment, serialised: encoded once
  // and borrowed by every stream.
  std::string encoded;

  uint32_t num_shards() const {
    return owners_per_shard == 0
               ? 0
               : static_cast<uint32_t>(owners.size() / 2 / owners_per_shard);
  }
  // The shards that `worker` owns first; none if it is not in the table.
  std::span<const uint32_t> OwnedBy(std::string_view worker) const;
  // The places that it has in `owners`.
  std::span<const uint32_t> PlacesOf(std::string_view worker) const;
  // The first one of the other owners of a place's shard; null: there is none.
  const WorkerRef* PeerAt(uint32_t place) const;
  // The other owners of the shards that `worker` owns first.
  void AddOtherOwners(std::string_view worker,
                      std::set<std::string>* names) const;
};

// The shards of one dataset that `worker` owns first in any of `tables`.
struct OwnedShards {
  // By the index of the peer in its table.
  using ShardsByPeer = std::map<uint16_t, std::vector<uint32_t>>;

  std::string dataset_id;
  std::string worker;
  uint32_t num_shards = 0;
  std::vector<std::shared_ptr<const Assignment>> tables;
  std::shared_ptr<const KeptShares> kept{};  // of the peers

  // Bit i % 8 of byte i / 8 is shard i.
  std::string Bits() const;
  // As v1::OwnedShards has them, of the first table that `worker` is in.
  // `table`: set to that one; null: it is in none.
  ShardsByPeer Peers(const Assignment** table) const;
};

struct Welcome {
  Duration heartbeat_interval{};
  uint64_t sequence = 0;
  std::shared_ptr<const AccessTokens> access_tokens;
};
struct IndexDirective {
  std::string dataset_id;
  uint64_t request_id = 0;
  Node reader;
  uint64_t max_index_bytes = 0;
  uint64_t index_block_bytes = 0;
  // As in v1::IndexDataset.
  std::optional<IndexBlock> look{};
  bool look_only = false;
};
struct LogLevelDirective {
  std::string level;
};
using WorkerMessage =
    std::variant<Welcome, IndexDirective, LogLevelDirective, OwnedShards,
                 std::shared_ptr<const AccessTokens>>;

struct ConsumerOpening {
  Digest plan_hash{};
  std::string host;
  uint64_t pid = 0;
  std::string consumer;
  std::string job;  // as in v1.OpenConsumer
};

struct IndexHeader {
  std::string dataset_id;
  uint64_t request_id = 0;
  Digest fingerprint{};
  Digest content{};  // zero: of a reader without storage
  ShardTable shards;
  uint64_t bytes = 0;
  std::vector<std::string> classes;
  std::vector<ValueType> types;
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  std::string name;
  std::vector<IndexBlock> blocks;
  // What the listing saw of storage; nullopt: there is nothing to look at.
  std::optional<IndexBlock> look;
  std::vector<std::string> changes;  // that a look found, for people
  std::vector<PassedOver> passed_over;
};

// v1::IndexLooked.
struct DatasetLooked {
  std::string reader_id;
  uint64_t request_id = 0;
  uint64_t entries = 0, total = 0;
  std::vector<std::string> changes;
  bool lists = false;
};

// SharedBlocks are the blocks of an index, shared with views; never null.
using SharedBlocks = std::shared_ptr<const std::vector<IndexBlock>>;

// An index is the bytes of these blocks, one after the other.
struct IndexBlocks {
  SharedBlocks blocks;
  Digest identity{};
};

struct Finding {
  std::string code;
  std::string severity;  // "warn", "error"
  std::string summary;
  std::string remedy;
  std::vector<std::string> subjects{};  // as in v1::Finding
  bool muted = false;
  std::optional<WallTime> muted_until{};  // nullopt: until it is unmuted
};

// Part of a list in order: what follows `after`, at most `limit` entries.
struct Page {
  std::string after;
  size_t limit = std::numeric_limits<size_t>::max();
};

struct WorkerView {
  std::shared_ptr<const WorkerRegistration> registration;
  WorkerState state = WorkerState::kReady;
  double weight = 0;
  uint64_t shards_owned = 0;
  WorkerReport report;
  WallTime joined_at, last_heartbeat_at;
  std::string decoders_differ;  // as in v1::WorkerInfo
  StorageFailures failures;
};

struct JobView {
  std::shared_ptr<const JobInfo> info;
  WallTime created_at, last_used_at;
  std::string not_on_gpu;            // as in PreparedJob
  std::optional<Decoders> decoders;  // nullopt: not pinned
  uint64_t consumers = 0;
  uint64_t epoch = 0, step = 0, steps_per_epoch = 0;
  double rows_per_s = 0;
  double stall_fraction = 0;
  uint64_t bad_samples_total = 0;
  std::vector<v1::BadSample> bad_samples;
  // These are set for a job with a budget of bad samples.
  uint64_t bad_samples_different = 0, bad_samples_allowed = 0;
  std::string failure;  // why it is given up; empty: it is not
  // As in v1::JobSummary.
  std::string limited_by;
  std::optional<Duration> limited_by_seen;
  double shared_fraction = 0;
  std::string created_by;  // as in v1::JobSummary
};

// Jobs that have consumers or met bad samples: the first by name, and how many
// there are, of how many jobs. steps_per_epoch is as consumers told it, or 0.
struct UsedJobs {
  std::vector<JobView> first;
  size_t total = 0, of = 0;
};

struct DatasetView {
  std::string key;  // for Page::after
  std::shared_ptr<const DatasetInfo> info;
  WallTime indexed_at;
  // As in v1::DatasetSummary.
  std::optional<WallTime> looked_at{};
  uint64_t looked_entries = 0, looked_total = 0;
  std::vector<std::string> changes{};
  std::string state;  // "ready", "replaced", "indexing", "failed"
  std::string failure;
  std::vector<std::string> jobs;
  uint64_t index_bytes = 0;
  std::vector<PassedOver> passed_over{};
};

struct ShardView {
  ShardTable::Range range;
  std::vector<std::string> owners;
  std::optional<double> kept_share{};  // as in v1::ShardInfo
};

struct ConsumerView {
  std::string key;  // for Page::after
  ConsumerOpening opening;
  std::string job;
  ConsumerReport report;
  WallTime opened_at, last_report_at;
};

struct PoolView {
  std::string name;
  PoolBounds bounds;
  PoolTarget target;  // of a pool without bounds: the workers that serve
  uint64_t version = 0;
  uint64_t workers = 0, draining = 0;
};

// What limits a job.
struct BottleneckView {
  std::string job;
  Bottleneck found;
  Duration seen{0};  // of the time asked for, since the first row
  // Of its time, by who waits most, in what was seen.
  std::optional<double> waiting{};
  uint64_t workers = 0, consumers = 0;
};

inline constexpr int64_t kMaxHistorySteps = 180;
inline constexpr size_t kMaxStrips = 64;

// What a job's consumers did over time. Numbers below 0: nothing is known of
// that step of time.
struct JobHistory {
  struct Strip {
    std::string consumer, host;
    std::vector<double> waiting;  // of its time
  };
  WallTime begin{};
  Duration step{0};
  // Of all of them together, and of the one that waits longest.
  std::vector<double> rows_per_s, wait_p50_ms, wait_p95_ms;
  std::vector<Strip> strips;  // of those that wait most
  size_t consumers = 0;
};

}  // namespace leat::server
