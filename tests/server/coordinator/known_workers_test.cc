// SPDX-License-Identifier: Apache-2.0
//
// Workers' statements at registration: the keys that consumers receive, and
// whether the workers are confined.
#include <string>

#include "leat/v1/coordinator.pb.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

WorkerRegistration Keyed(const std::string& name, char key) {
  WorkerRegistration worker = WorkerOf(name);
  worker.public_key = std::string(32, key);
  return worker;
}

TEST(KnownWorkers, ConsumersAreToldTheKeysOfThoseWhoLive) {
  World world;
  const SessionId a = world.Join(Keyed("a", 'a'));
  world.Join("old");  // of a release without a key
  const auto job = world.MakeJob(SpecOf("j", "/d"), a);
  world.Advance(seconds(1));
  const auto table = [&] {
    return world->AssignmentOf(job->datasets[0].id, DecoderClass::kExact);
  };
  ASSERT_NE(table(), nullptr);
  v1::ConsumerSessionResponse told;
  ASSERT_TRUE(told.ParseFromString(table()->encoded));
  ASSERT_EQ(told.assignment().workers_size(), 2);
  EXPECT_EQ(told.assignment().workers(0).public_key(), std::string(32, 'a'));
  EXPECT_EQ(told.assignment().workers(1).public_key(), "");
  // The same process, over another connection.
  const uint64_t version = table()->version;
  world.Join(Keyed("a", 'a'));
  world.Advance(seconds(1));
  EXPECT_EQ(table()->version, version);
  // Another process.
  world.Join(Keyed("a", 'b'));
  world.Advance(milliseconds(60));
  EXPECT_GT(table()->version, version);
  ASSERT_TRUE(told.ParseFromString(table()->encoded));
  EXPECT_EQ(told.assignment().workers(0).public_key(), std::string(32, 'b'));
}

TEST(KnownWorkers, OneThatIsNotConfinedIsAFindingWhileItLives) {
  World world;
  world.Join("a");
  EXPECT_FALSE(world.Found("NOT_CONFINED"));
  WorkerRegistration open = WorkerOf("open");
  open.not_confined = "--no-seccomp";
  const SessionId session = world.Join(open);
  EXPECT_TRUE(world.Found("NOT_CONFINED"));
  EXPECT_NE(world.SummaryOf("NOT_CONFINED").find("worker open on host host-"),
            std::string::npos);
  EXPECT_NE(world.SummaryOf("NOT_CONFINED").find("--no-seccomp"),
            std::string::npos);
  world->CloseWorker(session, /*left=*/true, world.now());
  EXPECT_FALSE(world.Found("NOT_CONFINED"));
  // A lost worker is reported as lost.
  world.Join(open);
  world->DrainWorker("open", true, world.now(), [](const absl::Status&) {});
  world.Write();
  EXPECT_TRUE(world.Found("NOT_CONFINED"));
  world.Advance(seconds(60));
  EXPECT_FALSE(world.Found("NOT_CONFINED"));
  world.Join("open");
  EXPECT_FALSE(world.Found("NOT_CONFINED"));
}

TEST(KnownWorkers, OneThatLetsInEverybodyIsAFinding) {
  World world;
  WorkerRegistration open = WorkerOf("open");
  open.insecure_listener = "0.0.0.0:7500";
  const SessionId session = world.Join(open);
  EXPECT_NE(world.SummaryOf("INSECURE_LISTENER")
                .find("worker open on host host-open takes unencrypted"),
            std::string::npos)
      << world.SummaryOf("INSECURE_LISTENER");
  EXPECT_NE(world.SummaryOf("INSECURE_LISTENER").find("0.0.0.0:7500"),
            std::string::npos);
  world->CloseWorker(session, /*left=*/true, world.now());
  EXPECT_FALSE(world.Found("INSECURE_LISTENER"));
}

TEST(KnownWorkers, OneThatCannotUseItsNewFilesIsAFindingUntilItCan) {
  World world;
  const SessionId session = world.Join("a");
  const auto beat = [&](const char* why) {
    WorkerReport report;
    report.not_reloaded = why;
    ASSERT_TRUE(world->Heartbeat(session, report, {}, world.now()).ok());
  };
  beat("--tls-key is of another certificate");
  EXPECT_EQ(world.SummaryOf("NOT_RELOADED"),
            "worker a on host host-a does not use its changed certificates or "
            "access token, and goes on with the ones before: --tls-key is of "
            "another certificate");
  beat("");
  EXPECT_FALSE(world.Found("NOT_RELOADED"));
  beat("--tls-key is of another certificate");
  world->CloseWorker(session, /*left=*/true, world.now());
  EXPECT_FALSE(world.Found("NOT_RELOADED"));
  world->SetReloaded(InvalidArgument("--tls-cert: no PEM"));
  EXPECT_NE(world.SummaryOf("NOT_RELOADED").find("the coordinator does not"),
            std::string::npos);
  world->SetReloaded(absl::OkStatus());
  EXPECT_FALSE(world.Found("NOT_RELOADED"));
}

