// SPDX-License-Identifier: Apache-2.0
//
// The whole daemon in this process, spoken to over real sockets.
#include "server/service.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "leat/v1/admin.grpc.pb.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "server/daemon.h"
#include "tests/server/world.h"

namespace leat::server {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

class Client {
 public:
  Client(const std::string& address, const std::string& token)
      : channel_(rpc::MakeChannel(address, Security(token))),
        security_(Security(token)),
        coordinator_(v1::CoordinatorService::NewStub(channel_)),
        admin_(v1::AdminService::NewStub(channel_)) {}

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
    return coordinator_->CreateJob(Context(seconds_left).get(), request,
                                   response);
  }
  v1::CoordinatorService::Stub& coordinator() { return *coordinator_; }
  v1::AdminService::Stub& admin() { return *admin_; }

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
  v1::IndexDataset Asked() {
    while (true) {
      v1::WorkerSessionResponse response = Next();
      if (response.kind_case() == v1::WorkerSessionResponse::KIND_NOT_SET ||
          response.has_index_dataset())
        return response.index_dataset();
    }
  }
  grpc::Status Upload(const v1::IndexDataset& asked, const std::string& index,
                      size_t pieces_of = 1 << 20) {
    v1::UploadIndexResponse response;
    const auto context = client_->Context();
    auto writer = client_->coordinator().UploadIndex(context.get(), &response);
    v1::UploadIndexRequest request;
    v1::IndexHeader* header = request.mutable_header();
    const Digest sha = HashOf(index);
    header->set_dataset_id(asked.dataset_id());
    header->set_request_id(asked.request_id());
    header->set_fingerprint(std::string(32, 'f'));
    header->mutable_shards()->set_num_samples(1000);
    header->mutable_shards()->set_shard_size(10);
    header->set_index_bytes(index.size());
    header->set_index_sha256(std::string(sha.begin(), sha.end()));
    header->set_name("photos");
    writer->Write(request);
    for (size_t at = 0; at < index.size(); at += pieces_of) {
      request.set_chunk(index.substr(at, pieces_of));
      if (!writer->Write(request)) break;
    }
    writer->WritesDone();
    return writer->Finish();
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

TEST_F(ServiceTest, AJobFromListingToAssignment) {
  FakeWorker worker(client_.get(), "a");
  const v1::WorkerSessionResponse welcome = worker.Next();
  ASSERT_TRUE(welcome.has_welcome());
  EXPECT_EQ(welcome.welcome().heartbeat_interval().seconds(), 1);

  v1::CreateJobResponse created;
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(SpecOf("j", "/d"), &created); });
  const v1::IndexDataset asked = worker.Asked();
  EXPECT_EQ(asked.reader().op(), "readers.image_folder");
  std::string index(2'500'000, 'i');
  const grpc::Status uploaded = worker.Upload(asked, index);
  ASSERT_TRUE(uploaded.ok()) << uploaded.error_message();
  const grpc::Status status = creating.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(created.attached());
  EXPECT_TRUE(rpc::FromProto(created.job()).ok());

  v1::GetIndexRequest get;
  get.set_dataset_id(asked.dataset_id());
  const auto context = client_->Context();
  auto reader = client_->coordinator().GetIndex(context.get(), get);
  std::string received;
  v1::GetIndexResponse piece;
  while (reader->Read(&piece)) received += piece.chunk();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(received, index);

  const auto session_context = client_->Context();
  auto session = client_->coordinator().ConsumerSession(session_context.get());
  v1::ConsumerSessionRequest open;
  open.mutable_open()->set_plan_hash(created.job().plan_hash());
  open.mutable_open()->set_consumer("c");
  ASSERT_TRUE(session->Write(open));
  v1::ConsumerSessionResponse view;
  ASSERT_TRUE(session->Read(&view));
  EXPECT_EQ(view.assignment().owners().size(), 200u);
  EXPECT_EQ(view.assignment().workers(0).address(), "127.0.0.1:1");
  FakeWorker second(client_.get(), "b");
  ASSERT_TRUE(session->Read(&view));
  EXPECT_EQ(view.assignment().workers_size(), 2);
  EXPECT_EQ(view.assignment().owners().size(), 400u);

  const v1::GetStatusResponse all = client_->Status();
  EXPECT_EQ(all.address(), daemon_->address());
  EXPECT_EQ(all.workers_size(), 2);
  EXPECT_EQ(all.jobs_size(), 1);
  EXPECT_EQ(all.jobs(0).consumers(), 1u);
  EXPECT_EQ(all.jobs(0).gpu_use(), v1::GPU_USE_YES);
  EXPECT_EQ(all.findings_size(), 0);
  v1::ListShardsRequest shards_request;
  shards_request.set_dataset("photos");
  v1::ListShardsResponse shards;
  EXPECT_TRUE(client_->admin()
                  .ListShards(client_->Context().get(), shards_request, &shards)
                  .ok());
  ASSERT_EQ(shards.shards_size(), 100);
  EXPECT_EQ(shards.shards(99).owners_size(), 2);
  session->WritesDone();
  EXPECT_TRUE(session->Finish().ok());
}

