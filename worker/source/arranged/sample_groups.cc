// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/sample_groups.h"

#include <algorithm>
#include <utility>

#include "core/plan/rounded_weight.h"
#include "core/status.h"
#include "worker/source/arranged/column_groups.h"

namespace leat::worker {
namespace {

// The groups that the listing of the base has found.
class ClassGroups final : public SampleGroups {
 public:
  explicit ClassGroups(const std::vector<Group>* groups) : groups_(groups) {
    for (const Group& group : *groups)
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + group.samples);
  }

  absl::StatusOr<std::vector<std::optional<GroupKey>>> KeysOf(
      std::span<const uint64_t> samples) override {
    std::vector<std::optional<GroupKey>> keys;
    keys.reserve(samples.size());
    for (const uint64_t sample : samples)
      keys.emplace_back(std::ranges::upper_bound(ends_, sample) -
                        ends_.begin());
    return keys;
  }
  absl::StatusOr<std::vector<Group>> Named(
      const GroupSizes& sizes) const override {
    std::vector<Group> named;
    for (size_t i = 0; i < groups_->size(); ++i) {
      const auto own = sizes.find(static_cast<int64_t>(i));
      named.push_back({.name = (*groups_)[i].name,
                       .samples = own == sizes.end() ? 0 : own->second});
    }
    return named;
  }
  std::string What() const override { return "class"; }

 private:
  const std::vector<Group>* const groups_;
  std::vector<uint64_t> ends_;
};

// Samples of one rounded weight; none of the weight 0.
class WeightGroups final : public SampleGroups {
 public:
  explicit WeightGroups(std::vector<uint32_t> keys) : keys_(std::move(keys)) {}

  absl::StatusOr<std::vector<std::optional<GroupKey>>> KeysOf(
      std::span<const uint64_t> samples) override {
    std::vector<std::optional<GroupKey>> keys(samples.size());
    for (size_t i = 0; i < samples.size(); ++i)
      if (const uint32_t key = keys_[samples[i]]; key != 0)
        keys[i] = int64_t{key};
    return keys;
  }
  absl::StatusOr<std::vector<Group>> Named(
      const GroupSizes& sizes) const override {
    std::vector<RoundedWeight> weights;
    for (const auto& [key, samples] : sizes)
      weights.push_back(RoundedWeight::FromKey(
          static_cast<uint32_t>(std::get<int64_t>(key))));
    ASSIGN_OR_RETURN(const std::vector<uint64_t> relative,
                     RelativeWeights(weights));
    std::vector<Group> named;
    for (const auto& [key, samples] : sizes) {
      const size_t i = named.size();
      named.push_back({.name = fmt::format("{}", weights[i].value()),
                       .samples = samples,
                       .weight = relative[i]});
    }
    return named;
  }
  std::string What() const override { return "weight over 0"; }

 private:
  const std::vector<uint32_t> keys_;  // of all samples
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleGroups>> GroupsFor(
    const Arrangement& arrangement, const GroupFrom& from) {
  if (!arrangement.by.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<ColumnGroups> groups,
                     ColumnGroups::Create(arrangement.by, from));
    return groups;
  }
  if (IsSet(arrangement.weights)) {
    ASSIGN_OR_RETURN(std::vector<uint32_t> keys,
                     ReadWeights(arrangement.weights, from.base.name,
                                 from.base.shards.num_samples(), from.limits));
    return std::make_unique<WeightGroups>(std::move(keys));
  }
  if (from.base.groups.empty())
    return InvalidArgument(
        "weights: the samples of dataset \"{}\" are not in runs by label, so "
        "it has no classes to weigh; want by, as in select(by=\"label\", "
        "weights=...)",
        from.base.name);
  return std::make_unique<ClassGroups>(&from.base.groups);
}

}  // namespace leat::worker
