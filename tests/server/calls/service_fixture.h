// SPDX-License-Identifier: Apache-2.0
//
// A whole daemon in this process, and clients that use it over real sockets.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "leat/v1/admin.grpc.pb.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "leat/v1/pool.grpc.pb.h"
#include "rpc/call/channel.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "server/daemon.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {

class Client {
 public:
  Client(const std::string& address, const std::string& token)
      : channel_(rpc::MakeChannel(address, Security(token))),
        security_(Security(token)),
        coordinator_(v1::CoordinatorService::NewStub(channel_)),
        admin_(v1::AdminService::NewStub(channel_)),
        pools_(v1::PoolService::NewStub(channel_)) {}

  std::unique_ptr<grpc::ClientContext> Context(int seconds_left = 10) {
    auto context = std::make_unique<grpc::ClientContext>();
    rpc::AddMetadata(security_, context.get());
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(seconds_left));
    return context;
  }
  grpc::Status Create(const JobSpec& spec, v1::CreateJobResponse* response,
                      int seconds_left = 10) {
    v1::CreateJobRequest request;
    *request.mutable_spec() = rpc::ToProto(spec);
    const auto context = Context(seconds_left);
    const auto reader = coordinator_->CreateJob(context.get(), request);
    while (reader->Read(response))
      if (!response->waiting().empty()) ++waiting_told;
    return reader->Finish();
  }
  v1::CoordinatorService::Stub& coordinator() { return *coordinator_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  v1::PoolService::Stub& pools() { return *pools_; }
  // The responses of Create that said what it waits for.
  std::atomic<int> waiting_told = 0;

  v1::GetStatusResponse Status() {
    v1::GetStatusResponse response;
    const grpc::Status status =
        admin_->GetStatus(Context().get(), {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

 private:
  static rpc::Security Security(const std::string& token) {
    rpc::Security security;
    security.token = token;
    return security;
  }
  std::shared_ptr<grpc::Channel> channel_;
  const rpc::Security security_;
  std::unique_ptr<v1::CoordinatorService::Stub> coordinator_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<v1::PoolService::Stub> pools_;
};

// A worker that can only register and list.
class FakeWorker {
 public:
  FakeWorker(Client* client, const std::string& name)
      : client_(client),
        context_(client->Context(60)),
        stream_(client->coordinator().WorkerSession(context_.get())) {
    v1::WorkerSessionRequest request;
    v1::RegisterWorker* from = request.mutable_register_();
    from->set_name(name);
    from->set_address("127.0.0.1:1");
    from->set_threads(2);
    from->add_decoder_classes(v1::DECODER_CLASS_EXACT);
    from->set_host("here");
    stream_->Write(request);
  }
  ~FakeWorker() {
    if (!ended_) Vanish();
  }
  // Waits for the next message.
  v1::WorkerSessionResponse Next() {
    v1::WorkerSessionResponse response;
    stream_->Read(&response);
    return response;
  }
  void Beat() {
    v1::WorkerSessionRequest request;
    request.mutable_heartbeat()->mutable_stats()->set_capacity_rows_per_s(100);
    stream_->Write(request);
  }
  void BeatWithFailure(const std::string& root, const std::string& error) {
    v1::WorkerSessionRequest request;
    v1::StorageFailure* failure =
        request.mutable_heartbeat()->add_storage_failures();
    failure->set_root(root);
    failure->set_error(error);
    stream_->Write(request);
  }
  v1::IndexDataset Asked() {
    while (true) {
      v1::WorkerSessionResponse response = Next();
      if (response.kind_case() == v1::WorkerSessionResponse::KIND_NOT_SET ||
          response.has_index_dataset())
        return response.index_dataset();
    }
  }
  grpc::Status Put(const v1::IndexDataset& asked, const IndexBlock& block,
                   const std::string& bytes) {
    v1::PutIndexBlockResponse response;
    const auto context = client_->Context();
    auto writer =
        client_->coordinator().PutIndexBlock(context.get(), &response);
    v1::PutIndexBlockRequest request;
    request.mutable_header()->set_dataset_id(asked.dataset_id());
    request.mutable_header()->set_request_id(asked.request_id());
    *request.mutable_header()->mutable_block() = rpc::ToProto(block);
    writer->Write(request);
    for (size_t at = 0; at < bytes.size(); at += 1 << 20) {
      request.set_chunk(bytes.substr(at, 1 << 20));
      if (!writer->Write(request)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  // Makes the header of an index of these blocks, of 1,000 samples.
  static v1::UploadIndexRequest HeaderOf(
      const v1::IndexDataset& asked, const std::vector<IndexBlock>& blocks) {
    Digest fingerprint;
    fingerprint.fill('f');
    const ShardTable shards = *ShardTable::Uniform(1000, 10);
    const Digest identity = IndexIdentity(fingerprint, shards, blocks);
    v1::UploadIndexRequest request;
    v1::IndexHeader* header = request.mutable_header();
    header->set_dataset_id(asked.dataset_id());
    header->set_request_id(asked.request_id());
    header->set_fingerprint(std::string(32, 'f'));
    *header->mutable_shards() = rpc::ToProto(shards);
    header->set_index_bytes(TotalBytes(blocks));
    header->set_index_sha256(std::string(identity.begin(), identity.end()));
    header->set_name("photos");
    for (const IndexBlock& block : blocks)
      *header->add_blocks() = rpc::ToProto(block);
    return request;
  }
  grpc::Status Upload(const v1::UploadIndexRequest& request) {
    v1::UploadIndexResponse response;
    return client_->coordinator().UploadIndex(client_->Context().get(), request,
                                              &response);
  }
  // The index is one block. Returns the status of the first call that fails.
  grpc::Status Upload(const v1::IndexDataset& asked, const std::string& index,
                      const std::vector<std::string>& classes = {}) {
    const IndexBlock block{
        .sha256 = HashOf(index), .bytes = index.size(), .samples = 0};
    if (grpc::Status put = Put(asked, block, index); !put.ok()) return put;
    v1::UploadIndexRequest request = HeaderOf(asked, {block});
    request.mutable_header()->mutable_classes()->Assign(classes.begin(),
                                                        classes.end());
    return Upload(request);
  }
  grpc::Status Leave() {
    ended_ = true;
    stream_->WritesDone();
    while (Next().kind_case() != v1::WorkerSessionResponse::KIND_NOT_SET) {
    }
    return stream_->Finish();
  }
  void Vanish() {
    ended_ = true;
    context_->TryCancel();
    stream_->Finish().ok();
  }
  grpc::Status End() {
    ended_ = true;
    while (Next().kind_case() != v1::WorkerSessionResponse::KIND_NOT_SET) {
    }
    return stream_->Finish();
  }

 private:
  Client* const client_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerSessionRequest,
                                           v1::WorkerSessionResponse>>
      stream_;
  bool ended_ = false;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    config_.listen = "127.0.0.1:0";
    config_.coordinator.no_workers_after = Duration(0);
    config_.security.token = "secret";
    Start();
  }
  void Start() {
    daemon_.reset();
    absl::StatusOr<std::unique_ptr<Daemon>> daemon =
        Daemon::Start(config_, &Clock::Real());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    client_ = std::make_unique<Client>(daemon_->address(), "secret");
  }
  // Waits until the workers' states are these, in the order of names.
  void ExpectStates(const std::vector<v1::WorkerState>& wanted) {
    std::vector<v1::WorkerState> states;
    for (int i = 0; i < 500; ++i) {
      states.clear();
      const v1::GetStatusResponse status = client_->Status();
      for (const v1::WorkerInfo& worker : status.workers())
        states.push_back(worker.state());
      if (states == wanted) return;
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_EQ(states, wanted);
  }

  Config config_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

}  // namespace leat::server
