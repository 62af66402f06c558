// SPDX-License-Identifier: Apache-2.0
//
// What limits a job, for people. A pure function of the coordinator's answer.
#pragma once

#include <string>

#include "client/cli/base/view.h"

namespace leat::cli {

// "decode and augment (58 s)": what a JobSummary says, with how long it was
// looked at; empty: nobody pulls.
std::string LimitText(const Json& job);
// `answer`: GetBottleneckResponse.
View BottleneckView(Json answer);

}  // namespace leat::cli
