// SPDX-License-Identifier: Apache-2.0
//
// Decides whether files of a folder that --local-copy names have different
// times than the listed ones.
//
// Some of the files, spread evenly, are compared with the listing. If none of
// them has the listed time, the copy did not keep times: then a file's time is
// compared with the one that this machine saw first. If any has it, the copy
// kept times, and a file with another time has changed. Files of any other
// folder must be those that were listed: one that was rewritten at the same
// size before its first read must not pass for a copy.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/log.h"

namespace leat::worker {

// `is_listed(i)`: whether file i is as it was listed, and is a copy. `name`: a
// file's, for the log.
inline bool HasOwnTimes(uint64_t files, std::string_view name,
                        const std::function<bool(uint64_t)>& is_listed) {
  constexpr uint64_t kLookedAt = 16;
  const uint64_t some = files < kLookedAt ? files : kLookedAt;
  for (uint64_t k = 0; k < some; ++k)
    if (is_listed(files / some * k)) return false;
  LOG_INFO("source.copy first=\"{}\" files={} looked_at={}", name, files, some);
  return true;
}

}  // namespace leat::worker
