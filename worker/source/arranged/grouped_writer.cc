// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/grouped_writer.h"

#include <optional>
#include <span>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kGatheredTogether = 4096;

}  // namespace

absl::Status GroupedWriter::Add(uint64_t sample) {
  ++added_;
  pending_.push_back(sample);
  return pending_.size() < kGatheredTogether ? absl::OkStatus() : Gather();
}

absl::Status GroupedWriter::Gather() {
  if (pending_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::optional<GroupKey>> keys,
                   groups_->KeysOf(pending_));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i]) continue;
    Gathered& group = gathered_[*keys[i]];
    if (gathered_.size() > kMaxGroups)
      return InvalidArgument(
          "weights: over {} groups, of one {} each: want at most so many",
          kMaxGroups, groups_->What());
    ChosenSamples::Append(pending_[i], std::exchange(group.before, pending_[i]),
                          &group.gaps);
    ++group.samples;
    if (++gathered_samples_ > most_)
      return ResourceExhausted(
          "weights: over {} samples in groups: want at most so many", most_);
  }
  pending_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::string> GroupedWriter::Finish() {
  RETURN_IF_ERROR(Gather());
  if (gathered_.empty())
    return InvalidArgument("weights: none of {} samples has a {}", added_,
                           groups_->What());
  GroupSizes sizes;
  for (const auto& [key, group] : gathered_) sizes[key] = group.samples;
  ASSIGN_OR_RETURN(named_, groups_->Named(sizes));
  for (auto& [key, group] : gathered_) {
    ASSIGN_OR_RETURN(const ChosenSamples samples,
                     ChosenSamples::Parse(std::exchange(group.gaps, {}),
                                          group.samples, base_->num_samples()));
    for (uint64_t i = 0; i < samples.size(); ++i)
      RETURN_IF_ERROR(chosen_.Add(samples.At(i)));
  }
  return chosen_.Finish();
}

Digest GroupedWriter::TakeDigest() {
  const Digest items = chosen_.TakeDigest();
  Sha256 hash;
  hash.Update(std::as_bytes(std::span(items))).UpdateU64(named_.size());
  for (const Group& group : named_)
    hash.UpdateField(group.name)
        .UpdateU64(group.samples)
        .UpdateU64(group.weight);
  return hash.Finish();
}

}  // namespace leat::worker
