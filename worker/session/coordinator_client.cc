// SPDX-License-Identifier: Apache-2.0
#include "worker/session/coordinator_client.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "core/utf8.h"
#include "rpc/call/channel.h"
#include "rpc/call/grpc_status.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "worker/session/own_decoders.h"

namespace leat::worker {
namespace {

constexpr size_t kUploadChunk = 1 << 20;
// A job's reply has its reader's paths twice, in the spec and in the dataset: a
// spec of the 8 MiB that the coordinator takes must come back.
constexpr int kMaxReplyBytes = 64 << 20;

absl::StatusOr<FetchedBlocks> BlocksOf(const DatasetInfo& dataset,
                                       v1::DatasetBlocks* proto) {
  if (proto->index_sha256().empty())
    return NotFound("no index of dataset {}", dataset.name);
  FetchedBlocks index;
  ASSIGN_OR_RETURN(index.blocks, rpc::BlocksFrom(proto->blocks()));
  ASSIGN_OR_RETURN(index.identity,
                   DigestOf("the identity of an index", proto->index_sha256(),
                            absl::StatusCode::kDataLoss));
  index.bytes = std::move(*proto->mutable_index());
  return index;
}

}  // namespace

CoordinatorClient::CoordinatorClient(CoordinatorClientOptions options,
                                     rpc::Security security)
    : options_(std::move(options)),
      connection_(std::make_shared<Connection>(options_.address,
                                               std::move(security))) {}

CoordinatorClient::Connection::Connection(const std::string& address,
                                          rpc::Security its_security)
    : security(std::move(its_security)),
      stub(v1::CoordinatorService::NewStub(
          rpc::MakeChannel(address, security, kMaxReplyBytes))) {}

std::shared_ptr<CoordinatorClient::Connection> CoordinatorClient::connection()
    const {
  MutexLock lock(&mu_);
  return connection_;
}

void CoordinatorClient::ReplaceSecurity(rpc::Security security) {
  auto connection =
      std::make_shared<Connection>(options_.address, std::move(security));
  MutexLock lock(&mu_);
  std::swap(connection_, connection);
  // The old one is destroyed without the lock, or with its last call.
}

CoordinatorClient::~CoordinatorClient() = default;

// One call, over the connection of its beginning.
class CoordinatorClient::Call {
 public:
  Call(CoordinatorClient* client, Duration timeout)
      : client_(*client),
        connection_(client->connection()),
        call_(&client->calls_, connection_->security, timeout) {}

  v1::CoordinatorService::Stub* stub() const { return connection_->stub.get(); }
  grpc::ClientContext* context() { return &call_.context; }

  // Returns how the call ended. A server that stops cancels the calls that
  // reach it too late: its successor may take them.
  absl::Status Ended(const grpc::Status& status) const {
    absl::Status ended = rpc::FromGrpc(status);
    if (!absl::IsCancelled(ended) || client_.calls_.stopped()) return ended;
    return Unavailable("the coordinator at {} is stopping",
                       client_.options_.address);
  }

