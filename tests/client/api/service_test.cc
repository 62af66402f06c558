// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <thread>

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
