// SPDX-License-Identifier: Apache-2.0
#include "server/observe/cluster_events.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/finding_watch.h"
#include "server/observe/reports.h"
#include "server/state/records.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ClusterEvent EventOf(const std::string& type, const std::string& subject = "",
                     WallTime at = {}) {
  ClusterEvent event;
  event.at = at;
  event.type = type;
  event.severity = "info";
  if (!subject.empty()) event.subjects = {subject};
  return event;
}

std::vector<uint64_t> Numbers(const EventPage& page) {
  std::vector<uint64_t> numbers;
  for (const auto& event : page.events) numbers.push_back(event->sequence);
  return numbers;
}

TEST(ClusterEvents, ARingKeepsTheNewestAndCountsTheMissed) {
  ClusterEvents events({.max_events = 4, .max_watchers = 1, .page = 3}, 77);
  EXPECT_EQ(Numbers(*events.Read({}, 0)), std::vector<uint64_t>{});
  for (int i = 0; i < 6; ++i) events.Note(EventOf("x"));
  EventPage page = *events.Read({.after = 1}, 0);
  EXPECT_THAT(Numbers(page), ElementsAre(3, 4, 5));
  EXPECT_EQ(page.missed, 1u);
  EXPECT_EQ(page.sequence, 5u);
  EXPECT_TRUE(page.more);
  page = *events.Read({.after = page.sequence}, 0);
  EXPECT_THAT(Numbers(page), ElementsAre(6));
  EXPECT_EQ(page.missed, 0u);
  EXPECT_FALSE(page.more);
  // No event comes after a number in the future.
  EXPECT_THAT(Numbers(*events.Read({.after = 900}, 0)), IsEmpty());
  EXPECT_EQ(events.Read({.after = 900}, 0)->sequence, 6u);
}

TEST(ClusterEvents, AQueryIsOfASubjectAndATime) {
  ClusterEvents events({}, 1);
  const WallTime noon{std::chrono::hours(12)};
  events.Note(EventOf("a", "worker/w1", noon - seconds(10)));
  events.Note(EventOf("b", "worker/w10", noon));
  events.Note(EventOf("c", "job/w1", noon));
  EXPECT_THAT(Numbers(*events.Read({.subject = "worker"}, 0)),
              ElementsAre(1, 2));
  EXPECT_THAT(Numbers(*events.Read({.subject = "worker/w1"}, 0)),
              ElementsAre(1));
  EXPECT_THAT(Numbers(*events.Read({.since = noon}, 0)), ElementsAre(2, 3));
  // Events that were left out have been considered.
  EXPECT_EQ(events.Read({.subject = "dataset"}, 0)->sequence, 3u);
}

