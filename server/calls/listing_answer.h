// SPDX-License-Identifier: Apache-2.0
//
// What a worker answers when it was asked to list a dataset, or to look at one.
#pragma once

#include "core/clock.h"
#include "leat/v1/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// `done` runs once, when the answer is durable or refused: see UploadIndex in
// coordinator.proto. Whoever waits for the listing is told of a refusal, too.
void TakeListingAnswer(Coordinator* coordinator, Now now,
                       const v1::UploadIndexRequest& request,
                       const Coordinator::Done& done);

}  // namespace leat::server
