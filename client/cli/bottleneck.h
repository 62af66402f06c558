// SPDX-License-Identifier: Apache-2.0
//
// What limits a job, for people. A pure function of the coordinator's answer.
#pragma once

#include "client/cli/view.h"

namespace leat::cli {

// `answer`: GetBottleneckResponse.
View BottleneckView(Json answer);

}  // namespace leat::cli
