// SPDX-License-Identifier: Apache-2.0
//
// ListingTrail: what the listing of an arrangement has found out by reading
// records. It is kept in parts beside the index, so that a listing that is cut
// short goes on at another worker. That one walks the samples from the first
// on, too, but has the results of the trail instead of reading:
//
//   first listing    reads 0 ... 4,095 | 4,096 ... 8,191 |   dies
//                          └─ part 0 ──┴───── part 1 ───┘
//   second listing   takes 0 ... 4,095 | 4,096 ... 8,191 | reads 8,192 ...
//
// A result belongs to samples of one base: it has a hash of both. Where the next
// result is of others, the trail ends, and what is left of it is replaced.
//
// A part is kept every second at first, and later at every fiftieth of the time
// that the listing has taken, so that a listing of any length has some hundred
// parts, and loses 2 % of its work at most.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "leat/stored/v1/indexes.pb.h"

namespace leat::worker {

// ListingProgress says how many samples a listing has walked, and of how many.
struct ListingProgress {
  uint64_t walked = 0;  // samples
  uint64_t of = 0;      // 0: not known
};

// Where the parts of a trail are kept.
class TrailKeeper {
 public:
  virtual ~TrailKeeper() = default;
  // Returns a part that was kept; nullopt: there is none, or it cannot be read.
  virtual absl::StatusOr<std::optional<std::string>> Fetch(size_t part) = 0;
  // Keeps a part, in place of this one and all behind it. "": only tells how
  // far the listing is. An error ends the listing.
  virtual absl::Status Keep(size_t part, std::string bytes,
                            const ListingProgress& progress) = 0;
};

class ListingTrail {
 public:
  struct Options {
    Duration first_interval = std::chrono::seconds(1);
    size_t part_bytes = 4 << 20;  // a part is kept when it has as many
    const Clock* clock = &Clock::Real();
  };

  // `keeper` outlives it; nullptr: nothing is kept. `base`: its fingerprint.
  // `of`: how many samples are walked; 0: not known.
  ListingTrail(const Digest& base, uint64_t of, TrailKeeper* keeper,
               const Options& options);
  ListingTrail(const Digest& base, uint64_t of, TrailKeeper* keeper)
      : ListingTrail(base, of, keeper, Options{}) {}

  // Returns what was found out about these samples before; nullopt: they have
  // to be read, and then Add is called. The result is as it was added, or
  // hostile bytes. Errors: the keeper's.
  absl::StatusOr<std::optional<std::string>> Take(
      std::span<const uint64_t> samples);
  // Drops the result that Take has returned last, and all behind it: it is
  // malformed.
  void Refuse();
  void Add(std::span<const uint64_t> samples, std::string result);
  // Says that some more samples have been walked. Errors: the keeper's.
  absl::Status Walked(uint64_t samples);

  uint64_t taken() const { return taken_; }  // samples

 private:
  // Ends what earlier listings have left; its results that were taken stay.
  void EndEarlier();

  const Digest base_;
  TrailKeeper* const keeper_;
  const Options options_;
  const MonotonicTime begun_;
  MonotonicTime next_;
  ListingProgress progress_;
  bool earlier_;            // parts of an earlier listing may be there
  size_t part_ = 0;         // that `results_` is of
  size_t next_result_ = 0;  // of results_, if they are an earlier listing's
  stored::v1::ListingTrail results_;
  size_t bytes_ = 0;  // of results_, if they are this listing's
  uint64_t taken_ = 0, last_taken_ = 0;
};

}  // namespace leat::worker
