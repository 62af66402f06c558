// SPDX-License-Identifier: Apache-2.0
//
// JobSpec, DatasetInfo, JobInfo: what a user asks for, what a dataset turned
// out to be, and the two together.
//
// The plan hash names a job's bytes: equal hashes mean equal batches,
// everywhere and for ever.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/plan/shard_table.h"

namespace leat {

// Enumerators' values are the wire's.
enum class Order : uint8_t {
  kSequential = 1,
  kGlobalShuffle = 2,
  kShardShuffle = 3
};
enum class LastBatch : uint8_t {
  kDrop = 1,
  kFill = 2,
  kPad = 3,
  kPartial = 4,
  kStream = 5,
  kMask = 6
};
// kAuto: of the other two the one that fits when the job is created; a job that
// exists has one of them.
enum class DecoderClass : uint8_t { kExact = 1, kNvjpeg = 2, kAuto = 3 };
enum class BadSamplePolicy : uint8_t { kFail = 1, kReplace = 2, kZero = 3 };

std::string_view Name(Order order);           // "sequential", "global", "shard"
std::string_view Name(LastBatch last_batch);  // "drop", "fill", "pad",
                                              // "partial", "stream", "mask"
std::string_view Name(DecoderClass decoder_class);  // "exact", "nvjpeg", "auto"
std::string_view Name(BadSamplePolicy policy);      // "fail", "replace", "zero"

struct JobSpec {
  std::string name;  // 1–128 of [A-Za-z0-9._-]
  Graph pipeline;
  uint64_t seed = 0;
  uint32_t batch = 0;  // rows of the global batch, 1 … kMaxBatch
  Order order = Order::kGlobalShuffle;
  LastBatch last_batch = LastBatch::kDrop;
  // 0: global row layout. n: per-shard-id layout of n parts; n divides `batch`.
  uint32_t num_parts = 0;
  // The rows of part k read part (k + epoch) mod n. Needs `num_parts`.
  bool rotate_parts = false;
  // Each pass cuts the parts out of one order of the whole dataset, so that
  // samples change parts; otherwise each part orders its own samples. Needs
  // `num_parts` and an order that shuffles.
  bool mix_parts = false;
  // Shards in the sliding window of Order::kShardShuffle.
  uint32_t shuffle_window = 16;
  DecoderClass decoder_class = DecoderClass::kExact;
  BadSamplePolicy on_bad_sample = BadSamplePolicy::kFail;
  // The share of the dataset's samples that may be bad before the job fails;
  // nullopt: any. Bytes do not depend on it.
  std::optional<double> max_bad;

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

inline constexpr uint32_t kMaxBatch = 1u << 20;

// Whether batches have a field kValidField: rows that hold no sample of their
// own, or a bad one, are marked there. Under BadSamplePolicy::kZero and
// LastBatch::kMask.
bool HasValidField(const JobSpec& spec);

// The reader whose samples are in no storage: consumers supply them.
inline constexpr std::string_view kExternalReader = "readers.external";
bool IsExternal(const JobSpec& spec);
// Bytes of one sample that a consumer supplies, at most.
inline constexpr uint64_t kMaxSuppliedBytes = 64u << 20;

struct DatasetInfo {
  std::string id;        // hex of the hash of the reader's canonical text: one
                         // dataset a reader
  std::string name;      // for people
  std::string reader;    // canonical text of the reader node
  Digest fingerprint{};  // of reader, shard table and every record's identity
                         // (path, size, time of change)
  // A hash of what the records are, wherever they lie: names below the
  // dataset's root, sizes, labels, and what an archive's index says. Zero:
  // indexed by a release that did not tell it.
  Digest content{};
  ShardTable shards;
  uint64_t bytes = 0;  // stored, all records
  std::vector<std::string>
      classes;  // label -> name; empty if the source has none
  // What the reader gives, where its arguments do not say it; else empty.
  std::vector<ValueType> types;
};

struct JobInfo {
  JobSpec spec;  // pipeline normalised
  DatasetInfo dataset;
  BatchSchema schema;  // with kValidField appended where HasValidField
  Digest plan_hash{};
};

// Everything about `spec` that can be checked without the dataset: name, batch,
// parts, pipeline. Returns the checked pipeline. kInvalidArgument names the
// field, the value and what was expected. `stored`: the dataset's types;
// without them a pipeline that needs them is not checked to its end (`typed`).
absl::StatusOr<CheckedGraph> CheckSpec(const JobSpec& spec,
                                       std::span<const ValueType> stored = {});
// What needs the dataset: batch ≤ num_samples (or a part's samples) under
// kDrop; num_samples > 0.
absl::Status CheckAgainst(const JobSpec& spec, const DatasetInfo& dataset);
// How many samples of a dataset of `num_samples` may be bad. REQUIRES: max_bad.
uint64_t AllowedBadSamples(const JobSpec& spec, uint64_t num_samples);
// REQUIRES: spec.pipeline is normalised, the class is not kAuto. Golden:
// changing it orphans every token.
Digest PlanHash(const JobSpec& spec, const DatasetInfo& dataset);
// What tokens name: as the plan hash, but of the dataset's content instead of
// where and when it was stored, so that a token outlives a dataset's move. The
// plan hash itself where the content is not known. A change orphans tokens.
// REQUIRES: as PlanHash.
Digest TokenHash(const JobInfo& job);
// Leaves out of the readers' places what may be secret (RedactedUri). Returns
// whether there was any; then the plan hash is not that of the pipeline.
bool RedactPlaces(Graph* pipeline);
// "batch 64 != 128; seed 1 != 2": what differs, for people; empty if nothing. A
// wanted kAuto is satisfied by any class.
std::string Difference(const JobSpec& existing, const JobSpec& wanted);

}  // namespace leat
