// SPDX-License-Identifier: Apache-2.0
//
// Shows the classes whose rows a job deals out in shares: what each class has,
// and where it is by the job's position. It is computed from the job's spec and
// datasets, without a report.
#pragma once

#include <vector>

#include "client/cli/base/view.h"

namespace leat::cli {

// `job`: a JobSummary. Returns a section for each dataset whose classes have
// shares, of the first few sources in a mixture.
std::vector<Section> GroupsOf(const Json& job);

}  // namespace leat::cli