TEST(ClusterEvents, SubjectsHaveAKindThatIsKnown) {
  for (const char* good : {"", "worker", "worker/a/b", "finding/NO_WORKERS"})
    EXPECT_TRUE(CheckSubject(good).ok()) << good;
  for (const char* bad : {"wrk", "worker/", "/", "workers/x"})
    EXPECT_EQ(CheckSubject(bad).code(), absl::StatusCode::kInvalidArgument)
        << bad;
  EXPECT_EQ(CheckSubject("job/" + std::string(1000, 'x')).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ClusterEvents, AWatcherIsWokenOnceForWhatItHasNotRead) {
  ClusterEvents events({.max_watchers = 1}, 1);
  int woken = 0;
  const uint64_t watcher = *events.Watch([&] { ++woken; });
  EXPECT_EQ(events.Watch([] {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  events.Note(EventOf("a"));
  events.WakeWatchers();
  EXPECT_EQ(woken, 0) << "it has not found nothing yet";
  EventQuery query;
  query.after = events.Read(query, watcher)->sequence;
  EXPECT_THAT(Numbers(*events.Read(query, watcher)), IsEmpty());
  events.Note(EventOf("b"));
  events.Note(EventOf("c"));
  events.WakeWatchers();
  events.WakeWatchers();
  EXPECT_EQ(woken, 1);
  EXPECT_THAT(Numbers(*events.Read(query, watcher)), ElementsAre(2, 3));
  events.Stop();
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(events.Read(query, watcher).status().code(),
            absl::StatusCode::kUnavailable);
  events.Unwatch(watcher);
  EXPECT_TRUE(events.Watch([] {}).ok());
}

TEST(ClusterEvents, TextsAreBounded) {
  ClusterEvents events({}, 1);
  ClusterEvent event = EventOf("a");
  event.message = std::string(ClusterEvents::kMaxText - 1, 'x') + "ä";
  event.subjects.assign(100, std::string(5000, 'y'));
  events.Note(event);
  const EventPage page = *events.Read({}, 0);
  EXPECT_EQ(page.events[0]->message.size(), ClusterEvents::kMaxText - 1)
      << "no half of a character";
  EXPECT_EQ(page.events[0]->subjects.size(), ClusterEvents::kMaxSubjects);
  EXPECT_EQ(page.events[0]->subjects[0].size(), ClusterEvents::kMaxText);
}

Finding FindingOf(const std::string& code, const std::string& subject,
                  const std::string& severity = "warn") {
  return {code, severity, "summary", "remedy", {subject}};
}

TEST(FindingWatch, TellsWhatCameAndWhatHasGoneForAWhile) {
  FindingWatch watch(seconds(10));
  const auto at = [](int s) { return MonotonicTime(seconds(s)); };
  EXPECT_EQ(watch.Look({FindingOf("A", "worker/x")}, at(0)).size(), 1u);
  EXPECT_THAT(watch.Look({FindingOf("A", "worker/x")}, at(2)), IsEmpty());
  EXPECT_THAT(watch.Look({}, at(4)), IsEmpty()) << "it may come back";
  EXPECT_THAT(watch.Look({FindingOf("A", "worker/x")}, at(6)), IsEmpty());
  const auto second = watch.Look(
      {FindingOf("A", "worker/x"), FindingOf("A", "worker/y")}, at(8));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_THAT(second[0].finding.subjects, ElementsAre("worker/y"));
  const auto worse = watch.Look(
      {FindingOf("A", "worker/x", "error"), FindingOf("A", "worker/y")}, at(9));
  ASSERT_EQ(worse.size(), 1u);
  EXPECT_TRUE(worse[0].came);
  EXPECT_EQ(worse[0].finding.severity, "error");
  const auto gone = watch.Look({}, at(19));
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_FALSE(gone[0].came);
  EXPECT_EQ(gone[0].lasted, seconds(19));
  EXPECT_THAT(watch.Look({}, at(40)), IsEmpty());
}

// For example, those that count workers beyond the first few.
TEST(FindingWatch, TellsTheWorstOfThoseThatLookAlike) {
  FindingWatch watch(seconds(10));
  const std::vector<Finding> all = {FindingOf("A", "", "error"),
                                    FindingOf("A", "")};
  const auto came = watch.Look(all, MonotonicTime(seconds(0)));
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].finding.severity, "error");
  EXPECT_THAT(watch.Look(all, MonotonicTime(seconds(2))), IsEmpty());
}

std::vector<std::string> TypesOf(World* world, const std::string& subject) {
  std::vector<std::string> types;
  const EventPage page = *(**world).events().Read({.subject = subject}, 0);
  for (const auto& event : page.events) types.push_back(event->type);
  return types;
}

std::string MessageOf(World* world, const std::string& type) {
  std::string message = "none";
  const EventPage page = *(**world).events().Read({}, 0);
  for (const auto& event : page.events)
    if (event->type == type) message = event->message;
  return message;
}

TEST(CoordinatorEvents, TellAWorkersLife) {
  World world;
  const SessionId a = world.Join("a");
  ASSERT_TRUE(world.Drain("a").ok());
  ASSERT_TRUE(world.Drain("a", false).ok());
  ASSERT_TRUE(world.Beat(a, 0, {FailureWith("/data", "EIO")}).ok());
  EXPECT_THAT(MessageOf(&world, "worker.storage_fails"),
              HasSubstr("cannot read /data: EIO"));
  ASSERT_TRUE(world.Beat(a).ok());
  // Late enough that one worker's silence is no outage of all.
  world.Advance(seconds(30));
  ASSERT_TRUE(world.Beat(a).ok());
  world->CloseWorker(a, /*left=*/true, world.now());
  EXPECT_THAT(TypesOf(&world, "worker/a"),
              ElementsAre("worker.joined", "worker.drained", "worker.undrained",
                          "worker.storage_fails", "worker.storage_recovered",
                          "worker.lost", "worker.back", "worker.left"));
  EXPECT_THAT(TypesOf(&world, "coordinator"),
              ElementsAre("coordinator.started"));
}

TEST(CoordinatorEvents, TellAJobsLifeWithItsDatasetAndConsumers) {
  World world;
  const SessionId a = world.Join("a");
  const auto job = world.MakeJob(SpecOf("cats", "/d"), a);
  ASSERT_NE(job, nullptr);
  world.Advance(seconds(1));
  const SessionId consumer = world.Open(*job, "host-1");
  ASSERT_TRUE(
      world->ReportConsumer(consumer, {.epoch = 2, .step = 7}, world.now())
          .ok());
  world->CloseConsumer(consumer, world.now());
  ASSERT_TRUE(world.DeleteJob("cats").ok());
  ASSERT_TRUE(world.DeleteDataset("photos").ok());
  EXPECT_THAT(TypesOf(&world, "job/cats"),
              ElementsAre("job.created", "consumer.opened", "consumer.closed",
                          "job.deleted"));
  EXPECT_THAT(TypesOf(&world, "dataset/photos"),
              ElementsAre("dataset.indexed", "job.created", "shards.assigned",
                          "dataset.deleted"));
  EXPECT_THAT(MessageOf(&world, "consumer.closed"),
              HasSubstr("ended at epoch 2, step 7"));
  EXPECT_THAT(MessageOf(&world, "shards.assigned"), HasSubstr("to 1 worker"));
  // Time and numbers increase.
  const EventPage all = *world->events().Read({}, 0);
  for (size_t i = 1; i < all.events.size(); ++i) {
    EXPECT_EQ(all.events[i]->sequence, all.events[i - 1]->sequence + 1);
    EXPECT_GE(all.events[i]->at, all.events[i - 1]->at);
  }
}

TEST(CoordinatorEvents, AConsumerThatToldNoPositionEndsWithoutOne) {
  World world;
  const auto job = world.MakeJob(SpecOf("cats", "/d"), world.Join("a"));
  world->CloseConsumer(world.Open(*job, "host-1"), world.now());
  EXPECT_THAT(MessageOf(&world, "consumer.closed"),
              HasSubstr("ended before it had told its position"));
  EXPECT_EQ(world->Jobs()[0].position_at, std::nullopt);
}

TEST(CoordinatorEvents, AJobKeepsThePositionOfItsLastConsumerThatWasNoLook) {
  World world;
  const auto job = world.MakeJob(SpecOf("cats", "/d"), world.Join("a"));
  const auto pull = [&](uint64_t epoch, uint64_t step, bool look) {
    ConsumerOpening opening{job->plan_hash, "host", 1, "c", "cats"};
    opening.look = look;
    const SessionId consumer =
        *world->OpenConsumer(opening, world.now(), [] {});
    EXPECT_TRUE(world
                    ->ReportConsumer(consumer, {.epoch = epoch, .step = step},
                                     world.now())
                    .ok());
    const JobView during = world->Jobs()[0];
    EXPECT_EQ(during.consumers, 1u);
    EXPECT_EQ(during.epoch, epoch == 0 ? 2u : epoch);
    world.Advance(seconds(1));
    world->CloseConsumer(consumer, world.now());
  };
  const WallTime reached = world.now().wall;
  pull(2, 7, /*look=*/false);
  pull(0, 1, /*look=*/true);
  const JobView view = world->Jobs()[0];
  EXPECT_EQ(view.consumers, 0u);
  EXPECT_EQ(std::pair(view.epoch, view.step), std::pair(2ul, 7ul));
  EXPECT_EQ(view.position_at, reached);
  // It goes with the job, and with the process.
  ASSERT_TRUE(world.DeleteJob("cats").ok());
  world.MakeJob(SpecOf("cats", "/d"), 0);
  EXPECT_EQ(world->Jobs()[0].position_at, std::nullopt);
  pull(1, 1, /*look=*/false);
  world.Restart();
  EXPECT_EQ(world->Jobs()[0].position_at, std::nullopt);
}

TEST(CoordinatorEvents, TellFindingsAsTheyComeAndGo) {
  World world({.no_workers_after = Duration(0)});
  world->CompareFindings(world.now());
  EXPECT_THAT(TypesOf(&world, "finding/NO_WORKERS"),
              ElementsAre("finding.raised"));
  world.Join("a");
  world->CompareFindings(world.now());
  world.Advance(seconds(2));
  world->CompareFindings(world.now());
  EXPECT_THAT(TypesOf(&world, "finding"), ElementsAre("finding.raised"));
  world.Stop(seconds(9));
  world->CompareFindings(world.now());
  EXPECT_THAT(TypesOf(&world, "finding/NO_WORKERS"),
              ElementsAre("finding.raised", "finding.cleared"));
}

TEST(CoordinatorEvents, AStartBeginsTheNumbersAnew) {
  World world;
  world.Join("a");
  const uint64_t before = world->events().instance();
  world.Restart();
  world.Join("b");
  EXPECT_NE(world->events().instance(), before);
  EXPECT_THAT(TypesOf(&world, "worker"), ElementsAre("worker.joined"));
  EXPECT_EQ(world->events().Read({}, 0)->events[0]->sequence, 1u);
}

// Returns a finding with the code; nullopt: none.
std::optional<Finding> FindingIn(World* world, const std::string& code) {
  for (Finding& finding : (**world).Findings(world->now()))
    if (finding.code == code) return std::move(finding);
  return std::nullopt;
}

absl::Status Mute(World* world, const std::string& code,
                  std::optional<Duration> lifetime) {
  absl::Status result = Internal("not answered");
  (**world).MuteFinding(code, lifetime, world->now(),
                        [&](absl::Status status) { result = status; });
  world->Write();
  return result;
}

TEST(Mutes, EndWithTheirTimeAndOutliveARestart) {
  World world({.no_workers_after = Duration(0)});
  ASSERT_TRUE(Mute(&world, "NO_WORKERS", seconds(60)).ok());
  EXPECT_TRUE(FindingIn(&world, "NO_WORKERS")->muted);
  EXPECT_THAT(TypesOf(&world, "finding/NO_WORKERS"),
              ElementsAre("finding.muted"));
  world.Restart();
  EXPECT_TRUE(FindingIn(&world, "NO_WORKERS")->muted);
  EXPECT_TRUE(FindingIn(&world, "NO_WORKERS")->muted_until.has_value());
  world.Stop(seconds(61));
  EXPECT_FALSE(FindingIn(&world, "NO_WORKERS")->muted);
  ASSERT_TRUE(Mute(&world, "NO_WORKERS", std::nullopt).ok());
  world.Stop(std::chrono::hours(24 * 1000));
  EXPECT_TRUE(FindingIn(&world, "NO_WORKERS")->muted);
  absl::Status unmuted = Internal("not answered");
  world->UnmuteFinding("NO_WORKERS",
                       [&](absl::Status status) { unmuted = status; });
  world.Write();
  EXPECT_TRUE(unmuted.ok());
  EXPECT_FALSE(FindingIn(&world, "NO_WORKERS")->muted);
}

TEST(Mutes, EndWhenItGetsWorse) {
  World world;
  world->SetCertificate(
      CertificateTerm{.end = world.now().wall + std::chrono::hours(24 * 20)});
  ASSERT_EQ(FindingIn(&world, "CERTIFICATE_EXPIRES")->severity, "warn");
  ASSERT_TRUE(Mute(&world, "CERTIFICATE_EXPIRES", std::nullopt).ok());
  EXPECT_TRUE(FindingIn(&world, "CERTIFICATE_EXPIRES")->muted);
  world.Stop(std::chrono::hours(24 * 15));
  ASSERT_EQ(FindingIn(&world, "CERTIFICATE_EXPIRES")->severity, "error");
  EXPECT_FALSE(FindingIn(&world, "CERTIFICATE_EXPIRES")->muted);
}

TEST(Mutes, AreOfCodesThatThereAre) {
  World world({.no_workers_after = Duration(0)});
  const absl::Status unknown = Mute(&world, "NO_WORKER", seconds(1));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(unknown)), HasSubstr("NO_WORKERS"));
  EXPECT_EQ(Mute(&world, "NO_WORKERS", seconds(0)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Mute(&world, "NO_WORKERS", std::chrono::hours(24 * 400)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::ranges::is_sorted(kFindingCodes));
}

// Neither by a call, nor by a state in which an older release muted it.
TEST(Mutes, AnInsecureListenerIsSpokenOfForAsLongAsThereIsOne) {
  CoordinatorConfig config;
  config.insecure_listener = "0.0.0.0:7411";
  const auto store = std::make_shared<MemoryStore>();
  ASSERT_TRUE(
      store->Append({{}, FindingMuted{"INSECURE_LISTENER", {}, "error"}, {}})
          .ok());
  World world(config, store);
  EXPECT_FALSE(FindingIn(&world, "INSECURE_LISTENER")->muted);
  const absl::Status refused = Mute(&world, "INSECURE_LISTENER", seconds(9));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("--insecure"));
  EXPECT_FALSE(FindingIn(&world, "INSECURE_LISTENER")->muted);
}

TEST(Mutes, AreKeptAsTheyAre) {
  const WallTime until{std::chrono::hours(5)};
  for (const FindingMuted& muted :
       {FindingMuted{"NO_WORKERS", until, "error"},
        FindingMuted{"NO_WORKERS", std::nullopt, "warn"}}) {
    State state;
    ASSERT_TRUE(state.Apply(*DecodeEvent(EncodeEvent({{}, muted, {}}))).ok());
    State again;
    for (const Event& event : state.Events())
      again.Replay(*DecodeEvent(EncodeEvent(event)));
    ASSERT_TRUE(again.mutes().contains("NO_WORKERS"));
    EXPECT_EQ(again.mutes().at("NO_WORKERS").until, muted.until);
    EXPECT_EQ(again.mutes().at("NO_WORKERS").severity, muted.severity);
    again.Replay(
        *DecodeEvent(EncodeEvent({{}, FindingUnmuted{"NO_WORKERS"}, {}})));
    EXPECT_THAT(again.mutes(), IsEmpty());
    EXPECT_THAT(again.Events(), IsEmpty());
  }
}

}  // namespace
}  // namespace leat::server
