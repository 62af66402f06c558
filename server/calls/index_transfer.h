// SPDX-License-Identifier: Apache-2.0
//
// The calls that move an index: up from the worker that listed a dataset, down
// to those that serve it.
#pragma once

#include <string>

#include "core/clock.h"
#include "grpcpp/support/server_callback.h"
#include "leat/v1/coordinator.pb.h"
#include "server/calls/block_transfer.h"
#include "server/coordinator/coordinator.h"

namespace leat::server {

// Both delete themselves when the call is over. What they are given outlives
// them. A call that brings an index takes the bytes of one that comes whole; an
// index in blocks is in memory block by block.
grpc::ServerWriteReactor<v1::GetIndexResponse>* StartGetIndex(
    Coordinator* coordinator, const Clock* clock, std::string dataset_id,
    TransferSlots* slots);
grpc::ServerReadReactor<v1::UploadIndexRequest>* StartUploadIndex(
    Coordinator* coordinator, const Clock* clock, TransferSlots* bytes);

}  // namespace leat::server
