// SPDX-License-Identifier: Apache-2.0
//
// Checks BatchesOptions, and derives values from them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/fetch/transport.h"
#include "client/leat/client.h"

namespace leat::client {

// kInvalidArgument: names the option, its value, and what was expected.
absl::Status CheckOptions(const BatchesOptions& options);

// Returns the transport that the environment selects.
absl::StatusOr<Transport> TransportFromEnvironment(
    const BatchesOptions& options);

// Returns how many steps in flight, plus two delivered ones, fit the limit.
uint32_t BoundedWindow(const BatchesOptions& options, size_t batch_bytes);

}  // namespace leat::client
