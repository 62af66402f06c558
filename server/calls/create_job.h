// SPDX-License-Identifier: Apache-2.0
//
// Serves CreateJob: it tells the caller what it waits for, and then answers.
//
//   coordinator: Tell("worker w1 lists ...")  ─► a response with `waiting`
//                Tell, while one is written   ─► dropped: the next one is newer
//                Answer(job)                  ─► a response with `job`, the end
//   the caller cancels                        ─► CancelWait, the end
//
// The first of Answer and the cancellation ends the call, and the second finds
// that it is over. The coordinator's callbacks share the call, because they may
// run after it is over.
#pragma once

#include "core/clock.h"
#include "grpcpp/support/server_callback.h"
#include "leat/v1/coordinator.pb.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// The call deletes itself when it is over. The coordinator outlives it.
grpc::ServerWriteReactor<v1::CreateJobResponse>* StartCreateJob(
    Coordinator* coordinator, const JobSpec& spec, const JobCreator& by,
    Relist relist, MonotonicTime deadline, Now now);

}  // namespace leat::server
