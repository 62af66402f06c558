// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on the counts of reports. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace leat::server {

// A worker that reports more threads has as many.
inline constexpr uint32_t kMostThreads = 1 << 20;

// Returns by how much a count has grown; 0 if it began again.
inline uint64_t Grown(uint64_t before, uint64_t after) {
  return after > before ? after - before : 0;
}

inline double SecondsOf(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace leat::server
