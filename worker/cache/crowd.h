// SPDX-License-Identifier: Apache-2.0
//
// Crowd: whether others alone have as many threads that want to run as the
// machine has processors, as Linux counts them over all groups of processes.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace leat::worker {

class Crowd {
 public:
  Crowd();
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  // `ours`: threads that run or want to, the calling one included. False where
  // the system does not say.
  bool IsThere(size_t ours) const;

  // The threads that run or want to, of the text of /proc/loadavg.
  static std::optional<size_t> RunnableOf(std::string_view loadavg);

 private:
  const int fd_;  // -1: there is none
  const size_t processors_;
};

}  // namespace leat::worker
