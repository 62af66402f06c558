// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorService: leat.v1.CoordinatorService over gRPC. It translates and
// forwards; it decides nothing.
//
// WorkerSession, step by step: register -> Coordinator::RegisterWorker; the
// welcome and waiting messages are sent; each heartbeat ->
// Coordinator::Heartbeat; after each `wake` or written message the next
// messages are pulled, a few at a time, so that a slow worker gets the newest
// assignment and not a queue of old ones. ConsumerSession is the same with
// assignments only.
#pragma once

#include "core/clock.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "rpc/access/access.h"
#include "server/calls/block_transfer.h"
#include "server/calls/handle.h"
#include "server/calls/list_blocks.h"
#include "server/coordinator/coordinator.h"
#include "server/relays/sheet_relay.h"
#include "server/relays/span_relay.h"

namespace leat::server {

// All methods use callbacks; ConsumerSession uses raw messages.
using CoordinatorBlocksBase =
    v1::CoordinatorService::WithCallbackMethod_GetIndexBlocks<
        v1::CoordinatorService::WithCallbackMethod_GetIndexBlock<
            v1::CoordinatorService::WithCallbackMethod_FindIndexBlocks<
                v1::CoordinatorService::WithCallbackMethod_PutIndexBlock<
                    v1::CoordinatorService::WithCallbackMethod_FindListBlocks<
                        v1::CoordinatorService::WithCallbackMethod_PutListBlock<
                            v1::CoordinatorService::Service>>>>>>;
using CoordinatorServiceBase = v1::CoordinatorService::WithCallbackMethod_Hello<
    v1::CoordinatorService::WithCallbackMethod_CreateJob<
        v1::CoordinatorService::WithCallbackMethod_GetJob<
            v1::CoordinatorService::WithCallbackMethod_UploadIndex<
                v1::CoordinatorService::WithCallbackMethod_WorkerSession<
                    v1::CoordinatorService::
                        WithRawCallbackMethod_ConsumerSession<
                            CoordinatorBlocksBase>>>>>>;

class CoordinatorService final : public CoordinatorServiceBase {
 public:
  // All pointers outlive it.
  CoordinatorService(Coordinator* coordinator, rpc::Access* access,
                     const Clock* clock)
      : coordinator_(coordinator),
        access_(access),
        clock_(clock),
        lists_(coordinator) {}

  // These send requests to the consumers that have a session.
  SpanRelay* spans() { return &spans_; }
  SheetRelay* sheets() { return &sheets_; }

  UnaryReactor* Hello(CallContext* context, const v1::HelloRequest* request,
                      v1::HelloResponse* response) override;
  grpc::ServerWriteReactor<v1::CreateJobResponse>* CreateJob(
      CallContext* context, const v1::CreateJobRequest* request) override;
  UnaryReactor* GetJob(CallContext* context, const v1::GetJobRequest* request,
                       v1::GetJobResponse* response) override;
  UnaryReactor* UploadIndex(CallContext* context,
                            const v1::UploadIndexRequest* request,
                            v1::UploadIndexResponse* response) override;
  UnaryReactor* GetIndexBlocks(CallContext* context,
                               const v1::GetIndexBlocksRequest* request,
                               v1::GetIndexBlocksResponse* response) override;
  grpc::ServerWriteReactor<v1::GetIndexBlockResponse>* GetIndexBlock(
      CallContext* context, const v1::GetIndexBlockRequest* request) override;
  UnaryReactor* FindIndexBlocks(CallContext* context,
                                const v1::FindIndexBlocksRequest* request,
                                v1::FindIndexBlocksResponse* response) override;
  grpc::ServerReadReactor<v1::PutIndexBlockRequest>* PutIndexBlock(
      CallContext* context, v1::PutIndexBlockResponse* response) override;
  UnaryReactor* FindListBlocks(CallContext* context,
                               const v1::FindListBlocksRequest* request,
                               v1::FindListBlocksResponse* response) override;
  UnaryReactor* PutListBlock(CallContext* context,
                             const v1::PutListBlockRequest* request,
                             v1::PutListBlockResponse* response) override;
  grpc::ServerBidiReactor<v1::WorkerSessionRequest, v1::WorkerSessionResponse>*
  WorkerSession(CallContext* context) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ConsumerSession(
      CallContext* context) override;

 private:
  Coordinator* const coordinator_;
  rpc::Access* const access_;
  const Clock* const clock_;
  SpanRelay spans_;
  SheetRelay sheets_;
  TransferSlots block_reads_{kMaxBlockReads};
  TransferSlots block_writes_{kMaxBlockWrites};
  ListBlocks lists_;
  TransferSlots list_writes_{kMaxBlockWrites};
};

}  // namespace leat::server
