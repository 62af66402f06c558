// SPDX-License-Identifier: Apache-2.0
//
// Shows the content of rows and its origin. A pure function of a worker's
// answer.
#pragma once

#include <cstdint>
#include <string_view>

#include "client/cli/base/view.h"

namespace leat::cli {

struct WhichRows {
  std::string_view job;
  uint64_t epoch = 0, step = 0;
  bool one = false;  // a row was named: it is shown in full
};

// `rows`: a list of leat.v1.ExplainedRow.
View WhyView(const WhichRows& which, const Json& rows);

}  // namespace leat::cli
