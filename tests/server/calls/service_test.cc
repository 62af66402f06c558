// SPDX-License-Identifier: Apache-2.0
//
// The whole daemon in this process, called over real sockets.
#include "server/calls/service.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/tls/secret_files.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

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
  v1::HelloResponse hello;
  EXPECT_EQ(stranger.coordinator()
                .Hello(stranger.Context().get(), {}, &hello)
                .error_code(),
            StatusCode::UNAUTHENTICATED);
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
  EXPECT_EQ(worker.Upload(v1::IndexDataset(), "x").error_code(),
            StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(worker.Upload(v1::UploadIndexRequest()).error_code(),
            StatusCode::UNAUTHENTICATED);
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
  config_.drain_timeout = std::chrono::seconds(30);
  Start();
  FakeWorker worker(client_.get(), "a");
  worker.Next();
  const MonotonicTime start = Clock::Real().Now();
  std::future<grpc::Status> ended = std::async([&] { return worker.End(); });
  daemon_->Drain();
  EXPECT_EQ(ended.get().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_LT(Clock::Real().Now() - start, config_.drain_timeout / 2);
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
  config.coordinator.no_workers_after = Duration(0);
  auto daemon = Daemon::Start(config, &Clock::Real());
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  Client client((*daemon)->address(), "");
  EXPECT_EQ(client.Status().state_store(), "memory");
  EXPECT_EQ(client.Status().findings(0).code(), "NO_WORKERS");
}

TEST(Daemon, ItsOwnTokenIsReplacedWhileItRuns) {
  Config config;
  config.listen = fmt::format("unix-abstract:leat-test-{}", getpid());
  config.security.token = "the-first-token-of-all";
  auto daemon = Daemon::Start(config, &Clock::Real());
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const auto code = [&](const std::string& token) {
    Client client((*daemon)->address(), token);
    v1::GetStatusResponse response;
    return client.admin()
        .GetStatus(client.Context().get(), {}, &response)
        .error_code();
  };
  EXPECT_EQ(code("the-first-token-of-all"), grpc::StatusCode::OK);
  for (const char* next :
       {"the-second-token-of-all", "the-third-token-of-all"}) {
    EXPECT_EQ(code(next), grpc::StatusCode::UNAUTHENTICATED);
    config.security.token = next;
    ASSERT_TRUE((*daemon)->Replace(config.security).ok());
    EXPECT_EQ(code(next), grpc::StatusCode::OK);
  }
  EXPECT_EQ(code("the-second-token-of-all"), grpc::StatusCode::OK)
      << "the one before, for those who have not read theirs again";
  EXPECT_EQ(code("the-first-token-of-all"), grpc::StatusCode::UNAUTHENTICATED);
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
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(rpc::ReadAccessToken("/no/such/file").status().code(),
            absl::StatusCode::kNotFound);
  const std::string file = testing::TempDir() + "/leat_own_token";
  for (const char* wrong : {"x\n", "0123456789\nabcdef\n", "\n", " \t\n"}) {
    std::ofstream(file) << wrong;
    EXPECT_EQ(rpc::ReadAccessToken(file).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
  for (const char* text :
       {"0123456789abcdef\r\n", "\n  0123456789abcdef\t\n\n"}) {
    std::ofstream(file) << text;
    EXPECT_EQ(*rpc::ReadAccessToken(file), "0123456789abcdef");
  }
  std::filesystem::remove(file);
  EXPECT_TRUE(rpc::RefuseOtherTokens(nullptr).ok());
  EXPECT_TRUE(rpc::RefuseOtherTokens("").ok());
  EXPECT_EQ(rpc::RefuseOtherTokens("secret").code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat::server
