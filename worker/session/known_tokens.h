// SPDX-License-Identifier: Apache-2.0
//
// Converts the access tokens that the coordinator sends a worker for
// rpc::Access.
#pragma once

#include <memory>

#include "core/cluster/roles.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::worker {

// Leaves out entries that are malformed, have a role that this version does not
// know, or exceed kMaxAccessTokens: their holders are refused.
std::shared_ptr<const AccessTokens> TokensIn(
    const v1::KnownAccessTokens& message);

}  // namespace leat::worker
