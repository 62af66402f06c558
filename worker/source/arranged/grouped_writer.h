// SPDX-License-Identifier: Apache-2.0
//
// GroupedWriter writes the chosen samples group by group (sample_groups.h), in
// each in the order in which they come. It keeps them all until the end, one to
// three bytes for each (chosen_samples.h).
//
//   comes      7 (cat)  8 (dog)  9 (cat)
//   written    7 9 | 8                      groups cat 2, dog 1
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/passed_over.h"
#include "worker/source/arranged/item_writer.h"
#include "worker/source/arranged/sample_groups.h"

namespace leat::worker {

// The largest number of samples of a listing: some 4.5 GB in many groups.
inline constexpr uint64_t kMaxGroupedSamples = uint64_t{1} << 30;

class GroupedWriter final : public ItemWriter {
 public:
  // `base` is named in messages. `most` bounds the number of samples.
  GroupedWriter(std::unique_ptr<SampleGroups> groups, const Source* base,
                const SourceLimits& limits, uint64_t most = kMaxGroupedSamples)
      : groups_(std::move(groups)), base_(base), most_(most), chosen_(limits) {}

  absl::Status Begin(const std::string& text, const Digest& base) override {
    return chosen_.Begin(text, base);
  }
  // Errors: those of groups. kInvalidArgument: more than kMaxGroups of them.
  // kResourceExhausted: more samples than it takes.
  absl::Status Add(uint64_t sample) override;
  // kInvalidArgument: no sample is of a group; or as SampleGroups::Named.
  absl::StatusOr<std::string> Finish() override;

  uint64_t items() const override { return chosen_.items(); }
  uint64_t chosen() const override { return added_; }
  // The hash is also of the groups: of their names, sizes and weights.
  Digest TakeDigest() override;
  std::vector<PassedOver> TakePassedOver() override {
    return groups_->TakePassedOver();
  }
  std::vector<Group> TakeGroups() override { return std::move(named_); }

 private:
  // Samples as ChosenSamples has them.
  struct Gathered {
    std::string gaps;
    uint64_t before = 0, samples = 0;
  };

  absl::Status Gather();

  const std::unique_ptr<SampleGroups> groups_;
  const Source* const base_;
  const uint64_t most_;
  ChosenWriter chosen_;
  uint64_t added_ = 0, gathered_samples_ = 0;
  std::vector<uint64_t> pending_;
  std::map<GroupKey, Gathered> gathered_;
  std::vector<Group> named_;
};

}  // namespace leat::worker
