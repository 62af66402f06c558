// SPDX-License-Identifier: Apache-2.0
//
// Converts times from and to messages. Times from the wire may have any value:
// they are clamped to the range of our types.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace leat::rpc {

inline google::protobuf::Duration ToProto(Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(duration / std::chrono::seconds(1));
  proto.set_nanos(
      static_cast<int32_t>((duration % std::chrono::seconds(1)).count()));
  return proto;
}

inline google::protobuf::Timestamp ToProto(WallTime time) {
  const Duration since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds.count());
  proto.set_nanos(static_cast<int32_t>((since - seconds).count()));
  return proto;
}

// Clamps to 270 years, in either direction.
inline Duration FromProto(const google::protobuf::Duration& proto) {
  constexpr int64_t kMost = 270ll * 366 * 86'400;
  constexpr int32_t kNanos = 999'999'999;
  return std::chrono::seconds(
             std::clamp<int64_t>(proto.seconds(), -kMost, kMost)) +
         std::chrono::nanoseconds(
             std::clamp<int32_t>(proto.nanos(), -kNanos, kNanos));
}

// Clamps to 1970 to 2200: nanoseconds end in 2262.
inline WallTime FromProto(const google::protobuf::Timestamp& proto) {
  constexpr int64_t kLast = 7'258'118'400;
  return WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::seconds(std::clamp<int64_t>(proto.seconds(), 0, kLast)) +
      std::chrono::nanoseconds(std::clamp(proto.nanos(), 0, 999'999'999))));
}

}  // namespace leat::rpc