 private:
  CoordinatorClient& client_;
  const std::shared_ptr<Connection> connection_;
  rpc::CallSet::Call call_;  // destroyed before the connection
};

void CoordinatorClient::Shutdown() { calls_.Stop(); }

absl::StatusOr<JobInfo> CoordinatorClient::FetchJob(
    const std::string& plan_hash) {
  Call call(this, options_.call_timeout);
  v1::GetJobRequest request;
  request.set_plan_hash(plan_hash);
  v1::GetJobResponse response;
  RETURN_IF_ERROR(
      call.Ended(call.stub()->GetJob(call.context(), request, &response)));
  if (absl::Status alike = CheckDecoders(options_.decoders, response);
      !alike.ok()) {
    LOG_WARN("job.refused error=\"{}\"", Message(alike));
    return alike;
  }
  return rpc::FromProto(response.job());
}

std::vector<absl::StatusOr<FetchedBlocks>> CoordinatorClient::FetchBlocks(
    std::span<const DatasetInfo* const> datasets) {
  Call call(this, options_.call_timeout);
  v1::GetIndexBlocksRequest request;
  for (const DatasetInfo* const dataset : datasets)
    request.add_dataset_ids(dataset->id);
  v1::GetIndexBlocksResponse response;
  const absl::Status ended = call.Ended(
      call.stub()->GetIndexBlocks(call.context(), request, &response));
  if (!ended.ok()) return {ended};
  const auto count = static_cast<size_t>(response.indexes_size());
  if (count < 1 || count > datasets.size())
    return {DataLoss("{} indexes of {} datasets", count, datasets.size())};
  std::vector<absl::StatusOr<FetchedBlocks>> indexes;
  for (size_t i = 0; i < count; ++i)
    indexes.push_back(
        BlocksOf(*datasets[i], response.mutable_indexes(static_cast<int>(i))));
  return indexes;
}

absl::StatusOr<std::string> CoordinatorClient::FetchBlock(
    const IndexBlock& block, const std::string& unusable,
    MonotonicTime deadline) {
  Call call(this, std::clamp<Duration>(deadline - Clock::Real().Now(),
                                       Duration(0), options_.block_timeout));
  v1::GetIndexBlockRequest request;
  request.set_sha256(leat::BytesOf(block.sha256));
  request.set_unusable(unusable);
  const auto reader = call.stub()->GetIndexBlock(call.context(), request);
  std::string bytes;
  bytes.reserve(std::min(block.bytes, kMaxIndexBlockBytes));
  v1::GetIndexBlockResponse response;
  bool longer = false;
  while (reader->Read(&response)) {
    if (longer) continue;
    bytes += response.chunk();
    longer = bytes.size() > block.bytes;
    if (longer) call.context()->TryCancel();
  }
  const absl::Status status = call.Ended(reader->Finish());
  if (longer)
    return DataLoss("block {} is longer than its {} bytes", ToHex(block.sha256),
                    block.bytes);
  RETURN_IF_ERROR(status);
  return bytes;
}

absl::Status CoordinatorClient::PutBlock(const v1::IndexDataset& directive,
                                         const IndexBlock& block,
                                         std::string_view bytes) {
  v1::FindIndexBlocksRequest request;
  request.set_dataset_id(directive.dataset_id());
  request.set_request_id(directive.request_id());
  *request.add_blocks() = rpc::ToProto(block);
  v1::FindIndexBlocksResponse response;
  {
    Call call(this, options_.call_timeout);
    RETURN_IF_ERROR(call.Ended(
        call.stub()->FindIndexBlocks(call.context(), request, &response)));
  }
  if (response.present_size() == 1 && response.present(0))
    return absl::OkStatus();
  return SendBlock(directive, block, bytes);
}

absl::Status CoordinatorClient::SendBlock(const v1::IndexDataset& directive,
                                          const IndexBlock& block,
                                          std::string_view bytes) {
  Call call(this, options_.block_timeout);
  v1::PutIndexBlockResponse response;
  const auto writer = call.stub()->PutIndexBlock(call.context(), &response);
  v1::PutIndexBlockRequest request;
  v1::PutIndexBlockHeader& header = *request.mutable_header();
  header.set_dataset_id(directive.dataset_id());
  header.set_request_id(directive.request_id());
  *header.mutable_block() = rpc::ToProto(block);
  bool sent = writer->Write(request);
  for (size_t at = 0; sent && at < bytes.size(); at += kUploadChunk) {
    request.set_chunk(std::string(bytes.substr(at, kUploadChunk)));
    sent = writer->Write(request);
  }
  if (sent) writer->WritesDone();
  return call.Ended(writer->Finish());
}

void CoordinatorClient::FillHeader(const v1::IndexDataset& directive,
                                   const BuiltIndex& index,
                                   const ListedIndex& listed,
                                   v1::IndexHeader* header) {
  header->set_dataset_id(directive.dataset_id());
  header->set_request_id(directive.request_id());
  header->set_fingerprint(leat::BytesOf(index.fingerprint));
  if (index.content != Digest{})
    header->set_content(leat::BytesOf(index.content));
  *header->mutable_shards() = rpc::ToProto(index.shards);
  header->set_bytes(index.bytes);
  for (const std::string& name : index.classes) header->add_classes(name);
  for (const ValueType& type : index.types)
    *header->add_types() = rpc::ToProto(type);
  rpc::SetGroups(index.groups, header->mutable_groups());
  header->set_index_bytes(TotalBytes(listed.blocks));
  header->set_index_sha256(leat::BytesOf(
      IndexIdentity(index.fingerprint, index.shards, listed.blocks)));
  for (const IndexBlock& block : listed.blocks)
    *header->add_blocks() = rpc::ToProto(block);
  header->set_name(ToUtf8(index.name));
  if (listed.look) *header->mutable_look() = rpc::ToProto(*listed.look);
  for (const std::string& change : listed.changes)
    header->add_changes(ToUtf8(change));
  for (const PassedOver& each : index.passed_over) {
    v1::PassedOver* to = header->add_passed_over();
    to->set_what(ToUtf8(each.what));
    to->set_count(each.count);
    to->set_first(ToUtf8(each.first));
  }
}

absl::Status CoordinatorClient::Upload(const v1::UploadIndexRequest& request,
                                       Duration timeout) {
  Call call(this, timeout);
  v1::UploadIndexResponse response;
  return call.Ended(
      call.stub()->UploadIndex(call.context(), request, &response));
}

absl::Status CoordinatorClient::UploadIndex(
    const v1::IndexDataset& directive, const absl::StatusOr<BuiltIndex>& index,
    const ListedIndex& listed) {
  v1::UploadIndexRequest request;
  if (index.ok()) {
    FillHeader(directive, *index, listed, request.mutable_header());
  } else {
    v1::IndexFailure& failure = *request.mutable_failure();
    failure.set_dataset_id(directive.dataset_id());
    failure.set_request_id(directive.request_id());
    failure.set_code(static_cast<int32_t>(index.status().code()));
    failure.set_message(ToUtf8(Message(index.status())));
  }
  return Upload(request, options_.index_timeout);
}

absl::Status CoordinatorClient::SendLooked(const v1::IndexDataset& directive,
                                           const absl::StatusOr<Looked>& looked,
                                           uint64_t total, bool lists) {
  v1::UploadIndexRequest request;
  v1::IndexLooked& proto = *request.mutable_looked();
  proto.set_dataset_id(directive.dataset_id());
  proto.set_request_id(directive.request_id());
  proto.set_total(total);
  proto.set_lists(lists);
  if (looked.ok()) {
    proto.set_entries(looked->entries);
    for (const std::string& change : looked->changes)
      proto.add_changes(ToUtf8(change));
  }
  return Upload(request, options_.call_timeout);
}

absl::Status CoordinatorClient::SendProgress(
    const v1::IndexDataset& directive, const ListingProgress& progress,
    const std::optional<IndexBlock>& trail, uint32_t part) {
  v1::UploadIndexRequest request;
  v1::IndexProgress& proto = *request.mutable_progress();
  proto.set_dataset_id(directive.dataset_id());
  proto.set_request_id(directive.request_id());
  proto.set_walked(progress.walked);
  proto.set_total(progress.of);
  if (trail) *proto.mutable_trail() = rpc::ToProto(*trail);
  proto.set_part(part);
  return Upload(request, options_.call_timeout);
}

}  // namespace leat::worker
