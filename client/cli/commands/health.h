// SPDX-License-Identifier: Apache-2.0
//
// The service is shown on one screen, and its findings alone. These are pure
// functions of the coordinator's answers. A finding that is muted is shown, but
// counts for nothing.
#pragma once

#include "absl/time/time.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// `status` is a leat.v1.GetStatusResponse.
View StatusView(Json status, absl::Time now);
// Shows the findings alone, each with what to do about it.
View HealthView(const Json& status, absl::Time now);
// Returns true if a finding that is not muted is an error.
bool Unhealthy(const Json& status);

}  // namespace leat::cli
