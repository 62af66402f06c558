// SPDX-License-Identifier: Apache-2.0
//
// Shows the service on one screen, or only its findings. These are pure
// functions of the coordinator's answers. A muted finding is shown, but does
// not count.
#pragma once

#include "absl/time/time.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// `status` is a leat.v1.GetStatusResponse.
View StatusView(Json status, absl::Time now);
// Shows only the findings, each with its remedy.
View HealthView(const Json& status, absl::Time now);
// Returns true if a finding that is not muted is an error.
bool Unhealthy(const Json& status);

}  // namespace leat::cli
