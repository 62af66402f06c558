// SPDX-License-Identifier: Apache-2.0
//
// BadSamples: which samples could not be computed, for reports. Bounded: at
// most `per_job` different samples of `max_jobs` jobs between two reports; all
// are counted. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

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

  explicit BadSamples(size_t per_job = 100, size_t max_jobs = 100)
      : per_job_(per_job), max_jobs_(max_jobs) {}

  void Add(std::string_view job, uint64_t sample, std::string_view record,
           std::string_view reason);
  // What was added since the last call.
  Report Take();
  // Puts back what could not be delivered.
  void Return(const Report& report);
  uint64_t total() const { return total_.load(); }

 private:
  void Merge(const std::string& job, uint64_t sample, const Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t per_job_, max_jobs_;
  std::atomic<uint64_t> total_{0};
  Mutex mu_;
  Report report_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::worker
