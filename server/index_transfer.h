// SPDX-License-Identifier: Apache-2.0
//
// The calls that move an index: up from the worker that listed a dataset, down
// to those that serve it.
#pragma once

#include <string>

#include "core/clock.h"
#include "grpcpp/support/server_callback.h"
#include "leat/v1/coordinator.pb.h"
#include "server/coordinator.h"

namespace leat::server {

// Both delete themselves when the call is over.
grpc::ServerWriteReactor<v1::GetIndexResponse>* StartGetIndex(
    Coordinator* coordinator, std::string dataset_id);
grpc::ServerReadReactor<v1::UploadIndexRequest>* StartUploadIndex(
    Coordinator* coordinator, const Clock* clock);

}  // namespace leat::server
