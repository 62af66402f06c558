// SPDX-License-Identifier: Apache-2.0
//
// Names of a reader's outputs and of its records, as conditions and groups have
// them. They are the same on every machine, and of a copy of the data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/pipeline/graph.h"
#include "worker/source/source.h"

namespace leat::worker {

// Returns the names of the reader's `count` outputs. An output without a name
// has "".
std::vector<std::string> OutputNames(const Node& reader, size_t count);

// Immutable; thread-safe.
class RecordNames {
 public:
  explicit RecordNames(const Node& reader);

  // Returns the record's key in its file. Where it has none, returns the place
  // of its file below the reader's folder; or, if that is no folder, the file's
  // path, or its place below the bucket or host.
  std::string NameOf(const RecordPlace& place) const;

 private:
  const std::string folder_, root_;  // with a slash at the end
};

}  // namespace leat::worker
