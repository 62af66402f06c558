// SPDX-License-Identifier: Apache-2.0
//
// Shows the sources of a mixture: their shares, and where each is by the job's
// position. It is computed from the job's spec, without a report.
#pragma once

#include "client/cli/base/view.h"

namespace leat::cli {

// `job`: a JobSummary. Returns an empty section if the job is no mixture.
Section SourcesOf(const Json& job);

}  // namespace leat::cli
