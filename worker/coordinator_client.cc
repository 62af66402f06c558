// SPDX-License-Identifier: Apache-2.0
#include "worker/coordinator_client.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/status.h"

namespace leat::worker {
namespace {

constexpr size_t kUploadChunk = 1 << 20;
// A job's reply has its reader's paths twice, in the spec and in the dataset: a
// spec of the 8 MiB that the coordinator takes must come back.
constexpr int kMaxReplyBytes = 64 << 20;

std::string BytesOf(const Digest& digest) {
  return std::string(digest.begin(), digest.end());
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
  // The old one goes without the lock, or with its last call.
}

CoordinatorClient::~CoordinatorClient() = default;

// One call's context, which Shutdown can cancel.
class CoordinatorClient::Call {
 public:
  Call(CoordinatorClient* client, Duration timeout)
      : client_(client), connection_(client->connection()) {
    rpc::AddMetadata(connection_->security, &context);
    context.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(
            timeout));
    MutexLock lock(&client->mu_);
    client->calls_.insert(this);
    if (client->shut_down_) context.TryCancel();
  }
  ~Call() {
    MutexLock lock(&client_->mu_);
    client_->calls_.erase(this);
  }

  v1::CoordinatorService::Stub* stub() const { return connection_->stub.get(); }

 private:
  CoordinatorClient* const client_;
  const std::shared_ptr<Connection> connection_;

 public:
  grpc::ClientContext context;  // goes before the connection
};

void CoordinatorClient::Shutdown() {
  MutexLock lock(&mu_);
  shut_down_ = true;
  for (Call* call : calls_) call->context.TryCancel();
}

absl::StatusOr<JobInfo> CoordinatorClient::FetchJob(
    const std::string& plan_hash) {
  Call call(this, options_.call_timeout);
  grpc::ClientContext& context = call.context;
  v1::GetJobRequest request;
  request.set_plan_hash(plan_hash);
  v1::GetJobResponse response;
  RETURN_IF_ERROR(
      rpc::FromGrpc(call.stub()->GetJob(&context, request, &response)));
  return rpc::FromProto(response.job());
}

absl::StatusOr<std::string> CoordinatorClient::FetchIndex(
    const DatasetInfo& dataset) {
  Call call(this, options_.index_timeout);
  grpc::ClientContext& context = call.context;
  v1::GetIndexRequest request;
  request.set_dataset_id(dataset.id);
  const auto reader = call.stub()->GetIndex(&context, request);
  std::string index;
  v1::GetIndexResponse response;
  while (reader->Read(&response)) {
    if (index.size() + response.chunk().size() > options_.max_index_bytes) {
      context.TryCancel();
      while (reader->Read(&response)) {
      }
      reader->Finish().ok();
      return ResourceExhausted("the index of dataset {} is over {} bytes",
                               dataset.name, options_.max_index_bytes);
    }
    index += response.chunk();
  }
  RETURN_IF_ERROR(rpc::FromGrpc(reader->Finish()));
  return index;
}

absl::Status CoordinatorClient::UploadIndex(
    const v1::IndexDataset& directive,
    const absl::StatusOr<BuiltIndex>& index) {
  Call call(this, options_.index_timeout);
  grpc::ClientContext& context = call.context;
  v1::UploadIndexResponse response;
  const auto writer = call.stub()->UploadIndex(&context, &response);
  v1::UploadIndexRequest request;
  bool sent = false;
  if (index.ok()) {
    v1::IndexHeader& header = *request.mutable_header();
    header.set_dataset_id(directive.dataset_id());
    header.set_request_id(directive.request_id());
    header.set_fingerprint(BytesOf(index->fingerprint));
    *header.mutable_shards() = rpc::ToProto(index->shards);
    header.set_bytes(index->bytes);
    for (const std::string& name : index->classes) header.add_classes(name);
    for (const ValueType& type : index->types)
      *header.add_types() = rpc::ToProto(type);
    header.set_index_bytes(index->blob.size());
    header.set_index_sha256(BytesOf(HashOf(index->blob)));
    header.set_name(index->name);
    sent = writer->Write(request);
    for (size_t at = 0; sent && at < index->blob.size(); at += kUploadChunk) {
      request.set_chunk(index->blob.substr(at, kUploadChunk));
      sent = writer->Write(request);
    }
  } else {
    v1::IndexFailure& failure = *request.mutable_failure();
    failure.set_dataset_id(directive.dataset_id());
    failure.set_request_id(directive.request_id());
    failure.set_code(static_cast<int32_t>(index.status().code()));
    failure.set_message(std::string(Message(index.status())));
    sent = writer->Write(request);
  }
  if (sent) writer->WritesDone();
  return rpc::FromGrpc(writer->Finish());
}

}  // namespace leat::worker
