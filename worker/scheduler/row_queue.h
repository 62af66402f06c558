// SPDX-License-Identifier: Apache-2.0
//
// RowQueue: decides which of a job's streams computes the next row.
//
// It uses start-time fair queueing: a stream's virtual time is the time that
// was spent on it. The stream with the least is next; the floor is the virtual
// time of the last one chosen, and a stream that has rows again after a pause
// starts no lower. A stream with an earlier step goes first if its step is at
// most a cohort earlier; among several such streams, the earliest. So a batch
// that many streams take part in is complete soon.
//
// Whether a stream has a row that may begin depends on more than the stream: on
// memory, devices, and consumers that do not read. So the queue calls `look`,
// in the order of virtual times, until one has. It keeps two orders, by virtual
// time and by step. A choice costs the logarithm of the number of streams, and
// one call for each stream before the chosen one that has to wait.
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
    uint64_t number_ = 0;  // decides between equals: the first comer
    bool queued_ = false;
    bool eligible_ = false;  // had a row at the last look
    double vtime_ = 0;
    Step first_;
  };

  // Returns the step of the stream's next row; nullopt: it has to wait.
  using LookAt = absl::FunctionRef<std::optional<Step>(Place&)>;

  // The stream has rows that have not begun, the first of them in `first`. It
  // is in the queue from here on.
  void Put(Place* place, const Step& first);
  // The stream has no such rows.
  void Remove(Place* place);
  // Adds `ns` nanoseconds, perhaps negative, to the time spent on it.
  void Spend(Place* place, double ns);

  // Returns the stream whose row is next; nullptr if none has one. `look` must
  // not change the queue.
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

  // Moves it to where its new time and step belong.
  void Move(Place* place, double vtime, const Step& first);
  // Returns its virtual time, if it has a row now.
  double TimeOf(const Place& place) const;
  Place* ChooseByTime(LookAt look, Step* step);
  Place* ChooseEarlier(LookAt look, const Step& from, const Step& until) const;

  std::map<TimeKey, Place*> by_time_;
  std::map<StepKey, Place*> by_step_;
  uint64_t next_number_ = 1;
  double floor_ = 0;
};

}  // namespace leat::worker
