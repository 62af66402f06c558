// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs of the coordinator. Fields mean the same as the fields of
// the same name in proto/leat/v1; views are for people and programs that
// inspect the service.
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
#include "core/cluster/certificate_term.h"
#include "core/cluster/pool_policy.h"
#include "core/cluster/roles.h"
#include "core/hash.h"
#include "core/observe/bottleneck.h"
#include "core/pipeline/graph.h"
#include "core/plan/index_blocks.h"
#include "core/plan/job.h"
#include "core/plan/passed_over.h"
#include "leat/v1/types.pb.h"
#include "server/state/listing_types.h"

namespace leat::server {

class KeptShares;

// The time of a decision: decisions use the monotonic part; the wall part is
// for display.
struct Now {
  MonotonicTime mono;
  WallTime wall;
  static Now Of(const Clock& clock) { return {clock.Now(), clock.WallNow()}; }
};

// The stream of a worker or consumer; unique within the process; never 0.
using SessionId = uint64_t;

// A worker's report. The coordinator decides by the capacity alone, and shows
// the statistics to people as they arrived, also fields that it does not know.
struct WorkerReport {
  double capacity_rows_per_s = 0;                // 0: not yet measured
  std::shared_ptr<const v1::WorkerStats> stats;  // nullptr: none yet
  // nullopt: the worker has no certificate, or does not report it.
  std::optional<CertificateTerm> certificate = std::nullopt;
  // Why it does not use its files with certificates and a token as they are
  // now. Empty: it does.
  std::string not_reloaded{};
  std::vector<ListingUnderWay> listings{};  // the first few
};

struct UnreachedWorker {
  std::string worker, why;
  bool operator==(const UnreachedWorker&) const = default;
};

// A consumer's report; `stats` as in WorkerReport.
struct ConsumerReport {
  uint64_t epoch = 0, step = 0, steps_per_epoch = 0;
  double rows_per_s = 0;
  double stall_fraction = 0;
  std::shared_ptr<const v1::ConsumerStats> stats;  // nullptr: none yet
  // nullopt: unchanged since the last report.
  std::optional<std::vector<UnreachedWorker>> unreached{};
};

inline constexpr int kMaxDevices = 64;   // GPUs remembered per worker
inline constexpr int kMaxFailures = 64;  // storage failures per worker

// Storage that workers cannot read, through their own fault. A failure without
// fingerprints concerns all datasets.
using StorageFailures = std::vector<v1::StorageFailure>;

struct JobBadSamples {
  std::string job;
  std::vector<v1::BadSample> samples;
};

// The different bad samples of a plan whose jobs have a budget, each once.
struct CountedBadSamples {
  Digest plan_hash{};
  std::vector<uint64_t> samples;
};

// Bad samples in a heartbeat that are not the worker's fault.
struct BadSampleReport {
  std::vector<JobBadSamples> jobs;
  std::vector<CountedBadSamples> plans;
  uint64_t answers = 0;  // as in v1::Heartbeat
};

// v1::Decoders.
struct Decoders {
  DecoderClass decoder_class = DecoderClass::kExact;
  Digest digest{};
  std::string libraries;
};

struct WorkerRegistration {
  std::string name, address, version;
  uint32_t threads = 0;
  std::vector<DecoderClass> decoder_classes;
  std::vector<std::string> abilities;         // core/plan/abilities.h
  std::map<std::string, std::string> lacked;  // by ability: why
  std::string host;
  uint64_t pid = 0;
  uint64_t highest_sequence_seen = 0;
  std::string identity;  // of the rpc::Caller
  std::vector<v1::Device> devices;
  std::vector<Decoders> decoders;  // one for each class that it has
  std::string pool = std::string(kDefaultPool);
  std::string public_key;  // as in v1::WorkerRef; empty: it cannot prove its
                           // identity
  // As in v1::WorkerInfo.
  std::string not_confined, insecure_listener;

  // Returns nullptr if the worker does not report its decoders.
  const Decoders* DecodersOf(DecoderClass decoder_class) const {
    for (const Decoders& own : decoders)
      if (own.decoder_class == decoder_class) return &own;
    return nullptr;
  }
  // True if each of the worker's GPUs has JPEG engines for class nvjpeg.
  // Without engines images are decoded one after the other.
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

// The values are those on the wire: v1::Relist.
enum class Relist : uint8_t { kAuto = 1, kAlways = 2, kNever = 3 };

// The values are those on the wire.
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
  // Worker i is the primary owner of shards[starts[i] .. starts[i + 1]).
  std::vector<uint32_t> starts, shards;
  // The indexes in `owners` that name worker i are places[place_starts[i] ..
  // place_starts[i + 1]).
  std::vector<uint32_t> place_starts, places;
  // A serialised v1.ConsumerSessionResponse with this assignment, encoded once
  // and used by every stream.
  std::string encoded;

