// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <thread>

#include "client/c/status.h"
#include "client/leat/leat.h"
#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST(Connect, WaitsForACoordinatorThatStartsLate) {
  FakeCoordinator coordinator(MakeFakeJob({}));
  coordinator.Kill();
  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(300));
    coordinator.Start();
  });
  const auto service = Service::Connect(
      {.address = coordinator.address(), .timeout = absl::Seconds(20)});
  late.join();
  EXPECT_TRUE(service.ok()) << service.status();
}

TEST_F(ClusterTest, ConnectingAsksForNoStatus) {
  Start(1);
  EXPECT_EQ(coordinator_->status_calls(), 0);
  EXPECT_TRUE(service_->admin().Get("status").ok());
  EXPECT_EQ(coordinator_->status_calls(), 1);
}

TEST_F(ClusterTest, JobsAreFoundCreatedAndRefused) {
  Start(1);
  EXPECT_TRUE(absl::IsNotFound(service_->GetJob("other").status()));
  std::string spec = rpc::ToJson(info_.spec);
  std::vector<std::string> waited;
  EXPECT_TRUE(service_
                  ->CreateJob(spec, kLong, Relist::kAuto,
                              [&](std::string_view waits_for) {
                                waited.emplace_back(waits_for);
                              })
                  .ok());
  EXPECT_THAT(waited, testing::ElementsAre("worker w lists /data"));
  EXPECT_TRUE(
      absl::IsInvalidArgument(service_->CreateJob("{", kLong).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      service_->CreateJob("{\"name\": \"x\"}", kLong).status()));
}

// Protobuf's parser takes more than JSON.
TEST_F(ClusterTest, TheCInterfaceNamesTheJobThatWaitsHoweverItsSpecIsQuoted) {
  Start(1);
  std::string spec = rpc::ToJson(info_.spec);
  std::replace(spec.begin(), spec.end(), '"', '\'');
  leat_service service{.service = std::move(service_)};
  std::vector<std::string> told;
  leat_service_on_waiting(
      &service,
      [](void* to, const char* job, const char* waits_for) {
        static_cast<std::vector<std::string>*>(to)->push_back(std::string(job) +
                                                              ": " + waits_for);
      },
      &told);
  leat_job* job = nullptr;
  leat_status* const status =
      leat_job_create(&service, spec.c_str(), nullptr, 30, &job);
  EXPECT_EQ(status, nullptr) << leat_status_message(status);
  EXPECT_THAT(told, testing::ElementsAre("train: worker w lists /data"));
  leat_status_free(status);
  leat_job_free(job);
}

TEST_F(ClusterTest, ACoordinatorThatIsStartedAgainMakesTheJob) {
  Start(1);
  coordinator_->Kill();
  std::thread engine([&] { coordinator_->Start(); });
  const auto job = service_->CreateJob(rpc::ToJson(info_.spec), kLong);
  engine.join();
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST(Connect, NobodyThereSaysWhereAndWhatToDo) {
  const auto service = Service::Connect(
      {.address = "127.0.0.1:1", .timeout = absl::Milliseconds(200)});
  ASSERT_TRUE(absl::IsUnavailable(service.status())) << service.status();
  const std::string text(Message(service.status()));
  EXPECT_THAT(text, HasSubstr("no coordinator at 127.0.0.1:1: "));
  EXPECT_THAT(text, HasSubstr("Connection refused"));
  EXPECT_THAT(text, HasSubstr("leat-coordinator --listen 127.0.0.1:1"));
}

TEST(Connect, WrongAccessTokenIsRefusedAtOnce) {
  FakeCoordinator coordinator(MakeFakeJob({}), "secret");
  EXPECT_TRUE(Service::Connect(
                  {.address = coordinator.address(), .access_token = "secret"})
                  .ok());
  const auto service = Service::Connect(
      {.address = coordinator.address(), .access_token = "guess"});
  EXPECT_TRUE(absl::IsUnauthenticated(service.status())) << service.status();
  EXPECT_THAT(std::string(Message(service.status())),
              HasSubstr(coordinator.address()));
}

TEST(Connect, WorkersAddressIsNotACoordinators) {
  FakeWorker worker("w");
  const auto service = Service::Connect({.address = worker.address()});
  EXPECT_TRUE(absl::IsFailedPrecondition(service.status()));
  EXPECT_THAT(std::string(Message(service.status())),
              testing::AllOf(HasSubstr("not a Leat coordinator"),
                             testing::Not(HasSubstr("coordinator at " +
                                                    worker.address()))));
}

TEST(Connect, WrongOptionsAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Service::Connect({.address = "x:1", .timeout = absl::ZeroDuration()})
          .status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Service::Connect({.address = "x:1", .cert_pem = "x"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Service::Connect({.embedded_workers = 0}).status()));
}

}  // namespace
}  // namespace leat::client
