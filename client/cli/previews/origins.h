// SPDX-License-Identifier: Apache-2.0
//
// Origins says where the rows of a job come from. A value; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/base/fields.h"
#include "core/observe/previews.h"

namespace leat::cli {

class Origins {
 public:
  // `job`: a leat.v1.Job.
  explicit Origins(const Json& job);

  // Valid as long as this object.
  RowOrigin Of(uint64_t sample) const;

 private:
  const bool mixed_;
  std::vector<std::vector<std::string>> classes_;  // of each dataset
  std::vector<uint64_t> ends_;                     // of a mixture's samples
  std::vector<std::string> names_;
};

// Returns "dataset photos", or in a mixture "3 datasets".
std::string DatasetsText(const Json& job);

}  // namespace leat::cli
