// SPDX-License-Identifier: Apache-2.0
//
// Shows one entity in full. These are functions only of the coordinator's
// answers.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// `job`: a JobSummary; `workers`, `consumers`: the lists' items, for all jobs.
View DescribeJob(const Json& job, const Json& workers, const Json& consumers,
                 absl::Time now);
View DescribeWorker(const Json& worker, absl::Time now);
// `dataset`: a DatasetSummary.
View DescribeDataset(const Json& dataset, absl::Time now);

// One line per node: "%2 = flip(%1, horizontal=%3)", then the outputs.
std::vector<std::string> PipelineListing(const Json& graph);

}  // namespace leat::cli
