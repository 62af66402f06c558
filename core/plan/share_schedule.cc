// SPDX-License-Identifier: Apache-2.0
#include "core/plan/share_schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/mutex.h"
#include "core/plan/layout.h"
#include "core/plan/whole_weights.h"
#include "core/status.h"

namespace leat {
namespace {

// Returns what errors call a segment.
std::string FieldOf(size_t segment, size_t segments) {
  return segments == 1 ? "weights" : fmt::format("weights[{}]", segment);
}

absl::Status CheckSteps(std::span<const SharesFrom> shares) {
  for (size_t i = 0; i < shares.size(); ++i) {
    const std::string field = FieldOf(i, shares.size());
    const uint64_t step = shares[i].from_step;
    if (i == 0 && step != 0)
      return InvalidArgument("{} begins at step {}; want step 0", field, step);
    if (step >= kStreamSteps)
      return InvalidArgument("{} begins at step {}; want a step below {}",
                             field, step, kStreamSteps);
    if (i == 0) continue;
    const uint64_t previous = shares[i - 1].from_step;
    if (step < previous)
      return InvalidArgument(
          "{} begins at step {}, before step {}; want steps that ascend", field,
          step, previous);
    if (step == previous)
      return InvalidArgument(
          "{} begins at step {}, as weights[{}] does; want steps that ascend",
          field, step, i - 1);
  }
  return absl::OkStatus();
}

bool Same(std::span<const uint64_t> weights, std::span<const uint64_t> others) {
  if (weights.size() > others.size()) return Same(others, weights);
  const auto rest = others.subspan(weights.size());
  return std::ranges::equal(weights, others.first(weights.size())) &&
         std::ranges::all_of(rest, [](uint64_t weight) { return weight == 0; });
}

}  // namespace

// Keeps the trees of the segments that were used last: a plan is asked about
// one segment, and near its end about two. The trees of all segments would take
// 40 MB in the largest schedule. Thread-safe.
class ShareSchedule::KeptTrees {
 public:
  std::shared_ptr<const ShareTree> Get(size_t segment,
                                       std::span<const uint64_t> weights) {
    {
      MutexLock lock(&mu_);
      for (const Entry& entry : entries_)
        if (entry.tree != nullptr && entry.segment == segment)
          return entry.tree;
    }
    auto tree = std::make_shared<const ShareTree>(
        std::vector<uint64_t>(weights.begin(), weights.end()));
    MutexLock lock(&mu_);
    entries_[next_] = {segment, tree};
    next_ = (next_ + 1) % entries_.size();
    return tree;
  }

 private:
  struct Entry {
    size_t segment = 0;
    // Shared with segments that are still used after their tree was dropped.
    std::shared_ptr<const ShareTree> tree;
  };
  Mutex mu_;
  std::array<Entry, 4> entries_ ABSL_GUARDED_BY(mu_);
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

ShareSchedule::ShareSchedule(uint32_t batch, size_t num_sources)
    : batch_(batch),
      num_sources_(num_sources),
      trees_(std::make_unique<KeptTrees>()) {}

ShareSchedule::~ShareSchedule() = default;
ShareSchedule::ShareSchedule(ShareSchedule&&) noexcept = default;
ShareSchedule& ShareSchedule::operator=(ShareSchedule&&) noexcept = default;

absl::StatusOr<ShareSchedule> ShareSchedule::Create(
    std::span<const SharesFrom> shares, std::span<const std::string> names,
    uint32_t batch) {
  if (names.empty() || names.size() > kMaxSources)
    return InvalidArgument("{} sources: want 1 to {}", names.size(),
                           kMaxSources);
  if (shares.empty() || shares.size() > kMaxSegments)
    return InvalidArgument("weights has {} segments; want 1 to {}",
                           shares.size(), kMaxSegments);
  RETURN_IF_ERROR(CheckSteps(shares));
  ShareSchedule schedule(batch, names.size());
  std::vector<uint64_t> before(names.size()), counted(names.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    const std::string field = FieldOf(i, shares.size());
    if (shares[i].weights.size() != names.size())
      return InvalidArgument("{} has {} numbers; want {}, one for each source",
                             field, shares[i].weights.size(), names.size());
    ASSIGN_OR_RETURN(const std::vector<uint64_t> weights,
                     WholeWeights(shares[i].weights, names, field));
    if (i > 0 && Same(schedule.weights(schedule.num_segments() - 1), weights))
      continue;
    const uint64_t step = shares[i].from_step;
    if (i > 0) schedule.RowsBefore(step, before);
    schedule.from_steps_.push_back(step);
    schedule.weights_.insert(schedule.weights_.end(), weights.begin(),
                             weights.end());
    schedule.trees_->Get(schedule.num_segments() - 1, weights)
        ->Counts(step * batch, counted);
    for (size_t source = 0; source < names.size(); ++source)
      schedule.offsets_.push_back(before[source] - counted[source]);
  }
  return schedule;
}

size_t ShareSchedule::SegmentAt(uint64_t step) const {
  return std::ranges::upper_bound(from_steps_, step) - from_steps_.begin() - 1;
}

ShareSchedule::Segment ShareSchedule::At(uint64_t step) const {
  const size_t number = SegmentAt(step);
  Segment segment;
  segment.batch_ = batch_;
  segment.tree_ = trees_->Get(number, weights(number));
  segment.offsets_ = offsets(number);
  return segment;
}

ShareTree::Place ShareSchedule::Segment::Locate(uint64_t step,
                                                uint32_t place) const {
  ShareTree::Place found = tree_->Locate(step * batch_ + place);
  found.index += offsets_[found.leaf];
  return found;
}

void ShareSchedule::Segment::DealOut(
    uint64_t step, uint32_t place, std::span<uint32_t> order,
    std::vector<ShareTree::Hand>* hands) const {
  tree_->DealOut(step * batch_ + place, order, hands);
  for (ShareTree::Hand& hand : *hands)
    hand.first.index += offsets_[hand.first.leaf];
}

uint64_t ShareSchedule::RowsBefore(uint64_t step, uint32_t source) const {
  const Segment segment = At(step);
  return segment.offsets_[source] + segment.tree_->Count(source, step * batch_);
}

void ShareSchedule::RowsBefore(uint64_t step, std::span<uint64_t> rows) const {
  const Segment segment = At(step);
  segment.tree_->Counts(step * batch_, rows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] += segment.offsets_[i];
}

std::string ShareSchedule::HistoryText(uint64_t step) const {
  std::string text;
  for (size_t i = 0; i < num_segments(); ++i) {
    if (i > 0 && from_steps_[i] >= step) break;
    text += fmt::format("from step {}:", from_steps_[i]);
    for (size_t source = 0; source < num_sources_; ++source)
      if (const uint64_t weight = weights(i)[source]; weight > 0)
        text += fmt::format(" {}={}", source, weight);
    text += '\n';
  }
  return text;
}

std::optional<uint64_t> FirstDifference(const ShareSchedule& a,
                                        const ShareSchedule& b) {
  const size_t both = std::min(a.num_segments(), b.num_segments());
  for (size_t i = 0; i < both; ++i)
    if (a.from_step(i) != b.from_step(i) || !Same(a.weights(i), b.weights(i)))
      return std::min(a.from_step(i), b.from_step(i));
  if (a.num_segments() > both) return a.from_step(both);
  if (b.num_segments() > both) return b.from_step(both);
  return std::nullopt;
}

}  // namespace leat
