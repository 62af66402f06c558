// SPDX-License-Identifier: Apache-2.0
//
// FormHorizon: how often the records of a dataset will still be decoded, as
// reported by the iterators that read it. A form is not made if too few decodes
// will use it to pay for it.
//
//   an iterator that reports its end   its share of each step's rows, times
//                                      the epochs not requested yet
//   one that does not, or has no end   without bound
//   one that comes after others have   without bound: scripts that open an
//   read the dataset to their end      iterator for each epoch, and
//                                      evaluations in a training, read it again
//                                      and again
//   no iterator                        without bound: nothing is known
//
// For example, two hosts each read half of each step's rows, from epoch 3 to
// the end of epoch 4. A record that is decoded in epoch 3 will be decoded once
// more; one that is decoded in epoch 4 will not.
//
// Thread-safe; costs nothing while an iterator is without bound.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>

#include "core/hash.h"
#include "core/mutex.h"

namespace leat::worker {

// IteratorEnd: what an iterator reports about its end when it opens.
struct IteratorEnd {
  uint64_t end_epoch = 0;  // the first that it does not deliver; 0: none
  uint32_t rows = 0;       // that it wants per step; 0: all
};

class FormHorizon : public std::enable_shared_from_this<FormHorizon> {
 public:
  static constexpr double kWithoutBound =
      std::numeric_limits<double>::infinity();

  struct Iterator {
    Digest job{};
    double share = 1;        // of each step's rows
    uint64_t end_epoch = 0;  // as IteratorEnd
    uint64_t steps_per_epoch = 1;
  };

  // An iterator reads while this exists.
  class Reading {
   public:
    Reading(std::shared_ptr<FormHorizon> horizon, const Iterator& iterator);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    // The iterator requests rows of this step.
    void At(uint64_t epoch, uint64_t step);

   private:
    friend class FormHorizon;
    // Returns the position in epochs. REQUIRES: asked_.
    double position() const;

    const std::shared_ptr<FormHorizon> horizon_;
    const Iterator iterator_;
    bool bounded_ = false;  // constant once constructed
    // Guarded by the horizon's lock.
    uint64_t epoch_ = 0, step_ = 0;
    bool asked_ = false;
  };

  // Returns how often a record that a row of the job's epoch decodes will be
  // decoded after that.
  double UsesAfter(const Digest& job, uint64_t epoch) const;
  // Returns how often a record will be decoded from now on, on average; 0 while
  // no iterator reads.
  double UsesLeft() const;

 private:
  // Once iterators have read this share of a dataset to their ends, iterators
  // that come later count as unbounded.
  static constexpr double kRead = 0.5;

  bool IsWithoutBound() const { return unbounded_ > 0 || readings_ == 0; }

  std::atomic<int> readings_{0}, unbounded_{0};
  mutable Mutex mu_;
  std::list<const Reading*> bounded_ ABSL_GUARDED_BY(mu_);
  double read_to_end_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
