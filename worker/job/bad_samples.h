// SPDX-License-Identifier: Apache-2.0
//
// BadSamples: collects the samples that could not be computed, for reports. It
// describes at most `per_job` different samples of `max_jobs` jobs between two
// reports. It counts all of them, as numbers without text; beyond `max_counted`
// that were not delivered yet, they are dropped until a later epoch meets them
// again. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "core/mutex.h"

namespace leat::worker {

class BadSamples {
 public:
  struct Entry {
    std::string record;
    std::string reason;
    uint64_t count = 0;  // since the last Take
  };
  using Report = std::map<std::string, std::map<uint64_t, Entry>>;  // by job
  using Counted = std::map<Digest, std::set<uint64_t>>;  // by plan hash

  explicit BadSamples(size_t per_job = 100, size_t max_jobs = 100,
                      size_t max_counted = 1 << 20)
      : per_job_(per_job), max_jobs_(max_jobs), max_counted_(max_counted) {}

  // Keeps both texts as UTF-8 and cuts them, since reports are messages: names
  // in an archive, and what a decoder quotes, may be any bytes, and many.
  void Add(std::string_view job, uint64_t sample, std::string_view record,
           std::string_view reason);
  void Count(const Digest& plan, uint64_t sample);
  // Returns what was added since the last call.
  Report Take();
  // Returns at most `limit` of the samples that were counted and not taken yet.
  Counted TakeCounted(size_t limit);
  // Puts back what could not be delivered.
  void Return(const Report& report);
  void ReturnCounted(const Counted& counted);
  uint64_t total() const { return total_.load(); }

 private:
  void Merge(const std::string& job, uint64_t sample, const Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLocked(const Digest& plan, uint64_t sample)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t per_job_, max_jobs_, max_counted_;
  std::atomic<uint64_t> total_{0};
  Mutex mu_;
  Report report_ ABSL_GUARDED_BY(mu_);
  Counted counted_ ABSL_GUARDED_BY(mu_);
  size_t num_counted_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace leat::worker
