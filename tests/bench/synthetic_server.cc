// SPDX-License-Identifier: Apache-2.0
//
// bench_server [CERT KEY]: a coordinator and a worker that send rows without
// making them: the cost of Leat when decoding is free. Prints its address, and
// serves until its stdin closes. With CERT and KEY, files in PEM, it serves
// TLS.
//
// The stream of a consumer called "floor" is the bare loop to compare with: one
// reactor that writes a borrowed slice whenever gRPC has taken the previous
// one, and answers nothing. Both send the same number of payload bytes per
// message.
//
// Rows with slots are written there, from a row that is hot in the cache, as a
// decoder's last stage would do.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/checked_job.h"
#include "core/plan/job.h"
#include "core/status.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/grpc_status.h"
#include "rpc/call/raw_frame.h"
#include "rpc/call/server_stream.h"
#include "rpc/process/process.h"
#include "rpc/server/server.h"
#include "rpc/wire/messages.h"
#include "tests/bench/file_content.h"
#include "worker/shared_memory/server.h"

namespace leat {
namespace {

constexpr size_t kRowBytes = 224 * 224 * 3;
constexpr uint64_t kSamples = 1'000'000;
constexpr size_t kMaxQueued = 10'000;

using Buffer = std::vector<std::byte>;

class Handler : public rpc::StreamHandler<grpc::ByteBuffer> {
 public:
  Handler(std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream,
          std::shared_ptr<const Buffer> pool,
          std::shared_ptr<worker::StreamSharing> sharing,
          const std::string& memory_address)
      : stream_(std::move(stream)),
        pool_(std::move(pool)),
        sharing_(std::move(sharing)) {
    opened_.mutable_opened()->set_memory_address(memory_address);
    opened_.mutable_opened()->set_memory_secret(sharing_->secret());
  }

  void OnMessage(grpc::ByteBuffer message) override {
    v1::RowsRequest request;
    if (!rpc::DecodeMessage(message, &request).ok()) return stream_->Cancel();
    if (request.open().consumer() == "floor") return Flood();
    if (request.has_open()) {
      checksums_ = request.open().checksums();
      (void)stream_->Send(rpc::EncodeRows(opened_, {}, nullptr, checksums_));
    }
    if (!request.has_request()) return;
    if (request.request().memory_id() != 0)
      Place(request.request());
    else
      Answer(request.request());
  }
  void OnWritten(size_t) override {
    if (flood_) Flood();
  }
  void OnClosed(const absl::Status&) override { sharing_->Close(); }

 private:
  void Place(const v1::RequestRows& request) {
    constexpr size_t kFieldBytes[] = {kRowBytes};
    auto offer =
        sharing_->Borrow(request.memory_id(),
                         std::span(request.slots().data(),
                                   static_cast<size_t>(request.slots_size())),
                         kFieldBytes);
    if (!offer.ok()) return stream_->Close(offer.status());
    std::byte* const first =
        offer->memory->base() + offer->memory->field_offsets()[0];
    for (const uint32_t slot : request.slots())
      std::memcpy(first + slot * kRowBytes, pool_->data(), kRowBytes);
    sharing_->GiveBack(request.memory_id(), offer->number,
                       std::span(request.slots().data(),
                                 static_cast<size_t>(request.slots_size())));
    v1::RowsResponse header;
    header.set_request_id(request.request_id());
    header.set_group_id(++group_);
    *header.mutable_rows() = request.rows();
    header.set_placed(true);
    (void)stream_->Send(rpc::EncodeRows(header, {}, nullptr, checksums_));
  }
  void Flood() {
    flood_ = true;
    // Fails when the stream has ended, when no more rows are wanted.
    (void)stream_->Send(
        rpc::EncodeRows(v1::RowsResponse(),
                        std::span(*pool_).first(rpc::kMaxChunkBytes), pool_));
  }
  void Answer(const v1::RequestRows& request) {
    const size_t bytes = static_cast<size_t>(request.rows_size()) * kRowBytes;
    v1::RowsResponse header;
    header.set_request_id(request.request_id());
    header.set_group_id(++group_);
    *header.mutable_rows() = request.rows();
    header.set_payload_bytes(bytes);
    for (size_t at = 0; at < bytes; at += rpc::kMaxChunkBytes) {
      header.set_offset(at);
      const size_t piece = std::min(rpc::kMaxChunkBytes, bytes - at);
      if (!stream_
               ->Send(rpc::EncodeRows(header, std::span(*pool_).first(piece),
                                      pool_, checksums_))
               .ok())
        return stream_->Cancel();
    }
  }

