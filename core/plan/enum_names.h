// SPDX-License-Identifier: Apache-2.0
//
// The names of JobSpec's enumerators, for job.cc and checked_job.cc.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "core/plan/job.h"
#include "core/status.h"

namespace leat::enum_names {

template <class Enum>
using Names = std::pair<Enum, std::string_view>;

inline constexpr std::array<Names<Order>, 3> kOrders = {{
    {Order::kSequential, "sequential"},
    {Order::kGlobalShuffle, "global"},
    {Order::kShardShuffle, "shard"},
}};
inline constexpr std::array<Names<LastBatch>, 6> kLastBatches = {{
    {LastBatch::kDrop, "drop"},
    {LastBatch::kFill, "fill"},
    {LastBatch::kPad, "pad"},
    {LastBatch::kPartial, "partial"},
    {LastBatch::kStream, "stream"},
    {LastBatch::kMask, "mask"},
}};
inline constexpr std::array<Names<DecoderClass>, 4> kDecoderClasses = {{
    {DecoderClass::kExact, "exact"},
    {DecoderClass::kNvjpeg, "nvjpeg"},
    {DecoderClass::kAuto, "auto"},
    {DecoderClass::kNvjpegShared, "nvjpeg_shared"},
}};
inline constexpr std::array<Names<BadSamplePolicy>, 3> kPolicies = {{
    {BadSamplePolicy::kFail, "fail"},
    {BadSamplePolicy::kReplace, "replace"},
    {BadSamplePolicy::kZero, "zero"},
}};

template <class Enum, size_t kSize>
std::string_view NameIn(const std::array<Names<Enum>, kSize>& names,
                        Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "unknown";
}

template <class Enum, size_t kSize>
absl::Status CheckEnum(std::string_view field,
                       const std::array<Names<Enum>, kSize>& names,
                       Enum value) {
  std::string expected;
  for (const auto& [known, name] : names) {
    if (known == value) return absl::OkStatus();
    if (!expected.empty()) expected += ", ";
    expected += name;
  }
  return InvalidArgument("{} {}: want one of {}", field,
                         static_cast<int>(value), expected);
}

inline constexpr std::array<Names<MixEnd>, 3> kMixEnds = {{
    {MixEnd::kStream, "stream"},
    {MixEnd::kFirst, "first"},
    {MixEnd::kAll, "all"},
}};

}  // namespace leat::enum_names
