// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/row_queue.h"

#include <algorithm>
#include <limits>

namespace leat::worker {
namespace {

// Returns the step that is `steps` before it, but no earlier than the first.
RowQueue::Step Before(const RowQueue::Step& step, uint64_t steps,
                      uint64_t steps_per_epoch) {
  if (steps <= step.second) return {step.first, step.second - steps};
  uint64_t missing = steps - step.second;
  const uint64_t of_epoch = std::max<uint64_t>(steps_per_epoch, 1);
  const uint64_t epochs = (missing - 1) / of_epoch + 1;
  if (epochs > step.first) return {0, 0};
  missing = epochs * of_epoch - missing;
  return {step.first - epochs, missing};
}

}  // namespace

void RowQueue::Put(Place* place, const Step& first) {
  if (place->queued_) return Move(place, place->vtime_, first);
  place->queued_ = true;
  place->eligible_ = false;
  place->first_ = first;
  if (place->number_ == 0) place->number_ = next_number_++;
  by_time_.emplace(InTime(*place), place);
  by_step_.emplace(InStep(*place), place);
}

void RowQueue::Remove(Place* place) {
  if (!place->queued_) return;
  by_time_.erase(InTime(*place));
  by_step_.erase(InStep(*place));
  place->queued_ = false;
}

// Uses the nodes again: nothing is allocated.
void RowQueue::Move(Place* place, double vtime, const Step& first) {
  if (vtime == place->vtime_ && first == place->first_) return;
  auto in_time = by_time_.extract(InTime(*place));
  auto in_step = by_step_.extract(InStep(*place));
  place->vtime_ = vtime;
  place->first_ = first;
  in_time.key() = InTime(*place);
  in_step.key() = InStep(*place);
  by_time_.insert(std::move(in_time));
  by_step_.insert(std::move(in_step));
}

void RowQueue::Spend(Place* place, double ns) {
  if (place->queued_)
    Move(place, place->vtime_ + ns, place->first_);
  else
    place->vtime_ += ns;
}

double RowQueue::TimeOf(const Place& place) const {
  return place.eligible_ ? place.vtime_ : std::max(place.vtime_, floor_);
}

RowQueue::Place* RowQueue::ChooseByTime(LookAt look, Step* step) {
  for (auto it = by_time_.begin(); it != by_time_.end();) {
    Place* const place = (it++)->second;
    const std::optional<Step> found = look(*place);
    if (!found.has_value()) {
      place->eligible_ = false;
      continue;
    }
    const double vtime = TimeOf(*place);
    place->eligible_ = true;
    Move(place, vtime, place->first_);
    // It starts later than others after its pause, so it comes up again after
    // them.
    if (it != by_time_.end() && it->first < InTime(*place)) continue;
    *step = *found;
    return place;
  }
  return nullptr;
}

// Among the streams whose first rows are in `from` or later, returns the one
// whose next row is in the earliest step before `until`.
RowQueue::Place* RowQueue::ChooseEarlier(LookAt look, const Step& from,
                                         const Step& until) const {
  constexpr double kEarliest = -std::numeric_limits<double>::infinity();
  Place* chosen = nullptr;
  Step best = until;
  for (auto it = by_step_.lower_bound({from, kEarliest, 0});
       it != by_step_.end() && std::get<Step>(it->first) < best; ++it) {
    Place* const place = it->second;
    const std::optional<Step> found = look(*place);
    if (!found.has_value() || *found >= best) continue;
    chosen = place;
    best = *found;
  }
  return chosen;
}

RowQueue::Place* RowQueue::Choose(LookAt look, uint64_t steps_per_epoch,
                                  uint64_t cohort_steps) {
  Step step;
  Place* const fair = ChooseByTime(look, &step);
  if (fair == nullptr) return nullptr;
  floor_ = std::max(floor_, fair->vtime_);
  Place* const earlier =
      ChooseEarlier(look, Before(step, cohort_steps, steps_per_epoch), step);
  if (earlier == nullptr) return fair;
  const double vtime = TimeOf(*earlier);
  earlier->eligible_ = true;
  Move(earlier, vtime, earlier->first_);
  return earlier;
}

}  // namespace leat::worker
