// SPDX-License-Identifier: Apache-2.0
//
// SampleGroups says which group each sample of the base is of, where an
// arrangement puts groups one after the other (grouped_writer.h).
//
// A key orders the groups: the number of a class, a value of a column, or a
// weight. The same base and text make the same keys on every worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/arrangement.h"
#include "core/plan/job.h"
#include "core/plan/passed_over.h"
#include "core/plan/selection.h"
#include "worker/source/arranged/columns.h"
#include "worker/source/arranged/listing_trail.h"
#include "worker/source/source.h"

namespace leat::worker {

inline constexpr size_t kMaxGroupNameBytes = 256;

using GroupKey = std::variant<int64_t, std::string>;
using GroupSizes = std::map<GroupKey, uint64_t>;

// Not thread-safe.
class SampleGroups {
 public:
  virtual ~SampleGroups() = default;
  // Returns the keys of samples of the base, in their order; nullopt: the
  // sample is of no group, and is left out.
  virtual absl::StatusOr<std::vector<std::optional<GroupKey>>> KeysOf(
      std::span<const uint64_t> samples) = 0;
  // Returns the groups with their names, in the order of their keys; also those
  // without samples, if they are known.
  virtual absl::StatusOr<std::vector<Group>> Named(
      const GroupSizes& sizes) const = 0;
  // Returns for people what a group has one of, and samples of no group lack.
  virtual std::string What() const = 0;
  // Samples of no group, where that is no wish of the user's.
  virtual std::vector<PassedOver> TakePassedOver() { return {}; }
};

// The things that an arrangement's groups are made from. All outlive them.
struct GroupFrom {
  const DatasetInfo& base;
  ColumnSource columns;  // its types need not outlive the groups
  const SourceLimits& limits;
  ListingTrail* trail;
};

// kInvalidArgument: the base has no classes; the column is unknown; or weights
// that do not fit (ReadWeights). Others: storage's. REQUIRES:
// IsGrouped(arrangement), and it passes CheckArrangement.
absl::StatusOr<std::unique_ptr<SampleGroups>> GroupsFor(
    const Arrangement& arrangement, const GroupFrom& from);

// Reads the weights of all samples of a dataset, which messages call `name`.
// kInvalidArgument: other than `samples` weights, a file of other than numbers
// or of several axes, or what CheckWeight refuses. kResourceExhausted: over
// kMaxWeighedSamples. kCancelled: SourceLimits::cancelled. Others: storage's.
absl::StatusOr<std::vector<uint32_t>> ReadWeights(const SampleWeights& weights,
                                                  const std::string& name,
                                                  uint64_t samples,
                                                  const SourceLimits& limits);

}  // namespace leat::worker
