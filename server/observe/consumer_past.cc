// SPDX-License-Identifier: Apache-2.0
#include "server/observe/consumer_past.h"

#include <algorithm>
#include <vector>

namespace leat::server {
namespace {

// Waits count if they are spread over this share of kEnoughSamples slots.
constexpr double kOfTheSlots = 0.8;
// A trainer that waits for a smaller share of a slot counts as not waiting.
constexpr double kHardlyWaits = 0.05;
// A trainer that waits for more than this part of its earlier waits has not
// stopped.
constexpr double kOfTheWaits = 0.5;
// Waits that are farther apart are separate stretches. After this long without
// waits they may be over.
constexpr int64_t kApartSlots = std::chrono::seconds(10) / History::kSlot;
// Stretches recur if there are this many, if the times between them differ by
// at most this factor, and if the time since the last is less than this factor
// of the longest of them.
constexpr size_t kLeastStretches = 3;
constexpr int64_t kOfTheSameKind = 2;

// Returns whether nearly all of the waits are in one or two slots, out of more.
bool InOneStretch(const WaitsBySlot& waits) {
  double sum = 0, squares = 0;
  for (const auto& [slot, waiting] : waits) {
    sum += waiting;
    squares += waiting * waiting;
  }
  // sum * sum / squares is the number of slots if all of them had equal waits.
  const auto most = static_cast<double>(std::min(waits.size(), kEnoughSamples));
  return sum * sum < kOfTheSlots * most * squares;
}

struct Stretch {
  int64_t first = 0, last = 0;  // slots
};

std::vector<Stretch> StretchesOf(const WaitsBySlot& waits) {
  std::vector<Stretch> stretches;
  for (const auto& [slot, waiting] : waits) {
    if (waiting < kHardlyWaits) continue;
    if (stretches.empty() || slot > stretches.back().last + kApartSlots)
      stretches.push_back({slot, slot});
    stretches.back().last = slot;
  }
  return stretches;
}

}  // namespace

std::optional<int64_t> ConsumerPast::StoppedIn(Duration time,
                                               uint64_t least) const {
  if (waits.empty() || mean.waiting < kHardlyWaits) return std::nullopt;
  // Waits that stay around the threshold have not stopped.
  const double hardly = std::min(kHardlyWaits, kOfTheWaits * mean.waiting);
  const int64_t slots = time / History::kSlot;
  const int64_t newest = waits.rbegin()->first;
  std::optional<int64_t> stopped;
  double sum = 0;
  uint64_t taken = 0;
  for (auto at = waits.rbegin(); at != waits.rend(); ++at) {
    sum += at->second;
    if (sum >= hardly * static_cast<double>(slots)) break;
    // The steps of a slot with waits may all have been before it stopped.
    if (const auto of = steps.find(at->first);
        of != steps.end() && at->second < hardly)
      taken += of->second;
    if (newest - at->first + 1 >= slots && taken >= least) stopped = at->first;
  }
  return stopped;
}

bool ConsumerPast::MayBeOver() const {
  return !come_again &&
         (InOneStretch(waits) ||
          StoppedIn(kApartSlots * History::kSlot, kFewSteps - 1));
}

std::optional<int64_t> ConsumerPast::ComeAgainSince() const {
  const std::vector<Stretch> stretches = StretchesOf(waits);
  if (stretches.size() < kLeastStretches) return std::nullopt;
  int64_t shortest = 0, longest = 0;
  size_t first = stretches.size() - 1;
  for (; first > 0; --first) {
    const int64_t apart = stretches[first].first - stretches[first - 1].last;
    const int64_t less = shortest == 0 ? apart : std::min(shortest, apart);
    const int64_t more = std::max(longest, apart);
    if (more > kOfTheSameKind * less) break;
    shortest = less;
    longest = more;
  }
  const int64_t since = waits.rbegin()->first - stretches.back().last;
  if (stretches.size() - first < kLeastStretches ||
      since > kOfTheSameKind * longest)
    return std::nullopt;
  return stretches[first].first;
}

}  // namespace leat::server
