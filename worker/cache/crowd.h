// SPDX-License-Identifier: Apache-2.0
//
// Crowd: tells whether other processes alone have as many threads that want to
// run as the machine has processors, as Linux counts them over all groups of
// processes. Thread-compatible.
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

  // `ours`: this process's threads that run or want to run, including the
  // calling one. Returns false if the system does not say.
  bool IsThere(size_t ours) const;

  // Returns the threads that run or want to run, from the text of
  // /proc/loadavg.
  static std::optional<size_t> RunnableOf(std::string_view loadavg);

 private:
  const int fd_;  // -1: there is none
  const size_t processors_;
};

}  // namespace leat::worker
