// SPDX-License-Identifier: Apache-2.0
//
// FindingWatch: which findings came and went, from one look to the next.
//
// A finding is the same one while its code and its first subject are: figures
// in its sentence may change. One that is worse than before came anew. One that
// comes and goes by the second is not told each time: it has gone when it was
// not there for `gone_after`.
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
    bool came = false;  // else it went
    Finding finding;
    Duration lasted{0};  // of one that went
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

  const Duration gone_after_;
  std::map<Key, Standing> standing_;
};

}  // namespace leat::server
