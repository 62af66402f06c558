// SPDX-License-Identifier: Apache-2.0
//
// JobSpec is a job as a user requests it, DatasetInfo is the result of listing
// a dataset, and JobInfo has both.
//
// The plan hash identifies a job's bytes: equal hashes mean equal batches, on
// every machine and in every later release.
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

// The values of enumerators are those of leat.v1.
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
// kAuto: one of the other two, chosen when the job is created; an existing job
// never has kAuto.
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
  // True if each pass cuts the parts out of one order of the whole dataset, so
  // that samples change parts; otherwise each part orders its own samples.
  // Needs `num_parts` and an order that shuffles.
  bool mix_parts = false;
  // Size of the sliding window of Order::kShardShuffle, in shards.
  uint32_t shuffle_window = 16;
  DecoderClass decoder_class = DecoderClass::kExact;
  BadSamplePolicy on_bad_sample = BadSamplePolicy::kFail;
  // The fraction of the dataset's samples that may be bad before the job fails;
  // nullopt: any. Bytes do not depend on it.
  std::optional<double> max_bad;

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

inline constexpr uint32_t kMaxBatch = 1u << 20;

// Returns whether batches have the field kValidField, which marks rows that
// have a sample of their own that is not bad. Under BadSamplePolicy::kZero and
// LastBatch::kMask.
bool HasValidField(const JobSpec& spec);

// The reader whose samples are not in storage: consumers supply them.
inline constexpr std::string_view kExternalReader = "readers.external";
bool IsExternal(const JobSpec& spec);
// Maximum size of one sample that a consumer supplies.
inline constexpr uint64_t kMaxSuppliedBytes = 64u << 20;

struct DatasetInfo {
  // Hex of the hash of the reader's canonical text: one dataset per reader.
  std::string id;
  std::string name;    // for people
  std::string reader;  // canonical text of the reader node
  // Hash of the reader, the shard table and every record's identity (path,
  // size, time of change).
  Digest fingerprint{};
  // A hash of the records, independent of where they are stored: names below
  // the dataset's root, sizes, labels, and the entries of an archive's index.
  // Zero: the dataset was indexed by a release that did not compute it.
  Digest content{};
  ShardTable shards;
  uint64_t bytes = 0;  // stored size of all records
  std::vector<std::string>
      classes;  // label -> name; empty if the source has none
  // Types of the reader's outputs, if its arguments do not determine them;
  // otherwise empty.
  std::vector<ValueType> types;
};

struct JobInfo {
  JobSpec spec;  // pipeline normalised
  DatasetInfo dataset;
  BatchSchema schema;  // with kValidField appended if HasValidField
  Digest plan_hash{};
};

// Checks everything in `spec` that does not need the dataset: name, batch,
// parts, pipeline. Returns the checked pipeline. kInvalidArgument names the
// field, the value and what was expected. `stored`: the dataset's types;
// without them a pipeline that needs them is not fully checked (`typed`).
absl::StatusOr<CheckedGraph> CheckSpec(const JobSpec& spec,
                                       std::span<const ValueType> stored = {});
// Checks the conditions that need the dataset: batch ≤ num_samples (or a part's
// samples) under kDrop; num_samples > 0.
absl::Status CheckAgainst(const JobSpec& spec, const DatasetInfo& dataset);
// Returns how many samples of a dataset of `num_samples` may be bad. REQUIRES:
// max_bad is set.
uint64_t AllowedBadSamples(const JobSpec& spec, uint64_t num_samples);
// REQUIRES: spec.pipeline is normalised, the class is not kAuto. Golden:
// changing it invalidates every position.
Digest PlanHash(const JobSpec& spec, const DatasetInfo& dataset);
// Returns the hash that positions contain. It is computed as the plan hash, but
// from the dataset's content instead of from where and when it was stored, so
// that a position remains valid when a dataset moves. Equals the plan hash if
// the content is unknown. Changing it invalidates positions. REQUIRES: as
// PlanHash.
Digest PositionHash(const JobInfo& job);
// Removes from the readers' places what may be secret (RedactedUri). Returns
// whether there was any; then the pipeline does not hash to the plan hash.
bool RedactPlaces(Graph* pipeline);
// Returns the differences for people: "batch 64 != 128; seed 1 != 2"; empty if
// there are none. A wanted kAuto equals any class.
std::string Difference(const JobSpec& existing, const JobSpec& wanted);

}  // namespace leat
