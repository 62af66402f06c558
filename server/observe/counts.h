// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on the counts of reports. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "leat/v1/types.pb.h"

namespace leat::server {

// A worker that reports more threads has as many.
inline constexpr uint32_t kMostThreads = 1 << 20;

// Returns by how much a count has grown; 0 if it began again.
inline uint64_t Grown(uint64_t before, uint64_t after) {
  return after > before ? after - before : 0;
}

// Returns the default if it was not reported.
inline const v1::StageStats& StageOf(
    const google::protobuf::RepeatedPtrField<v1::StageStats>& stages,
    v1::Stage stage) {
  for (const v1::StageStats& each : stages)
    if (each.stage() == stage) return each;
  return v1::StageStats::default_instance();
}

// Returns whether threads read ahead of the decode threads: they are counted in
// READ's waits. Without them, the decode threads read.
inline bool ReadsAhead(const v1::StageStats& read,
                       const v1::StageStats& decode) {
  return read.idle_ns_total() + read.output_ns_total() > 0 ||
         read.places() != decode.places();
}

inline double SecondsOf(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace leat::server
