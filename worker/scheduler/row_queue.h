// SPDX-License-Identifier: Apache-2.0
//
// RowQueue: whose rows are next, among the streams of a job.
//
// Start-time fair queueing: a stream's virtual time is the time that was spent
// on it. The one with the least is next; the floor is that of the last one
// chosen, and who has rows again after a pause starts no lower. A stream with
// an earlier step goes before it, if its step is no more than a cohort earlier:
// of these the earliest, so that a batch that many streams are part of is
// complete soon.
//
// Whether a stream has a row that may begin depends on more than itself:
// memory, devices, consumers that do not read. So the queue asks, in the order
// of virtual times, until one has. It keeps two orders, by virtual time and by
// step: a choice costs the logarithm of the number of streams, and a look at
// each stream before the chosen one that has to wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"

namespace leat::worker {

// Thread-compatible.
class RowQueue {
 public:
  using Step = std::pair<uint64_t, uint64_t>;  // after its epoch

  // A stream's place in the queue, which it must leave before it ends.
  class Place {
   public:
    bool queued() const { return queued_; }
    double vtime() const { return vtime_; }

   private:
    friend class RowQueue;
    uint64_t number_ = 0;  // decides between equals: who came first
    bool queued_ = false;
    bool eligible_ = false;  // had a row when it was looked at last
    double vtime_ = 0;
    Step first_;
  };

  // The step of the stream's next row; none: it has to wait.
  using LookAt = absl::FunctionRef<std::optional<Step>(Place&)>;

  // The stream has rows that have not begun, the first of them in `first`. It
  // is in the queue from here on.
  void Put(Place* place, const Step& first);
  // It has none.
  void Remove(Place* place);
  // So many nanoseconds more, or less, were spent on it.
  void Spend(Place* place, double ns);

  // The stream whose row is next; null: none has one. `look` must not change
  // the queue.
  Place* Choose(LookAt look, uint64_t steps_per_epoch, uint64_t cohort_steps);

  size_t size() const { return by_time_.size(); }

 private:
  using TimeKey = std::pair<double, uint64_t>;
  using StepKey = std::tuple<Step, double, uint64_t>;

  static TimeKey InTime(const Place& place) {
    return {place.vtime_, place.number_};
  }
  static StepKey InStep(const Place& place) {
    return {place.first_, place.vtime_, place.number_};
  }

  // Puts it where its new time and step belong.
  void Move(Place* place, double vtime, const Step& first);
  // Its virtual time, if it has a row now.
  double TimeOf(const Place& place) const;
  Place* ChooseByTime(LookAt look, Step* step);
  Place* ChooseEarlier(LookAt look, const Step& from, const Step& until) const;

  std::map<TimeKey, Place*> by_time_;
  std::map<StepKey, Place*> by_step_;
  uint64_t next_number_ = 1;
  double floor_ = 0;
};

}  // namespace leat::worker
