// SPDX-License-Identifier: Apache-2.0
//
// The access tokens that the coordinator tells a worker, as rpc::Access takes
// them.
#pragma once

#include <memory>

#include "core/cluster/roles.h"
#include "leat/v1/coordinator.pb.h"

namespace leat::worker {

// Without entries that are malformed, of a role that this version does not
// know, or beyond kMaxAccessTokens: their holders are refused.
std::shared_ptr<const AccessTokens> TokensIn(
    const v1::KnownAccessTokens& message);

}  // namespace leat::worker