TEST(KnownWorkers, OneWhoseCertificateEndsIsAFindingUntilItIsReplaced) {
  World world;
  const SessionId session = world.Join("a");
  world.Join("b");
  const auto beat = [&](Duration left) {
    WorkerReport report;
    report.certificate = {.end = world.now().wall + left};
    ASSERT_TRUE(
        world->Heartbeat(session, std::move(report), {}, world.now()).ok());
  };
  const auto days = [](int number) { return std::chrono::hours(24 * number); };
  beat(days(40));
  EXPECT_FALSE(world.Found("CERTIFICATE_EXPIRES"));
  beat(days(20));
  EXPECT_NE(world.SummaryOf("CERTIFICATE_EXPIRES")
                .find("the certificate of worker a on host host-a expires in "
                      "20 days and 0 hours"),
            std::string::npos)
      << world.SummaryOf("CERTIFICATE_EXPIRES");
  beat(days(-1));
  EXPECT_NE(world.SummaryOf("CERTIFICATE_EXPIRES").find("has expired"),
            std::string::npos);
  beat(days(40));
  EXPECT_FALSE(world.Found("CERTIFICATE_EXPIRES"));
  // A worker that comes back after a long time is counted once.
  world.Advance(seconds(60));
  beat(days(3));
  EXPECT_TRUE(world.Found("CERTIFICATE_EXPIRES"));
  world->CloseWorker(session, /*left=*/true, world.now());
  EXPECT_FALSE(world.Found("CERTIFICATE_EXPIRES"));
}

TEST(KnownWorkers, ACertificateThatToolsRenewInTimeIsNoFinding) {
  World world;
  const SessionId session = world.Join("a");
  const SessionId other = world.Join("b");
  const auto beat = [&](SessionId of, Duration term, Duration left) {
    const WallTime end = world.now().wall + left;
    WorkerReport report;
    report.certificate = {.end = end, .begin = end - term};
    ASSERT_TRUE(world->Heartbeat(of, std::move(report), {}, world.now()).ok());
  };
  const auto severity = [&] {
    for (const Finding& each : world->Findings(world.now()))
      if (each.code == "CERTIFICATE_EXPIRES") return each.severity;
    return std::string();
  };
  using std::chrono::hours;
  using std::chrono::minutes;
  // A certificate that is renewed at a third of its term never has less left.
  beat(session, hours(24), hours(8));
  beat(other, hours(1), minutes(20));
  EXPECT_EQ(severity(), "");
  // The one that expires later is spoken of first.
  beat(session, hours(24), hours(5));
  EXPECT_EQ(severity(), "warn");
  EXPECT_NE(world.SummaryOf("CERTIFICATE_EXPIRES")
                .find("the certificate of worker a on host host-a expires in "
                      "5 hours and 0 minutes"),
            std::string::npos)
      << world.SummaryOf("CERTIFICATE_EXPIRES");
  beat(session, hours(24), minutes(90));
  EXPECT_EQ(severity(), "error");
  beat(session, hours(24), hours(24));
  EXPECT_EQ(severity(), "");
  world->SetCertificate(CertificateTerm{.end = world.now().wall + hours(8),
                                        .begin = world.now().wall - hours(16)});
  EXPECT_EQ(severity(), "");
  world->SetCertificate(CertificateTerm{.end = world.now().wall + hours(5),
                                        .begin = world.now().wall - hours(19)});
  EXPECT_EQ(severity(), "warn");
}

TEST(KnownWorkers, TheCoordinatorSaysItOfItself) {
  CoordinatorConfig config;
  config.not_confined = "the kernel takes no filter";
  World world(config);
  EXPECT_TRUE(world.Found("NOT_CONFINED"));
  EXPECT_NE(world.SummaryOf("NOT_CONFINED").find("the coordinator"),
            std::string::npos);
}

}  // namespace
}  // namespace leat::server
