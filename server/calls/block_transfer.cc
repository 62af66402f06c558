// SPDX-License-Identifier: Apache-2.0
#include "server/calls/block_transfer.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "rpc/call/grpc_status.h"
#include "rpc/wire/block_messages.h"

namespace leat::server {
namespace {

constexpr int kMaxBlocksToFind = 1024;
constexpr size_t kMaxUnusableText = 500;
constexpr int kMaxDatasets = 64;               // in one call
constexpr uint64_t kMaxWholeBytes = 16 << 10;  // of an index in an answer
constexpr size_t kMaxAnswerBytes = 1 << 20;    // about indexes

// Returns the bytes of an index; empty: it is too large, or cannot be read.
std::string WholeIndex(const std::vector<IndexBlock>& blocks, Now now,
                       Coordinator* coordinator) {
  std::string whole;
  if (TotalBytes(blocks) > kMaxWholeBytes) return whole;
  for (const IndexBlock& block : blocks) {
    const absl::StatusOr<std::string> bytes =
        coordinator->ReadBlock(block.sha256, 0, now);
    if (!bytes.ok() || HashOf(*bytes) != block.sha256) return "";
    whole += *bytes;
  }
  return whole;
}

class GetBlockCall
    : public grpc::ServerWriteReactor<v1::GetIndexBlockResponse> {
 public:
  GetBlockCall(Coordinator* coordinator, const Clock* clock, const Digest& name,
               const std::string& unusable, TransferSlots* slots)
      : coordinator_(coordinator), clock_(clock), name_(name), slots_(slots) {
    taken_ = slots->Take();
    absl::Status status = taken_ ? absl::OkStatus() : TransfersAreBusy();
    if (status.ok() && !unusable.empty())
      status = coordinator->DoubtBlock(
          name, unusable.substr(0, kMaxUnusableText), Now::Of(*clock));
    if (status.ok())
      Next();
    else
      Finish(rpc::ToGrpc(status));
  }

 private:
  void OnWriteDone(bool ok) override {
    if (!ok)
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the peer has gone"));
    else
      Next();
  }
  void OnDone() override {
    if (taken_) slots_->Give();
    delete this;
  }

  void Next() {
    absl::StatusOr<std::string> chunk =
        coordinator_->ReadBlock(name_, offset_, Now::Of(*clock_));
    if (!chunk.ok()) return Finish(rpc::ToGrpc(chunk.status()));
    if (chunk->empty()) return Finish(rpc::ToGrpc(Whole()));
    hash_.Update(*chunk);
    offset_ += chunk->size();
    *response_.mutable_chunk() = *std::move(chunk);
    StartWrite(&response_);
  }
  // Compares the sent bytes with the name: a disk may fail after the block was
  // checked.
  absl::Status Whole() {
    if (hash_.Finish() == name_) return absl::OkStatus();
    RETURN_IF_ERROR(coordinator_->DoubtBlock(name_, {}, Now::Of(*clock_)));
    return Unavailable("block {} was read with another hash: try again",
                       ToHex(name_));
  }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  const Digest name_;
  TransferSlots* const slots_;
  bool taken_ = false;
  uint64_t offset_ = 0;
  Sha256 hash_;
  v1::GetIndexBlockResponse response_;
};

class PutBlockCall : public grpc::ServerReadReactor<v1::PutIndexBlockRequest> {
 public:
  PutBlockCall(Coordinator* coordinator, const Clock* clock,
               TransferSlots* slots)
      : coordinator_(coordinator), clock_(clock), slots_(slots) {
    taken_ = slots->Take();
    if (taken_)
      StartRead(&request_);
    else
      Answer(TransfersAreBusy());
  }

 private:
  void OnReadDone(bool ok) override {
    if (finished_) return;
    if (!ok) return Answer(End());
    if (absl::Status status = Take(); !status.ok()) return Answer(status);
    StartRead(&request_);
  }
  void OnDone() override {
    if (taken_) slots_->Give();
    delete this;
  }

