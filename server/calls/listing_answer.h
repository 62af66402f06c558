// SPDX-License-Identifier: Apache-2.0
//
// Handles a worker's answer to a request to list a dataset, or to look at it.
#pragma once

#include "core/clock.h"
#include "leat/v1/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// Calls `done` once, when the answer is durable or refused: see UploadIndex in
// coordinator.proto. Callers that wait for the listing get a refusal too.
void TakeListingAnswer(Coordinator* coordinator, Now now,
                       const v1::UploadIndexRequest& request,
                       const Coordinator::Done& done);

}  // namespace leat::server
