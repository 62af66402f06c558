// SPDX-License-Identifier: Apache-2.0
//
// The service on one screen, and its findings. Pure functions of the
// coordinator's answers. A finding that is muted is shown, and counts for
// nothing.
#pragma once

#include "absl/time/time.h"
#include "client/cli/view.h"

namespace leat::cli {

// `status`: GetStatusResponse.
View StatusView(Json status, absl::Time now);
// The findings alone, each with what to do about it.
View HealthView(const Json& status, absl::Time now);
// True if a finding that is not muted is an error.
bool Unhealthy(const Json& status);

}  // namespace leat::cli
