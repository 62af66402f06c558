// SPDX-License-Identifier: Apache-2.0
#include "server/observe/reports.h"

#include <fstream>
#include <sstream>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_creations.h"
#include "server/membership/consumer_table.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Snapshot Healthy() {
  Snapshot snapshot;
  snapshot.workers = snapshot.ready = 3;
  return snapshot;
}

std::vector<std::string> CodesOf(const Snapshot& snapshot) {
  std::vector<std::string> codes;
  for (const Finding& finding : FindingsOf(snapshot)) {
    EXPECT_FALSE(finding.summary.empty() || finding.remedy.empty());
    EXPECT_TRUE(CheckFindingCode(finding.code).ok()) << finding.code;
    codes.push_back(finding.code);
  }
  return codes;
}

TEST(Reports, AHealthyServiceHasNoFindings) {
  EXPECT_THAT(CodesOf(Healthy()), IsEmpty());
}

TEST(Reports, EachFactIsAFindingWithARemedyInAFixedOrder) {
  Snapshot at = Healthy();
  at.ready = 0;
  at.held = true;
  at.lost = 1;
  at.first_lost = {{"w", "host"}};
  at.failing = 1;
  at.first_failing = {{"v", "host", "/data", "EIO", 2}};
  at.not_confined = "--no-seccomp";
  at.unconfined.Add("u", "host", "EINVAL");
  at.insecure.Add("i", "host", "0.0.0.0:2");
  at.expiring_soon.Add("s", "host", "has expired");
  at.expiring.Add("e", "host", "expires in 8 days and 0 hours");
  at.own_not_reloaded = "--tls-key: no PEM";
  at.not_reloaded.Add("r", "host", "--tls-key: no PEM");
  at.without_decoder[DecoderClass::kNvjpeg] = {{"a", "b"}, 9};
  at.unable = {{"\"parquet\"",
                "worker w: no libarrow",
                "install it",
                false,
                {{"j"}, 1}}};
  at.stalled = {{"c", "j", 0.5}};
  at.unreached = {{"c", "j", "host", "w", "it wants a certificate"}};
  at.bad_jobs = {{"j", 4, "truncated", absl::OkStatus()},
                 {"k", 4, "truncated", DataLoss("job k: too many")}};
  at.failed_listings = {{"reader", "no such folder"}};
  at.waiting_listings = {{"reader", "connection refused", "d", "w"}};
  at.damaged = {{"photos", "blocks/ab is damaged", "it is listed again"}};
  at.losses = "read up to event 3";
  at.changed = {{"j", "photos", "list.txt: its text has changed"}};
  at.insecure_listener = "0.0.0.0:1";
  at.expiry = {.left = std::chrono::hours(8 * 24), .soon = false};
  at.last_write = ResourceExhausted("full");
  at.set_aside = 1;
  at.first_set_aside = {{"", "job old", "its check refuses it", "old", {}}};
  at.regressed = {"w", 9, 5};
  EXPECT_THAT(CodesOf(at),
              ElementsAre("NO_WORKERS", "WORKER_LOST", "WORKERS_SILENT",
                          "WORKER_STORAGE", "NOT_CONFINED", "NOT_CONFINED",
                          "INSECURE_LISTENER", "CERTIFICATE_EXPIRES",
                          "CERTIFICATE_EXPIRES", "NOT_RELOADED", "NOT_RELOADED",
                          "NO_DECODER", "NO_ABILITY", "WORKER_UNREACHED",
                          "CONSUMER_STALLED", "BAD_SAMPLES", "JOB_GIVEN_UP",
                          "INDEX_FAILED", "INDEX_WAITS", "INDEX_DAMAGED",
                          "DATASET_CHANGED", "INSECURE_LISTENER",
                          "CERTIFICATE_EXPIRES", "STATE_FULL", "STATE_SALVAGED",
                          "STATE_SET_ASIDE", "STATE_REGRESSED"));
}

TEST(Reports, EveryCodeIsInTheManual) {
  std::stringstream manual;
  manual << std::ifstream(LEAT_SOURCE_DIR "/docs/see/findings.md").rdbuf();
  for (const std::string_view code : kFindingCodes)
    EXPECT_NE(manual.str().find(fmt::format("\n```{{finding}} {}\n", code)),
              std::string::npos)
        << code << ": want its directive in docs/see/findings.md";
}

TEST(Reports, AJobWhoseNameBeginsWithADashIsNoOptionOfItsRemedy) {
  Snapshot at = Healthy();
  at.bad_jobs = {{"-j", 4, "truncated", absl::OkStatus()},
                 {"-k", 4, "truncated", DataLoss("job -k: too many")}};
  at.set_aside = 1;
  at.first_set_aside = {{"-l", "job -l", "its check refuses it", "-l", {}}};
  std::string all;
  for (const Finding& finding : FindingsOf(at)) all += finding.remedy + "\n";
  EXPECT_THAT(all, HasSubstr("leat describe job -- -j"));
  EXPECT_THAT(all, HasSubstr("leat describe job -- -k"));
  EXPECT_THAT(all, HasSubstr("leat delete job -- "));
}

TEST(Reports, ShardsOfALostWorkerAreWithOthersOnlyWhereThereAreSome) {
  Snapshot snapshot = Healthy();
  snapshot.lost = 1;
  snapshot.first_lost = {{"w", "host"}};
  const auto said = [&] {
    std::string all;
    for (const Finding& finding : FindingsOf(snapshot)) all += finding.summary;
    return all;
  };
  EXPECT_THAT(said(), HasSubstr("its shards are with others"));
  snapshot.ready = 0;
  EXPECT_THAT(said(), HasSubstr("no other worker can take its shards"));
}

