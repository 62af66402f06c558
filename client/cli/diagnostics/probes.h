// SPDX-License-Identifier: Apache-2.0
//
// Probes of `leat doctor`, run on request: how long a folder takes to sync a
// write, and whether data can be read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/fields.h"
#include "client/cli/diagnostics/diagnostics.h"

namespace leat::cli {

// Writes a small file of its own in `folder` and syncs it, several times;
// returns the second slowest time. The file is removed. kFailedPrecondition:
// this is not possible there (says why).
absl::StatusOr<absl::Duration> MeasureSync(const std::string& folder);

Diagnosis DiagnoseSync(const std::string& folder,
                       const absl::StatusOr<absl::Duration>& slow);
// `report`: from ListDataset.
Diagnosis DiagnoseData(const std::string& uri,
                       const absl::StatusOr<Json>& report);

}  // namespace leat::cli
