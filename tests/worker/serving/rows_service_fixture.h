// SPDX-License-Identifier: Apache-2.0
//
// The rows service behind a real server on a Unix socket, with a fake kernel
// that waits at a gate.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/auth.h"
#include "rpc/call/channel.h"
#include "rpc/server/server.h"
#include "tests/worker/job/fake_job.h"
#include "worker/scheduler/scheduler.h"
#include "worker/serving/rows_service.h"
#include "worker/shared_memory/server.h"

namespace leat::worker {

using Call = grpc::ClientReaderWriter<v1::RowsRequest, v1::RowsResponse>;

inline constexpr uint32_t kBatch = 64;
inline constexpr size_t kFiles = 192;
inline constexpr size_t kRowBytes = kFakeImageBytes + 4;

// Delays every row until told, so that work is in progress.
class Gate {
 public:
  void Close() {
    MutexLock lock(&mu_);
    open_ = false;
  }
  void Open() {
    MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    MutexLock lock(&mu_);
    ++arrived_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(&mu_);
  }
  void WaitArrived(int rows = 1) {
    MutexLock lock(&mu_);
    while (arrived_ < rows) changed_.Wait(&mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = true;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
};

class GatedKernel final : public FakeKernel {
 public:
  explicit GatedKernel(Gate* gate) : gate_(gate) {}
  absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override {
    gate_->Pass();
    return FakeKernel::Run(input, state, outputs);
  }

 private:
  Gate* const gate_;
};

class RowsServiceTest : public ::testing::Test {
 protected:
  RowsServiceTest() {
    for (size_t i = 0; i < kFiles; ++i)
      dir_.Write(fmt::format("k/{:05}.jpg", i), fmt::format("{}", i % 10));
  }
  ~RowsServiceTest() override {
    gate_.Open();
    server_.reset();
    if (pool_ == nullptr) return;
    EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
    scheduler_->Stop();
    // Streams have ended: every buffer is back, whatever happened to them.
    EXPECT_EQ(pool_->buffers_in_use(), 0u);
    EXPECT_EQ(rows_->counters().payload_copies, 0u);
  }

  void Start() {
    auto job = external_ ? MakeExternalJob(kFiles, kBatch, policy_)
                         : MakeFakeJob(dir_.path(), kBatch);
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
    fetcher_.Add(job_);
    context_ = {.kernels = {.compile = [this](const CheckedGraph&, DecoderClass)
                                -> absl::StatusOr<std::unique_ptr<RowKernel>> {
                  return std::make_unique<GatedKernel>(&gate_);
                }},
                .cache = &cache_,
                .bad_samples = &bad_,
                .ownership = &ownership_};
    pool_ = std::make_unique<BufferPool>(16 << 20, wake_);
    scheduler_ = std::make_unique<Scheduler>(options_, pool_.get(), wake_,
                                             Clock::Real());
    jobs_ = std::make_unique<JobTable>(
        JobTableOptions{.load_timeout = load_timeout_}, &fetcher_, &context_);
    rows_ =
        std::make_unique<RowsService>(service_options_, security_, jobs_.get(),
                                      scheduler_.get(), sharing_.get());
    static std::atomic<int> number{0};
    const std::string address =
        fmt::format("unix-abstract:leat-test-{}-{}", getpid(), ++number);
    auto server =
        rpc::Server::Start({.address = address}, security_, {rows_->service()});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = rpc::MakeChannel(address, security_);
    stub_ = v1::WorkerService::NewStub(channel_);
  }
  struct Client {
    grpc::ClientContext context;
    std::unique_ptr<Call> call;
    v1::Opened opened;
  };
  std::unique_ptr<Client> Connect() {
    auto client = std::make_unique<Client>();
    rpc::AddMetadata(security_, &client->context);
    client->context.set_deadline(std::chrono::system_clock::now() +
                                 std::chrono::seconds(20));
    client->call = stub_->Rows(&client->context);
    return client;
  }
  std::unique_ptr<Client> Open() {
    auto client = Connect();
    v1::RowsRequest request;
    request.mutable_open()->set_plan_hash(job_.key());
    request.mutable_open()->set_consumer("test");
    EXPECT_TRUE(client->call->Write(request));
    v1::RowsResponse response;
    EXPECT_TRUE(client->call->Read(&response));
    EXPECT_TRUE(response.has_opened());
    client->opened = response.opened();
    return client;
  }
  static v1::RowsRequest MakeRequest(uint64_t id, uint64_t step,
                                     uint32_t rows = kBatch) {
    v1::RowsRequest message;
    v1::RequestRows& request = *message.mutable_request();
    request.set_request_id(id);
    request.set_step(step);
    for (uint32_t row = 0; row < rows; ++row) {
      request.add_rows(row);
      request.add_samples(step * kBatch + row);
    }
    return message;
  }
  // Ends the stream; returns the server's status.
  static grpc::Status Finish(Client& client) {
    v1::RowsResponse response;
    while (client.call->Read(&response)) {
    }
    return client.call->Finish();
  }

  TempDir dir_;
  Gate gate_;
  DatasetUses uses_{Clock::Real()};
  SampleCache cache_{1 << 20, &uses_};
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext context_;
  FakeFetcher fetcher_;
  bool external_ = false;  // set before Start: the job's samples are supplied
  BadSamplePolicy policy_ = BadSamplePolicy::kFail;  // of an external job
  FakeJob job_;
  Duration load_timeout_ = std::chrono::minutes(1);
  rpc::Security security_{.token = "secret"};
  SchedulerOptions options_{.threads = 2,
                            .group_bytes = 8 * kRowBytes,
                            .max_unsent_groups_per_stream = 4};
  RowsServiceOptions service_options_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<JobTable> jobs_;
  std::unique_ptr<SharedMemoryServer> sharing_;  // if made before Start
  std::unique_ptr<RowsService> rows_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
};

}  // namespace leat::worker
