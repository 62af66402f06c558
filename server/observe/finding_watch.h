// SPDX-License-Identifier: Apache-2.0
//
// FindingWatch reports which findings appeared and disappeared between two
// looks.
//
// A finding stays the same while its code and its first subject do; numbers in
// its sentence may change. A finding whose severity rises appears anew. A
// finding that flickers is not reported each time: it has gone when it was
// absent for `gone_after`.
//
//   0 s   {stalled c}     came: stalled c
//   2 s   {}
//   4 s   {stalled c}     nothing: it was not gone
//   6 s   {}
//   16 s  {}              went: stalled c, after 16 s
//
// Thread-compatible. Reads no clock.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "server/state/types.h"

namespace leat::server {

class FindingWatch {
 public:
  struct Change {
    bool came = false;  // otherwise it went
    Finding finding;
    Duration lasted{0};  // if it went
  };

  explicit FindingWatch(Duration gone_after) : gone_after_(gone_after) {}

  std::vector<Change> Look(const std::vector<Finding>& findings,
                           MonotonicTime now);

 private:
  struct Standing {
    Finding finding;
    MonotonicTime since, seen;
  };
  using Key = std::pair<std::string, std::string>;  // code, first subject

  static Key KeyOf(const Finding& finding);

  const Duration gone_after_;
  std::map<Key, Standing> standing_;
};

}  // namespace leat::server