  absl::Status Take() {
    switch (request_.kind_case()) {
      case v1::PutIndexBlockRequest::kHeader: {
        if (block_) return InvalidArgument("a block with two headers");
        const v1::PutIndexBlockHeader& header = request_.header();
        ASSIGN_OR_RETURN(block_, rpc::FromProto(header.block()));
        return coordinator_->CheckBlock(header.dataset_id(),
                                        header.request_id(), *block_,
                                        Now::Of(*clock_));
      }
      case v1::PutIndexBlockRequest::kChunk:
        if (!block_) return InvalidArgument("a block without a header");
        if (request_.chunk().size() > block_->bytes - bytes_.size())
          return DataLoss("block {} is longer than the {} bytes of its header",
                          ToHex(block_->sha256), block_->bytes);
        bytes_ += request_.chunk();
        return absl::OkStatus();
      case v1::PutIndexBlockRequest::KIND_NOT_SET:
        break;
    }
    return InvalidArgument("a PutIndexBlock message of an unknown kind");
  }

  absl::Status End() {
    if (!block_) return InvalidArgument("a block without a header");
    return coordinator_->PutBlock(*block_, bytes_, Now::Of(*clock_));
  }

  void Answer(const absl::Status& status) {
    finished_ = true;
    Finish(rpc::ToGrpc(status));
  }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  TransferSlots* const slots_;
  v1::PutIndexBlockRequest request_;
  std::optional<IndexBlock> block_;
  std::string bytes_;
  bool taken_ = false;
  bool finished_ = false;
};

}  // namespace

absl::Status TransfersAreBusy() {
  return Unavailable(
      "the coordinator moves as much of indexes as it can: try again");
}

absl::Status AnswerIndexBlocks(Coordinator* coordinator, Now now,
                               const v1::GetIndexBlocksRequest& request,
                               TransferSlots* slots,
                               v1::GetIndexBlocksResponse* response) {
  const int datasets = request.dataset_ids_size();
  if (datasets < 1 || datasets > kMaxDatasets)
    return InvalidArgument("{} datasets: want 1 to {}", datasets, kMaxDatasets);
  const bool reads = slots->Take();
  size_t bytes = 0;
  for (const std::string& id : request.dataset_ids()) {
    v1::DatasetBlocks& its = *response->add_indexes();
    const absl::StatusOr<IndexBlocks> index = coordinator->BlocksOf(id);
    if (!index.ok()) continue;
    its.set_index_sha256(BytesOf(index->identity));
    for (const IndexBlock& block : *index->blocks)
      *its.add_blocks() = rpc::ToProto(block);
    if (reads) its.set_index(WholeIndex(*index->blocks, now, coordinator));
    bytes += its.ByteSizeLong();
    if (bytes <= kMaxAnswerBytes) continue;
    if (response->indexes_size() > 1) response->mutable_indexes()->RemoveLast();
    break;
  }
  if (reads) slots->Give();
  return absl::OkStatus();
}

absl::Status AnswerFindBlocks(Coordinator* coordinator, Now now,
                              const v1::FindIndexBlocksRequest& request,
                              v1::FindIndexBlocksResponse* response) {
  if (request.blocks_size() > kMaxBlocksToFind)
    return InvalidArgument("{} blocks: want at most {}", request.blocks_size(),
                           kMaxBlocksToFind);
  ASSIGN_OR_RETURN(const std::vector<IndexBlock> blocks,
                   rpc::BlocksFrom(request.blocks()));
  for (const IndexBlock& block : blocks) {
    RETURN_IF_ERROR(coordinator->CheckBlock(request.dataset_id(),
                                            request.request_id(), block, now));
    response->add_present(coordinator->FindBlock(block, now));
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::GetIndexBlockResponse>* StartGetIndexBlock(
    Coordinator* coordinator, const Clock* clock, const Digest& name,
    const std::string& unusable, TransferSlots* slots) {
  return new GetBlockCall(coordinator, clock, name, unusable, slots);
}

grpc::ServerReadReactor<v1::PutIndexBlockRequest>* StartPutIndexBlock(
    Coordinator* coordinator, const Clock* clock, TransferSlots* slots) {
  return new PutBlockCall(coordinator, clock, slots);
}

}  // namespace leat::server