  const std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream_;
  const std::shared_ptr<const Buffer> pool_;
  const std::shared_ptr<worker::StreamSharing> sharing_;
  v1::RowsResponse opened_;
  bool checksums_ = false;
  uint64_t group_ = 0;
  bool flood_ = false;
};

class WorkerService : public v1::WorkerService::WithRawCallbackMethod_Rows<
                          v1::WorkerService::Service> {
 public:
  explicit WorkerService(worker::SharedMemoryServer* sharing)
      : sharing_(sharing) {}
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Rows(
      grpc::CallbackServerContext* context) override {
    return rpc::ServerStream<grpc::ByteBuffer, grpc::ByteBuffer>::Start(
        context, kMaxQueued,
        [this](std::shared_ptr<rpc::Stream<grpc::ByteBuffer>> stream) {
          return std::make_shared<Handler>(std::move(stream), pool_,
                                           sharing_->OpenStream(),
                                           sharing_->address());
        });
  }

 private:
  worker::SharedMemoryServer* const sharing_;
  const std::shared_ptr<const Buffer> pool_ =
      std::make_shared<Buffer>(rpc::kMaxChunkBytes, std::byte{7});
};

// Pushes one assignment: the one worker owns everything.
class Assign : public rpc::StreamHandler<v1::ConsumerSessionRequest> {
 public:
  Assign(std::shared_ptr<rpc::Stream<v1::ConsumerSessionResponse>> stream,
         const v1::Assignment& assignment)
      : stream_(std::move(stream)), assignment_(assignment) {}
  void OnMessage(v1::ConsumerSessionRequest request) override {
    if (!request.has_open()) return;
    v1::ConsumerSessionResponse response;
    *response.mutable_assignment() = assignment_;
    (void)stream_->Send(std::move(response));
  }
  void OnClosed(const absl::Status&) override {}

 private:
  const std::shared_ptr<rpc::Stream<v1::ConsumerSessionResponse>> stream_;
  const v1::Assignment assignment_;
};

class CoordinatorService : public v1::CoordinatorService::CallbackService {
 public:
  void SetAddress(const std::string& address) { address_ = address; }

  // Answers the first call of every client.
  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context,
                                  const v1::HelloRequest*,
                                  v1::HelloResponse*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<v1::CreateJobResponse>* CreateJob(
      grpc::CallbackServerContext*,
      const v1::CreateJobRequest* request) override {
    return new Created(*request);
  }
  grpc::ServerBidiReactor<v1::ConsumerSessionRequest,
                          v1::ConsumerSessionResponse>*
  ConsumerSession(grpc::CallbackServerContext* context) override {
    return rpc::ServerStream<v1::ConsumerSessionRequest,
                             v1::ConsumerSessionResponse>::
        Start(context, kMaxQueued, [this](auto stream) {
          return std::make_shared<Assign>(std::move(stream), Assignment());
        });
  }

 private:
  class Created : public grpc::ServerWriteReactor<v1::CreateJobResponse> {
   public:
    explicit Created(const v1::CreateJobRequest& request) {
      const absl::Status status = Create(request, response_.mutable_job());
      if (status.ok())
        StartWriteAndFinish(&response_, {}, grpc::Status::OK);
      else
        Finish(rpc::ToGrpc(status));
    }
    void OnDone() override { delete this; }

   private:
    v1::CreateJobResponse response_;
  };

  static absl::Status Create(const v1::CreateJobRequest& request,
                             v1::Job* job) {
    JobInfo info;
    ASSIGN_OR_RETURN(info.spec, rpc::FromProto(request.spec()));
    ASSIGN_OR_RETURN(const CheckedJob all, CheckJob(info.spec));
    const CheckedGraph& checked = all.sources[0];
    info.datasets.resize(1);
    info.spec.pipeline = checked.graph;
    info.schema = checked.schema;
    info.datasets[0].id = info.datasets[0].name = "synthetic";
    info.datasets[0].reader =
        CanonicalText(checked.graph.nodes[checked.reader]);
    ASSIGN_OR_RETURN(
        info.datasets[0].shards,
        ShardTable::Uniform(kSamples, ShardTable::DefaultShardSize(kSamples)));
    info.plan_hash = PlanHash(info.spec, info.datasets);
    *job = rpc::ToProto(info);
    return absl::OkStatus();
  }
  v1::Assignment Assignment() const {
    v1::Assignment assignment;
    assignment.set_dataset_id("synthetic");
    assignment.set_instance(1);
    assignment.set_version(1);
    v1::WorkerRef* worker = assignment.add_workers();
    worker->set_name("synthetic");
    worker->set_address(address_);
    assignment.set_owners_per_shard(1);
    const uint64_t size = ShardTable::DefaultShardSize(kSamples);
    assignment.set_owners(
        std::string(2 * ((kSamples + size - 1) / size), '\0'));
    return assignment;
  }

  std::string address_;
};

int Main(int argc, char** argv) {
  if (argc != 1 && argc != 3) {
    std::cerr << "usage: bench_server [CERT KEY]\n";
    return 2;
  }
  rpc::Security security;
  if (argc == 3) {
    security.cert_pem = bench::ContentOf(argv[1]);
    security.key_pem = bench::ContentOf(argv[2]);
  }
  // glibc does this by itself in a worker, whose decoder frees large buffers:
  // memory that gRPC sends is not faulted in again for each message.
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  const rpc::StopSignals signals;  // ignored: it ends with its input
  absl::StatusOr<std::unique_ptr<worker::SharedMemoryServer>> sharing =
      worker::SharedMemoryServer::Start({}, nullptr);
  if (!sharing.ok()) {
    std::cerr << Message(sharing.status()) << "\n";
    return 1;
  }
  WorkerService worker(sharing->get());
  CoordinatorService coordinator;
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      rpc::Server::Start({}, security, {&worker, &coordinator});
  if (!server.ok()) {
    std::cerr << Message(server.status()) << "\n";
    return 1;
  }
  coordinator.SetAddress((*server)->address());
  std::cout << (*server)->address() << std::endl;
  while (std::cin.get() != EOF) {
  }
  return 0;
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) { return leat::Main(argc, argv); }
