// SPDX-License-Identifier: Apache-2.0
//
// Shows the sources of a mixture: their shares, and where each is by the job's
// position. It is computed from the job's spec, without a report.
#pragma once

#include <string>

#include "client/cli/base/fields.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// `job`: a JobSummary; `consumers`: those of the job. Says how exactly the shares
// hold in a batch, and in the rows of these consumers. Returns an empty section
// if the job is no mixture.
Section SourcesOf(const Json& job, const Json& consumers);

// `spec`: a JobSpec. Returns "web, books and 3 more"; "-" if the job is no
// mixture.
std::string SourceNames(const Json& spec);

}  // namespace leat::cli
