// SPDX-License-Identifier: Apache-2.0
//
// Shows what limits a job. A pure function of the coordinator's answer.
#pragma once

#include <string>

#include "client/cli/base/view.h"

namespace leat::cli {

// Returns "decode and augment (58 s)": a JobSummary's limit, with the judged
// period; empty: no consumer pulls.
std::string LimitText(const Json& job);
// `answer`: GetBottleneckResponse.
View BottleneckView(Json answer);

}  // namespace leat::cli
