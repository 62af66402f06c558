// SPDX-License-Identifier: Apache-2.0
#include "client/batch/position_shares.h"

#include <algorithm>
#include <optional>
#include <span>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::client {
namespace {

constexpr size_t kShownSources = 4;

// With more, a position has no room for them, as each takes a byte or more.
constexpr size_t kMostWeights = 1000;

using Weights = std::vector<uint64_t>;  // whole numbers, one for each source

struct Segment {
  uint64_t from_step = 0;
  Weights weights;
};

// Returns the segments that rows before `step` depend on.
std::vector<Segment> SegmentsOf(const ShareSchedule& schedule, uint64_t step) {
  std::vector<Segment> segments;
  for (size_t i = 0; i < schedule.num_segments(); ++i) {
    if (i > 0 && schedule.from_step(i) >= step) break;
    const std::span<const uint64_t> weights = schedule.weights(i);
    segments.push_back(
        {schedule.from_step(i), {weights.begin(), weights.end()}});
  }
  return segments;
}

// Returns how much of all rows a source has.
double ShareOf(const Weights& weights, size_t source) {
  double sum = 0;
  for (const uint64_t each : weights) sum += static_cast<double>(each);
  return source < weights.size() && sum > 0
             ? static_cast<double>(weights[source]) / sum
             : 0;
}

bool Differ(const Weights& a, const Weights& b, size_t source) {
  return (source < a.size() ? a[source] : 0) !=
         (source < b.size() ? b[source] : 0);
}

// Returns "web 0.7, books 0.3".
std::string TextOf(const Weights& weights, std::span<const size_t> shown,
                   const std::vector<MixedSource>& sources) {
  std::vector<std::string> texts;
  for (const size_t i : shown)
    texts.push_back(fmt::format(
        "{} {:.4g}",
        i < sources.size() ? sources[i].name : fmt::format("source {}", i),
        ShareOf(weights, i)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns the number of the first segment in which the two differ, if any.
std::optional<size_t> FirstOther(const std::vector<Segment>& a,
                                 const std::vector<Segment>& b) {
  const auto equal = [](const Segment& x, const Segment& y) {
    const size_t sources = std::max(x.weights.size(), y.weights.size());
    for (size_t i = 0; i < sources; ++i)
      if (Differ(x.weights, y.weights, i)) return false;
    return x.from_step == y.from_step;
  };
  const auto [x, y] =
      std::mismatch(a.begin(), a.end(), b.begin(), b.end(), equal);
  if (x == a.end() && y == b.end()) return std::nullopt;
  return x - a.begin();
}

// Returns the weights that are in force at a step. REQUIRES: the first segment
// begins there or earlier.
const Weights& WeightsAt(const std::vector<Segment>& segments, uint64_t step) {
  const auto after = std::ranges::find_if(
      segments, [&](const Segment& each) { return each.from_step > step; });
  return std::prev(after)->weights;
}

}  // namespace

void AddShares(const PositionShares& shares, stored::v1::Position* position) {
  if (shares.schedule == nullptr) return;
  const size_t segments =
      shares.schedule->SegmentAt(shares.step == 0 ? 0 : shares.step - 1) + 1;
  if (segments * shares.schedule->num_sources() > kMostWeights) return;
  for (const Segment& segment : SegmentsOf(*shares.schedule, shares.step)) {
    stored::v1::DealtShares& proto = *position->add_shares();
    proto.set_from_step(segment.from_step);
    proto.mutable_weights()->Add(segment.weights.begin(),
                                 segment.weights.end());
  }
}

std::string SharesDifference(const stored::v1::Position& position,
                             const PositionShares& own) {
  if (own.schedule == nullptr || position.shares().empty()) return "";
  std::vector<Segment> theirs;
  for (const stored::v1::DealtShares& proto : position.shares()) {
    const bool ascends = theirs.empty()
                             ? proto.from_step() == 0
                             : proto.from_step() > theirs.back().from_step;
    if (!ascends || proto.weights().empty()) return "";
    theirs.push_back(
        {proto.from_step(), {proto.weights().begin(), proto.weights().end()}});
  }
  const std::vector<Segment> ours = SegmentsOf(*own.schedule, own.step);
  const std::optional<size_t> first = FirstOther(theirs, ours);
  if (!first) return "";
  const auto begin_of = [&](const std::vector<Segment>& segments) {
    return *first < segments.size() ? segments[*first].from_step : UINT64_MAX;
  };
  const uint64_t step = std::min(begin_of(theirs), begin_of(ours));
  const Weights &there = WeightsAt(theirs, step), &here = WeightsAt(ours, step);
  std::vector<size_t> shown;
  size_t differ = 0;
  for (size_t i = 0; i < std::max(there.size(), here.size()); ++i)
    if (Differ(there, here, i) && ++differ <= kShownSources) shown.push_back(i);
  const std::string more =
      differ > kShownSources
          ? fmt::format(" and {} more differ", differ - kShownSources)
          : "";
  return fmt::format("from step {} on its shares are {}, here {}{}", step,
                     TextOf(there, shown, *own.sources),
                     TextOf(here, shown, *own.sources), more);
}

}  // namespace leat::client
