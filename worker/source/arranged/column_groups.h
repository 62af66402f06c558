// SPDX-License-Identifier: Apache-2.0
//
// ColumnGroups: samples of one value of a column (columns.h) are a group, which
// is named by the value: a whole number, or a text. A sample without a value is
// of none. Values that are read from records are kept in the listing's trail.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/arranged/columns.h"
#include "worker/source/arranged/sample_groups.h"

namespace leat::worker {

class ColumnGroups final : public SampleGroups {
 public:
  // `by`: a column, as ParseColumn reads it. kInvalidArgument: as
  // Columns::BindOne.
  static absl::StatusOr<std::unique_ptr<ColumnGroups>> Create(
      std::string_view by, const GroupFrom& from);

  // kInvalidArgument: a value with a fraction, or a text over
  // kMaxGroupNameBytes; names the record. Others: storage's.
  absl::StatusOr<std::vector<std::optional<GroupKey>>> KeysOf(
      std::span<const uint64_t> samples) override;
  absl::StatusOr<std::vector<Group>> Named(
      const GroupSizes& sizes) const override;
  std::string What() const override { return "value of " + by_; }
  std::vector<PassedOver> TakePassedOver() override {
    return passed_over_.Take();
  }

 private:
  using Keys = std::vector<std::optional<GroupKey>>;

  ColumnGroups(std::string by, std::vector<ValueType> types,
               const GroupFrom& from);
  absl::StatusOr<GroupKey> KeyOf(const ColumnValue& value,
                                 uint64_t sample) const;
  absl::StatusOr<Keys> TakeOrEvaluate(std::span<const uint64_t> samples);
  absl::StatusOr<Keys> Evaluate(std::span<const uint64_t> samples) const;

  const std::string by_;
  const std::vector<ValueType> types_;
  const Source& source_;
  const SourceLimits& limits_;
  ListingTrail* const trail_;
  std::optional<Columns> column_;
  PassedOverCounts passed_over_;
};

}  // namespace leat::worker
