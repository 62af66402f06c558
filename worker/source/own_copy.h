// SPDX-License-Identifier: Apache-2.0
//
// Whether a machine has the files that were listed, or a copy of its own.
//
// Some of the files, spread evenly, are compared with the listing. If none of
// them has the time that was listed, all were copied or touched: then a file's
// time is compared with the one that this machine saw first. If any has it,
// these are the files that were listed, and a file of another time has changed.
// A set of one file that is rewritten before it is read first counts as a copy;
// its size, and its format's checks, are what tells then.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/log.h"

namespace leat::worker {

// `is_listed(i)`: whether file i is as it was listed. `name`: of the first, for
// the log.
inline bool IsOwnCopy(uint64_t files, std::string_view name,
                      const std::function<bool(uint64_t)>& is_listed) {
  constexpr uint64_t kLookedAt = 16;
  const uint64_t some = files < kLookedAt ? files : kLookedAt;
  for (uint64_t k = 0; k < some; ++k)
    if (is_listed(files / some * k)) return false;
  LOG_INFO("source.copy first=\"{}\" files={} looked_at={}", name, files, some);
  return true;
}

}  // namespace leat::worker
