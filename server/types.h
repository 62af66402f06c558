// SPDX-License-Identifier: Apache-2.0
//
// What goes into the coordinator and comes out of it. Fields have the meaning
// of those of the same name in proto/leat/v1; views are for people and programs
// that ask how things stand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/graph.h"
#include "core/hash.h"
#include "core/job.h"

namespace leat::server {

// The moment of a decision: its monotonic part decides, its wall part is shown.
struct Now {
  MonotonicTime mono;
  WallTime wall;
  static Now Of(const Clock& clock) { return {clock.Now(), clock.WallNow()}; }
};

// A worker's or consumer's stream; unique for the life of the process; never 0.
using SessionId = uint64_t;

struct LatencySummary {
  uint64_t count = 0;
  double mean_ms = 0, p50_ms = 0, p95_ms = 0, max_ms = 0;
};

// A GPU of a worker.
struct Device {
  uint32_t index = 0;
  std::string uuid;
  std::string name;
  uint64_t memory_bytes = 0;
  std::string compute;
  uint32_t jpeg_engines = 0;
  uint32_t jpeg_cores = 0;
  std::string nvjpeg_version;
};

struct DeviceStats {
  uint32_t index = 0;
  uint32_t slots = 0;
  uint32_t slots_in_use = 0;
  uint64_t memory_bytes = 0;
  double busy_fraction = 0;
  uint64_t groups_total = 0;
  uint64_t groups_failed_total = 0;
  uint64_t rows_exact_total = 0;
  uint64_t rows_hardware_total = 0;
  uint64_t rows_cuda_total = 0;
  uint64_t rows_host_total = 0;
  uint64_t splits_total = 0;
};

// Of one worker that are remembered.
inline constexpr int kMaxDevices = 64;

struct WorkerStats {
  double rows_per_s = 0;
  double capacity_rows_per_s = 0;  // 0: not yet measured
  uint64_t rows_total = 0;
  uint64_t bytes_sent_total = 0;
  uint64_t payload_copies_total = 0;
  uint64_t rows_queued = 0;
  uint64_t streams = 0;
  uint64_t cache_bytes = 0;
  uint64_t cache_limit_bytes = 0;
  uint64_t cache_hits_total = 0;
  uint64_t cache_misses_total = 0;
  uint64_t buffers_in_use = 0;
  uint64_t buffers_total = 0;
  double busy_fraction = 0;
  uint64_t bad_samples_total = 0;
  LatencySummary row_latency;
  uint64_t rss_bytes = 0;
  std::vector<DeviceStats> devices;
  uint64_t storage_requests_total = 0;
  uint64_t storage_retries_total = 0;
  uint64_t storage_hedges_total = 0;
  uint64_t disk_cache_hits_total = 0;
  uint64_t disk_cache_misses_total = 0;
  uint64_t disk_cache_bytes = 0;
  uint64_t rows_ahead = 0;
  uint64_t bytes_ahead = 0;
};

struct ConsumerStats {
  std::string job;
  std::string host;
  uint64_t pid = 0;
  uint64_t epoch = 0;
  uint64_t step = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t rows_total = 0;
  double rows_per_s = 0;
  double stall_fraction = 0;
  LatencySummary wait;
  std::string plane;
  std::string memory;
  uint64_t hedged_rows_total = 0;
  uint64_t failed_over_rows_total = 0;
  uint64_t bytes_received_total = 0;
  uint64_t payload_copies_total = 0;
};

struct BadSample {
  uint64_t sample = 0;
  std::string record;
  std::string reason;
  uint64_t count = 0;
};

struct JobBadSamples {
  std::string job;
  std::vector<BadSample> samples;
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
  std::vector<Device> devices;
};

// The values are the wire's.
enum class WorkerState : uint8_t { kReady = 1, kDraining = 2, kLost = 3 };

struct WorkerRef {
  std::string name;
  std::string address;
  friend bool operator==(const WorkerRef&, const WorkerRef&) = default;
};

// Immutable once published; shared by all streams that send it.
struct Assignment {
  std::string dataset_id;
  uint64_t instance = 0;
  uint64_t version = 0;
  std::vector<WorkerRef> workers;
  uint32_t owners_per_shard = 0;
  std::string owners;  // little-endian uint16
};

struct Welcome {
  Duration heartbeat_interval{};
  uint64_t sequence = 0;
};
struct IndexDirective {
  std::string dataset_id;
  uint64_t request_id = 0;
  Node reader;
};
struct LogLevelDirective {
  std::string level;
};
using WorkerMessage = std::variant<Welcome, IndexDirective, LogLevelDirective,
                                   std::shared_ptr<const Assignment>>;

struct ConsumerOpening {
  Digest plan_hash{};
  std::string host;
  uint64_t pid = 0;
  std::string consumer;
};

struct IndexHeader {
  std::string dataset_id;
  uint64_t request_id = 0;
  Digest fingerprint{};
  ShardTable shards;
  uint64_t bytes = 0;
  std::vector<std::string> classes;
  std::vector<ValueType> types;
  uint64_t index_bytes = 0;
  Digest index_sha256{};
  std::string name;
};

struct Finding {
  std::string code;
  std::string severity;  // "warn", "error"
  std::string summary;
  std::string remedy;
};

struct WorkerView {
  WorkerRegistration registration;
  WorkerState state = WorkerState::kReady;
  double weight = 0;
  uint64_t shards_owned = 0;
  WorkerStats stats;
  WallTime joined_at, last_heartbeat_at;
};

struct JobView {
  std::shared_ptr<const JobInfo> info;
  WallTime created_at;
  std::string not_on_gpu;  // as in PreparedJob
  uint64_t consumers = 0;
  uint64_t epoch = 0, step = 0, steps_per_epoch = 0;
  double rows_per_s = 0;
  double stall_fraction = 0;
  uint64_t bad_samples_total = 0;
  std::vector<BadSample> bad_samples;
};

struct DatasetView {
  DatasetInfo info;
  WallTime indexed_at;
  std::string state;  // "ready", "indexing", "failed"
  std::string failure;
  std::vector<std::string> jobs;
  uint64_t index_bytes = 0;
};

struct ShardView {
  ShardTable::Range range;
  std::vector<std::string> owners;
};

struct ConsumerView {
  std::string consumer;
  ConsumerStats stats;
  WallTime opened_at, last_report_at;
};

}  // namespace leat::server