  uint32_t num_shards() const {
    return owners_per_shard == 0
               ? 0
               : static_cast<uint32_t>(owners.size() / 2 / owners_per_shard);
  }
  // Returns the shards with `worker` as primary owner; none if it is not in the
  // table.
  std::span<const uint32_t> OwnedBy(std::string_view worker) const;
  // Returns the indexes in `owners` that name `worker`.
  std::span<const uint32_t> PlacesOf(std::string_view worker) const;
  // Returns the first other owner of the shard at an index of `owners`;
  // nullptr: none.
  const WorkerRef* PeerAt(uint32_t place) const;
  // Adds the other owners of the shards with `worker` as primary owner.
  void AddOtherOwners(std::string_view worker,
                      std::set<std::string>* names) const;
};

// The shards of one dataset with `worker` as primary owner in any of `tables`.
struct OwnedShards {
  // Keyed by the peer's index in its table.
  using ShardsByPeer = std::map<uint16_t, std::vector<uint32_t>>;

  std::string dataset_id;
  std::string worker;
  uint32_t num_shards = 0;
  std::vector<std::shared_ptr<const Assignment>> tables;
  std::shared_ptr<const KeptShares> kept{};  // of the peers

  // Returns a bit per shard: shard i is bit i % 8 of byte i / 8.
  std::string Bits() const;
  // Returns the shards by peer as in v1::OwnedShards, from the first table that
  // contains `worker`. Sets `table` to that table; nullptr: none contains it.
  ShardsByPeer Peers(const Assignment** table) const;
};

struct Welcome {
  Duration heartbeat_interval{};
  uint64_t sequence = 0;
  std::shared_ptr<const AccessTokens> access_tokens;
};
struct LogLevelDirective {
  std::string level;
};
struct ReportNow {
  uint64_t number = 0;
};
using WorkerMessage =
    std::variant<Welcome, IndexDirective, LogLevelDirective, OwnedShards,
                 ReportNow, std::shared_ptr<const AccessTokens>>;

struct ConsumerOpening {
  Digest plan_hash{};
  std::string host;
  uint64_t pid = 0;
  std::string consumer;
  std::string job;    // as in v1.OpenConsumer
  bool look = false;  // the same
};

struct Finding {
  std::string code;
  std::string severity;  // "warn", "error"
  std::string summary;
  std::string remedy;
  std::vector<std::string> subjects{};  // as in v1::Finding
  bool muted = false;
  std::optional<WallTime> muted_until{};  // nullopt: until unmuted
};

// Page selects at most `limit` entries of an ordered list after `after`.
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
  std::optional<WallTime> position_at;  // as in v1::JobSummary
  double rows_per_s = 0;
  double stall_fraction = 0;
  uint64_t bad_samples_total = 0;
  std::vector<v1::BadSample> bad_samples;
  // These are set for a job with a budget of bad samples.
  uint64_t bad_samples_different = 0, bad_samples_allowed = 0;
  std::string failure;  // why the job was given up; empty: it was not
  // As in v1::JobSummary.
  std::string limited_by;
  std::optional<Duration> limited_by_seen;
  double shared_fraction = 0;
  std::string created_by;  // as in v1::JobSummary
};

// The jobs that have consumers or met bad samples: the first by name, and how
// many there are, of how many jobs. steps_per_epoch is as reported, or 0.
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
  uint64_t walked = 0, walked_total = 0, files = 0;
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
  PoolTarget target;  // without bounds: the number of workers that serve
  uint64_t version = 0;
  uint64_t workers = 0, draining = 0;
};

// BottleneckView: what limits a job.
struct BottleneckView {
  std::string job;
  Bottleneck found;
  Duration seen{0};  // part of the requested time, since the first row
  // Share of `seen` that the consumer that waits most spent waiting.
  std::optional<double> waiting{};
  uint64_t workers = 0, consumers = 0;
};

inline constexpr int64_t kMaxHistorySteps = 180;
inline constexpr size_t kMaxStrips = 64;

// History of a job's consumers. Numbers below 0: unknown in that interval.
struct JobHistory {
  struct Strip {
    std::string consumer, host;
    std::vector<double> waiting;  // share of each interval
  };
  WallTime begin{};
  Duration step{0};
  // rows_per_s is the sum over consumers; the waits are of the one that waits
  // longest.
  std::vector<double> rows_per_s, wait_p50_ms, wait_p95_ms;
  std::vector<Strip> strips;  // of the consumers that wait most
  size_t consumers = 0;
};

}  // namespace leat::server
