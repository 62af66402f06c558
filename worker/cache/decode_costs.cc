// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/decode_costs.h"

#include <algorithm>
#include <utility>

namespace leat::worker {

uint64_t DecodeCosts::LookAgain() {
  for (size_t way = 0; way < kDecodeWays; ++way) {
    const uint64_t counted = count[way], took = ns[way];
    if (counted - count_before[way] < kLeastMeasured) continue;
    mean_ns[way] = static_cast<double>(took - ns_before[way]) /
                   static_cast<double>(counted - count_before[way]);
    count_before[way] = counted;
    ns_before[way] = took;
  }
  const uint64_t now = asked;
  return now - std::exchange(asked_before, now);
}

double DecodeCosts::SavedNs(JpegFormKind kind) const {
  const uint64_t plainly = count[0], plain_ns = ns[0];
  const uint64_t by_form = count[WayOf(kind)], form_ns = ns[WayOf(kind)];
  const double would_take = plainly == 0 ? 0
                                         : static_cast<double>(plain_ns) /
                                               static_cast<double>(plainly) *
                                               static_cast<double>(by_form);
  return would_take - static_cast<double>(form_ns);
}

std::optional<Duration> DecodeCosts::CostOf(JpegFormKind kind,
                                            size_t file_bytes) const {
  const std::optional<Duration> plainly = plain.Of(file_bytes);
  if (!plainly) return std::nullopt;
  if (const std::optional<Duration> cost = making[WayOf(kind)].Of(file_bytes))
    return std::max(Duration(0), *cost);
  return std::chrono::duration_cast<Duration>(*plainly *
                                              usual[WayOf(kind)].making);
}

Duration DecodeCosts::TimeOf(std::optional<JpegFormKind> kind,
                             size_t file_bytes, Duration plainly) const {
  if (!kind) return plainly;
  const auto usually =
      std::chrono::duration_cast<Duration>(plainly * usual[WayOf(*kind)].time);
  return std::min(usually,
                  by_form[WayOf(*kind)].Of(file_bytes).value_or(usually));
}

}  // namespace leat::worker