TEST(Reports, ACertificateIsSpokenOfBeforeItExpires) {
  const auto at = [](Duration left, bool soon) {
    Snapshot snapshot = Healthy();
    snapshot.expiry = {.left = left, .soon = soon};
    const std::vector<Finding> findings = FindingsOf(snapshot);
    return findings.empty()
               ? std::string()
               : findings.front().severity + ": " + findings.front().summary;
  };
  using std::chrono::hours;
  using std::chrono::minutes;
  EXPECT_THAT(at(hours(30 * 24 - 1), false),
              HasSubstr("warn: the coordinator's certificate expires in 29 "
                        "days and 23 hours"));
  EXPECT_THAT(at(hours(25), true), HasSubstr("error: "));
  EXPECT_THAT(at(hours(25), true), HasSubstr("in 1 day and 1 hour"));
  EXPECT_THAT(at(minutes(150), false), HasSubstr("in 2 hours and 30 minutes"));
  EXPECT_THAT(at(minutes(5), true), HasSubstr("in 5 minutes"));
  EXPECT_THAT(at(hours(0), true), HasSubstr("has expired"));
  EXPECT_THAT(at(hours(-50), true), HasSubstr("has expired"));
}

TEST(Reports, WhatIsTooMuchToListIsCounted) {
  Snapshot at = Healthy();
  at.lost = kMaxAlike + 7;
  for (size_t i = 0; i < kMaxAlike; ++i)
    at.first_lost.push_back({fmt::format("w{}", i), "host"});
  const std::vector<Finding> findings = FindingsOf(at);
  ASSERT_EQ(findings.size(), kMaxAlike + 1);
  EXPECT_THAT(findings.back().summary, HasSubstr("7 more workers"));
  Snapshot open = Healthy();
  for (size_t i = 0; i < kMaxAlike + 3; ++i)
    open.insecure.Add(fmt::format("w{}", i), "host", "0.0.0.0:1");
  EXPECT_EQ(FindingsOf(open).size(), kMaxAlike + 1);
  EXPECT_THAT(FindingsOf(open).back().summary,
              AllOf(HasSubstr("3 more workers"), HasSubstr("unencrypted")));
}

TEST(ConsumerTable, EveryIndexForgetsWhoHasGone) {
  ConsumerTable table;
  const Digest plan = HashOf("plan");
  const TableKey key{"d", DecoderClass::kExact};
  const auto add = [&](SessionId id, const std::string& name) {
    Consumer consumer;
    consumer.opening.plan_hash = plan;
    consumer.opening.consumer = name;
    consumer.job = "j";
    consumer.keys = {key};
    table.Add(id, std::move(consumer));
  };
  add(1, "b");
  add(2, "a");
  add(3, "a");
  EXPECT_THAT(table.OfTable(key), ElementsAre(1, 2, 3));
  EXPECT_THAT(table.OfJob("j"), ElementsAre(1, 2, 3));
  std::vector<SessionId> by_name;
  for (const auto& [name, id] : table.by_name()) by_name.push_back(id);
  EXPECT_THAT(by_name, ElementsAre(2, 3, 1));
  EXPECT_FALSE(table.IsNewest(2)) << "3 has its name";
  EXPECT_TRUE(table.IsNewest(3) && table.IsNewest(1));
  EXPECT_EQ(table.NumConsumers("j"), 2u);
  EXPECT_TRUE(table.Remove(2));
  EXPECT_FALSE(table.Remove(2));
  EXPECT_THAT(table.OfJob("j"), ElementsAre(1, 3));
  EXPECT_TRUE(table.UsesPlan(plan));
  EXPECT_TRUE(table.Remove(1) && table.Remove(3));
  EXPECT_FALSE(table.UsesPlan(plan));
  EXPECT_THAT(table.OfTable(key), IsEmpty());
  EXPECT_THAT(table.by_name(), IsEmpty());
}

TEST(JobCreations, OneThatIsWrittenHasNoDeadline) {
  JobCreations creations;
  const auto add = [&](uint64_t id, int at_s) {
    creations.Add(id, JobCreation(*Prepare(SpecOf("j", "/d")), {},
                                  Relist::kAuto, MonotonicTime(seconds(at_s)),
                                  Now{}, [](const JobCreation::Answer&) {}));
  };
  add(1, 10);
  add(2, 20);
  const std::string dataset = creations.Find(1)->job().sources[0].reader_id;
  EXPECT_THAT(creations.WaitingFor(dataset), ElementsAre(1, 2));
  EXPECT_EQ(creations.NextDeadline(), MonotonicTime(seconds(10)));
  EXPECT_TRUE(creations.StartWriting(1));
  EXPECT_EQ(creations.NextDeadline(), MonotonicTime(seconds(20)));
  EXPECT_THAT(creations.WaitingFor(dataset), ElementsAre(2));
  EXPECT_EQ(creations.Late(MonotonicTime(seconds(19))), std::nullopt);
  EXPECT_EQ(creations.Late(MonotonicTime(seconds(20))), 2u);
  EXPECT_TRUE(creations.Take(2));
  EXPECT_TRUE(creations.Wants(dataset)) << "the first one is not answered";
  EXPECT_TRUE(creations.Take(1));
  EXPECT_FALSE(creations.Wants(dataset));
  EXPECT_FALSE(creations.StartWriting(1));
  EXPECT_EQ(creations.NextDeadline(), MonotonicTime::max());
}

}  // namespace
}  // namespace leat::server