TEST_F(ServiceTest, AWrongTokenIsRefusedByEveryCall) {
  Client stranger(daemon_->address(), "guess");
  v1::CreateJobResponse created;
  EXPECT_EQ(stranger.Create(SpecOf("j", "/d"), &created).error_code(),
            StatusCode::UNAUTHENTICATED);
  v1::GetStatusResponse status;
  EXPECT_EQ(stranger.admin()
                .GetStatus(stranger.Context().get(), {}, &status)
                .error_code(),
            StatusCode::UNAUTHENTICATED);
  v1::DrainWorkerResponse drained;
  EXPECT_EQ(stranger.admin()
                .DrainWorker(stranger.Context().get(), {}, &drained)
                .error_code(),
            StatusCode::UNAUTHENTICATED);
  FakeWorker worker(&stranger, "a");
  EXPECT_EQ(worker.End().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(worker.Upload({}, "x").error_code(), StatusCode::UNAUTHENTICATED);
  const auto context = stranger.Context();
  auto index = stranger.coordinator().GetIndex(context.get(), {});
  EXPECT_EQ(index->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(ServiceTest, WithoutWorkersTheAnswerComesBeforeTheDeadline) {
  v1::CreateJobResponse created;
  const grpc::Status status = client_->Create(SpecOf("j", "/d"), &created, 1);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("leat-worker"));
}

TEST_F(ServiceTest, WrongRequestsAreNamed) {
  v1::CreateJobResponse created;
  EXPECT_EQ(client_->Create(SpecOf("j", "/d", 0), &created).error_code(),
            StatusCode::INVALID_ARGUMENT);
  v1::GetJobResponse job;
  EXPECT_EQ(client_->coordinator()
                .GetJob(client_->Context().get(), {}, &job)
                .error_code(),
            StatusCode::INVALID_ARGUMENT);
  v1::GetJobRequest by_hash;
  by_hash.set_plan_hash("short");
  EXPECT_EQ(client_->coordinator()
                .GetJob(client_->Context().get(), by_hash, &job)
                .error_code(),
            StatusCode::INVALID_ARGUMENT);
  by_hash.set_name("nobody");
  EXPECT_EQ(client_->coordinator()
                .GetJob(client_->Context().get(), by_hash, &job)
                .error_code(),
            StatusCode::NOT_FOUND);
  v1::SetLogLevelRequest level;
  level.set_level("loud");
  v1::SetLogLevelResponse done;
  const grpc::Status status =
      client_->admin().SetLogLevel(client_->Context().get(), level, &done);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("loud"));
}

TEST_F(ServiceTest, AnUploadThatNobodyAskedForIsRefused) {
  FakeWorker worker(client_.get(), "a");
  EXPECT_EQ(worker.Upload({}, "x").error_code(), StatusCode::NOT_FOUND);
  v1::UploadIndexResponse response;
  const auto context = client_->Context();
  auto writer = client_->coordinator().UploadIndex(context.get(), &response);
  v1::UploadIndexRequest chunk;
  chunk.set_chunk("x");
  writer->Write(chunk);
  EXPECT_EQ(writer->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, AListingsFailureReachesTheCaller) {
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating = std::async(
      [&] { return client_->Create(SpecOf("j", "/none"), &created); });
  const v1::IndexDataset asked = worker.Asked();
  v1::UploadIndexResponse response;
  const auto context = client_->Context();
  auto writer = client_->coordinator().UploadIndex(context.get(), &response);
  v1::UploadIndexRequest failed;
  failed.mutable_failure()->set_dataset_id(asked.dataset_id());
  failed.mutable_failure()->set_request_id(asked.request_id());
  failed.mutable_failure()->set_code(5);
  failed.mutable_failure()->set_message("/none: no such directory");
  writer->Write(failed);
  EXPECT_TRUE(writer->Finish().ok());
  const grpc::Status status = creating.get();
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("/none: no such directory"));
}

TEST_F(ServiceTest, AReplacedSessionEndsWithAborted) {
  FakeWorker old(client_.get(), "a");
  old.Next();
  FakeWorker young(client_.get(), "a");
  EXPECT_EQ(old.End().error_code(), StatusCode::ABORTED);
  young.Beat();
  ExpectStates({v1::WORKER_STATE_READY});
}

TEST_F(ServiceTest, ASessionThatBreaksTheOrderEndsWithAnError) {
  FakeWorker worker(client_.get(), "a");
  worker.Next();
  const auto context = client_->Context();
  auto stream = client_->coordinator().WorkerSession(context.get());
  v1::WorkerSessionRequest beat;
  beat.mutable_heartbeat();
  stream->Write(beat);
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  const auto other_context = client_->Context();
  auto consumer = client_->coordinator().ConsumerSession(other_context.get());
  v1::ConsumerSessionRequest open;
  open.mutable_open()->set_plan_hash(std::string(32, 'x'));
  open.mutable_open()->set_consumer("c");
  consumer->Write(open);
  EXPECT_EQ(consumer->Finish().error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, WhoLeavesIsForgottenAndWhoVanishesIsLost) {
  FakeWorker a(client_.get(), "a"), b(client_.get(), "b");
  a.Next();
  b.Next();
  EXPECT_TRUE(a.Leave().ok());
  ExpectStates({v1::WORKER_STATE_READY});
  b.Vanish();
  ExpectStates({v1::WORKER_STATE_LOST});
}

TEST_F(ServiceTest, DrainsAreAnswered) {
  FakeWorker a(client_.get(), "a");
  a.Next();
  v1::DrainWorkerRequest request;
  request.set_name("a");
  v1::DrainWorkerResponse response;
  EXPECT_TRUE(client_->admin()
                  .DrainWorker(client_->Context().get(), request, &response)
                  .ok());
  ExpectStates({v1::WORKER_STATE_DRAINING});
  v1::UndrainWorkerRequest undo;
  undo.set_name("nobody");
  v1::UndrainWorkerResponse undone;
  EXPECT_EQ(client_->admin()
                .UndrainWorker(client_->Context().get(), undo, &undone)
                .error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, JobsOutliveTheDaemon) {
  std::string root =
      (std::filesystem::temp_directory_path() / "leat-svc-XXXXXX");
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  config_.state_dir = root + "/state";
  Start();
  v1::CreateJobResponse created, again;
  {
    FakeWorker worker(client_.get(), "a");
    std::future<grpc::Status> creating = std::async(
        [&] { return client_->Create(SpecOf("j", "/d"), &created); });
    ASSERT_TRUE(worker.Upload(worker.Asked(), "index").ok());
    ASSERT_TRUE(creating.get().ok());
  }
  Start();
  const grpc::Status attached = client_->Create(SpecOf("j", "/d"), &again);
  ASSERT_TRUE(attached.ok()) << attached.error_message();
  EXPECT_TRUE(again.attached());
  EXPECT_EQ(again.job().plan_hash(), created.job().plan_hash());
  EXPECT_EQ(client_->Status().sequence(), 2u);
  daemon_.reset();
  std::filesystem::remove_all(root);
}

TEST_F(ServiceTest, ADrainDoesNotWaitForSessions) {
  FakeWorker worker(client_.get(), "a");
  worker.Next();
  const MonotonicTime start = Clock::Real().Now();
  std::future<grpc::Status> ended = std::async([&] { return worker.End(); });
  daemon_->Drain();
  EXPECT_EQ(ended.get().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_LT(Clock::Real().Now() - start, milliseconds(1500));
}

TEST_F(ServiceTest, RandomBytesOnThePortHurtNobody) {
  const std::string address = daemon_->address();
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  for (int round = 0; round < 20; ++round) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    std::string noise = round % 2 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
    for (int i = 0; i < 2000; ++i)
      noise += static_cast<char>(i * 7919 + round * 31);
    send(fd, noise.data(), noise.size(), MSG_NOSIGNAL);
    close(fd);
  }
  EXPECT_EQ(client_->Status().workers_size(), 0);
}

TEST(Daemon, AbstractSocketsWork) {
  Config config;
  config.listen = fmt::format("unix-abstract:leat-test-{}", getpid());
  auto daemon = Daemon::Start(config, &Clock::Real());
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  Client client((*daemon)->address(), "");
  EXPECT_EQ(client.Status().state_store(), "memory");
  EXPECT_EQ(client.Status().findings(0).code(), "NO_WORKERS");
}

TEST(Daemon, ConfigurationErrorsAreNamed) {
  Config config;
  config.listen = "127.0.0.1:0";
  config.coordinator.membership.lost_after = milliseconds(1);
  EXPECT_EQ(Daemon::Start(config, &Clock::Real()).status().code(),
            absl::StatusCode::kInvalidArgument);
  config = {};
  config.listen = "0.0.0.0:0";
  EXPECT_EQ(Daemon::Start(config, &Clock::Real()).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReadToken("/no/such/file").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace leat::server
