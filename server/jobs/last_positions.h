// SPDX-License-Identifier: Apache-2.0
//
// LastPositions: where the last consumer of each job ended, for people. It is in
// memory only: after a restart nothing is known until a consumer ends again.
//
// Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/clock.h"

namespace leat::server {

struct LastPosition {
  uint64_t epoch = 0, step = 0;
  WallTime at;
};
using LastPositions = std::map<std::string, LastPosition>;  // by job

}  // namespace leat::server
