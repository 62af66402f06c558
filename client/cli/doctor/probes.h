// SPDX-License-Identifier: Apache-2.0
//
// What `leat doctor` tries out when it is told where: how long a folder takes
// to keep a write, and whether data can be read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/fields.h"
#include "client/cli/doctor/doctor.h"

namespace leat::cli {

// Writes a small file of its own in `folder` and syncs it, a few times over;
// the slowest but one. The file is gone afterwards. kFailedPrecondition: that
// cannot be done there (says why).
absl::StatusOr<absl::Duration> MeasureSync(const std::string& folder);

Diagnosis DiagnoseSync(const std::string& folder,
                       const absl::StatusOr<absl::Duration>& slow);
// `report`: of ListDataset.
Diagnosis DiagnoseData(const std::string& uri,
                       const absl::StatusOr<Json>& report);

}  // namespace leat::cli
