// SPDX-License-Identifier: Apache-2.0
//
// JobSpec is a job as a user requests it, DatasetInfo is the result of listing
// a dataset, and JobInfo has both.
//
// The plan hash identifies a job's bytes: equal hashes mean equal batches, on
// every machine and in every later release.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/plan/mixture.h"
#include "core/plan/shard_table.h"

namespace leat {

class ShareSchedule;

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
// kAuto: kExact or kNvjpeg, chosen when the job is created; an existing job
// never has kAuto. kNvjpegShared: a fixed share of the images, by a hash of the
// file, is decoded as in class exact, the others as in class nvjpeg.
enum class DecoderClass : uint8_t {
  kExact = 1,
  kNvjpeg = 2,
  kAuto = 3,
  kNvjpegShared = 4
};
// Returns whether a share of the class's files is decoded as in class exact.
constexpr bool HasHostShare(DecoderClass decoder_class) {
  return decoder_class == DecoderClass::kNvjpegShared;
}
// Returns the class that has such a share, if there is one.
constexpr DecoderClass WithHostShare(DecoderClass decoder_class) {
  return decoder_class == DecoderClass::kNvjpeg ? DecoderClass::kNvjpegShared
                                                : decoder_class;
}
// Returns whether devices' own decoders make pixels of the class.
constexpr bool NeedsDevices(DecoderClass decoder_class) {
  return decoder_class == DecoderClass::kNvjpeg || HasHostShare(decoder_class);
}
enum class BadSamplePolicy : uint8_t { kFail = 1, kReplace = 2, kZero = 3 };

std::string_view Name(Order order);           // "sequential", "global", "shard"
std::string_view Name(LastBatch last_batch);  // "drop", "fill", "pad",
                                              // "partial", "stream", "mask"
std::string_view Name(DecoderClass decoder_class);  // "exact", "nvjpeg",
                                                    // "auto", "nvjpeg_shared"
std::string_view Name(BadSamplePolicy policy);      // "fail", "replace", "zero"

struct JobSpec {
  std::string name;  // 1–128 of [A-Za-z0-9._-]
  Graph pipeline;    // empty in a mixture
  // The job takes this of its dataset. A mixture's sources have their own.
  Selection selection;
  // A mixture has 2 to kMaxSources pipelines with equal outputs, and shares of
  // them; any other job has neither.
  std::vector<MixedSource> sources;
  std::vector<SharesFrom> shares;
  MixEnd mix_end = MixEnd::kStream;
  // The name of an int32 field with the number of the row's source; empty: no
  // such field.
  std::string source_field;
  uint64_t seed = 0;  // of the order, and of random operators
  // The seed of random operators; nullopt: the same.
  std::optional<uint64_t> augment_seed;
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

inline bool IsMixture(const JobSpec& spec) { return !spec.sources.empty(); }
// Returns how many pipelines the job has: 1, unless it is a mixture.
inline size_t NumSources(const JobSpec& spec) {
  return IsMixture(spec) ? spec.sources.size() : 1;
}
// REQUIRES: source < NumSources(spec).
inline const Graph& PipelineOf(const JobSpec& spec, size_t source) {
  return IsMixture(spec) ? spec.sources[source].pipeline : spec.pipeline;
}
inline Graph& PipelineOf(JobSpec& spec, size_t source) {
  return IsMixture(spec) ? spec.sources[source].pipeline : spec.pipeline;
}

inline const Selection& SelectionOf(const JobSpec& spec, size_t source) {
  return IsMixture(spec) ? spec.sources[source].selection : spec.selection;
}
inline Selection& SelectionOf(JobSpec& spec, size_t source) {
  return IsMixture(spec) ? spec.sources[source].selection : spec.selection;
}
// Returns the seed of random operators.
inline uint64_t AugmentSeed(const JobSpec& spec) {
  return spec.augment_seed.value_or(spec.seed);
}

// Returns the seed of random operators of one source.
uint64_t AugmentSeedOf(const JobSpec& spec, uint32_t source);

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
  // Hex of the hash of the reader's canonical text, and of the arrangement's:
  // one dataset for each.
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
  // Runs of samples with names; empty if the listing found none.
  std::vector<Group> groups;
  // The dataset that this one arranges, and the arrangement's canonical text
  // (core/plan/arrangement.h); nullptr: it is stored as it was listed. A base
  // has no base.
  std::shared_ptr<const DatasetInfo> base = nullptr;
  std::string arrangement{};
};
// Returns the dataset whose records are stored: the base, or this one.
inline const DatasetInfo& StoredDataset(const DatasetInfo& dataset) {
  return dataset.base == nullptr ? dataset : *dataset.base;
}

const DatasetInfo& StoredDataset(DatasetInfo&& dataset) = delete;

struct JobInfo {
  JobSpec spec;  // pipelines normalised
  // Has one dataset per source. The job numbers the samples of one dataset
  // after those of another.
  std::vector<DatasetInfo> datasets;
  BatchSchema schema;  // as CheckedJob's
  Digest plan_hash{};
};

// Returns how many samples of a dataset of `num_samples` may be bad. REQUIRES:
// max_bad is set.
uint64_t AllowedBadSamples(const JobSpec& spec, uint64_t num_samples);
// Returns the shares of a mixture, as the plan deals them out. Errors: as
// ShareSchedule::Create. REQUIRES: IsMixture(spec).
absl::StatusOr<ShareSchedule> ScheduleOf(const JobSpec& spec);
// Returns the number of the first sample of each dataset among the job's, and
// at the end how many samples the job has.
std::vector<uint64_t> FirstSamples(std::span<const DatasetInfo> datasets);
inline uint64_t NumSamples(const JobInfo& job) {
  return FirstSamples(job.datasets).back();
}

// REQUIRES: pipelines are normalised, the class is not kAuto, one dataset per
// source. Golden: changing it invalidates every position.
Digest PlanHash(const JobSpec& spec, std::span<const DatasetInfo> datasets);
// Returns the hash that positions contain. It is computed as the plan hash, but
// from the datasets' content instead of from where and when they were stored,
// so that a position remains valid when a dataset moves. Equals the plan hash
// if a content is unknown. Changing it invalidates positions. REQUIRES: as
// PlanHash.
//
// In a mixture it covers what rows before `step` (counted over all epochs)
// depend on, and nothing that comes later: a position fits every job that
// appends segments or sources from that step on. Others ignore `step`.
Digest PositionHash(const JobInfo& job, uint64_t step);
// Removes from the readers' places what may be secret (RedactedUri). Returns
// whether there was any; then the pipeline does not hash to the plan hash.
bool RedactPlaces(Graph* pipeline);
bool RedactPlaces(Selection* selection);
// Returns the differences for people: "batch 64 != 128; seed 1 != 2"; empty if
// there are none. A wanted kAuto equals any class.
std::string Difference(const JobSpec& existing, const JobSpec& wanted);

}  // namespace leat
