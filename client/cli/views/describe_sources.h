// SPDX-License-Identifier: Apache-2.0
//
// Shows the sources of a mixture: their shares, and where each is by the job's
// position. It is computed from the job's spec, without a report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// Returns how many rows each source has had by the job's position; of a job
// that is no mixture, its rows. Empty if the shares cannot be read.
std::vector<uint64_t> RowsSoFar(const Json& job);

// "3 (4.8 %)": the pass over `samples`, and how much of it is done.
std::string PassText(uint64_t rows, uint64_t samples);

}  // namespace leat::cli
