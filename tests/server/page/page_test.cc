// SPDX-License-Identifier: Apache-2.0
//
// The data of the page, and its bounds.
#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "rpc/access/access.h"
#include "server/page/assets.h"
#include "server/page/data_json.h"
#include "server/page/model.h"
#include "server/page/sessions.h"
#include "server/page/tables.h"
#include "server/page/web_page.h"
#include "server/relays/sheet_relay.h"
#include "tests/server/coordinator/parts/mixture.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const v1::WorkerStats> RateOf(double rows_per_s) {
  auto stats = std::make_shared<v1::WorkerStats>();
  stats->set_rows_per_s(rows_per_s);
  stats->set_cache_hits_total(10);
  return stats;
}

class PageTest : public testing::Test {
 protected:
  SessionId Join(const WorkerRegistration& worker, double rows_per_s) {
    const SessionId session = world_.Join(worker);
    EXPECT_TRUE(world_
                    ->Heartbeat(session, {rows_per_s, RateOf(rows_per_s)}, {},
                                world_.now())
                    .ok());
    return session;
  }
  PageModel Model() {
    FakeClock clock;
    const StatusView view(&*world_, &clock);
    return MakePageModel(*world_, view, world_.now());
  }
  static json Parsed(const std::string& text) {
    json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(parsed.is_discarded()) << text.substr(0, 200);
    return parsed;
  }

  World world_;
};

TEST_F(PageTest, ComparesWorkersWithTheirClass) {
  for (int i = 0; i < 3; ++i)
    Join(WorkerOf(fmt::format("small-{}", i), 4), 100 * (i + 1));
  WorkerRegistration gpu = WorkerOf("gpu", 16);
  gpu.devices.resize(2);
  gpu.devices[0].set_name("H100");
  Join(gpu, 5000);
  ASSERT_TRUE(world_.Drain("small-2").ok());
  const PageModel model = Model();
  EXPECT_EQ(model.workers, 4u);
  EXPECT_EQ(model.ready, 3u);
  EXPECT_EQ(model.draining, 1u);
  ASSERT_EQ(model.classes.size(), 2u);
  EXPECT_EQ(model.classes[0].name, "2 x H100");
  EXPECT_EQ(model.classes[1].name, "CPU, 4 threads");
  EXPECT_EQ(model.classes[1].median_rows_per_s, 200);
  EXPECT_EQ(model.classes[1].ready, 2u);
  // Workers with problems come first.
  EXPECT_EQ(model.status.workers(0).name(), "small-2");
  EXPECT_THAT(model.class_of, testing::ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(model.total.rows_per_s(), 5600);
  EXPECT_EQ(model.total.cache_hits_total(), 40u);
}

TEST_F(PageTest, ShowsSoManyWorkersAndCountsTheRest) {
  constexpr size_t kWorkers = 10'000;
  for (size_t i = 0; i < kWorkers; ++i)
    Join(WorkerOf(fmt::format("w{:05}", i)), 100);
  ASSERT_TRUE(world_.Drain("w09999").ok());
  const std::clock_t begin = std::clock();
  const PageModel model = Model();
  EXPECT_EQ(model.workers, kWorkers);
  EXPECT_EQ(static_cast<size_t>(model.status.workers_size()), kMaxPageWorkers);
  EXPECT_EQ(model.status.workers(0).name(), "w09999");
  EXPECT_EQ(model.total.rows_per_s(), 100 * kWorkers);
  const std::string text = JsonOf(model);
  EXPECT_LT(text.size(), 600u << 10);
  const json state = Parsed(text);
  EXPECT_EQ(state["counts"]["workers"], kWorkers);
  EXPECT_EQ(state["class_of"].size(), kMaxPageWorkers);
  const std::string tables = TablesOf(model, {});
  EXPECT_LT(tables.size(), 100u << 10);
  EXPECT_THAT(tables, HasSubstr("9800 more are not shown"));
  // Probes wait for it. 0.1 s, and sanitizers ten times that.
  EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC);
}

TEST_F(PageTest, ShowsWhatLimitsJobsAndWhatTheyDid) {
  const SessionId worker = Join(WorkerOf("a"), 100);
  const auto job = world_.MakeJob(SpecOf("cats", "/data"), worker);
  world_.MakeJob(SpecOf("dogs", "/data"), worker);
  ASSERT_NE(job, nullptr);
  const SessionId consumer = world_.Open(*job, "<b>");
  for (uint64_t i = 0; i < 5; ++i) {
    v1::ConsumerStats stats;
    stats.set_job("cats");
    stats.set_rows_total(200 * i);
    stats.set_rows_per_s(100);
    stats.mutable_wait()->set_p95_ms(50);
    v1::StageStats* const train = stats.add_stages();
    train->set_stage(v1::STAGE_TRAIN);
    train->set_places(1);
    train->set_input_ns_total(i * kSecond);
    train->set_queue_depth(1);
    train->set_queue_capacity(4);
    EXPECT_TRUE(world_
                    ->ReportConsumer(
                        consumer,
                        {.rows_per_s = 100,
                         .stats = std::make_shared<v1::ConsumerStats>(stats)},
                        world_.now())
                    .ok());
    world_.Stop(seconds(2));
  }
  const PageModel model = Model();
  ASSERT_EQ(model.verdicts.size(), 1u);
  EXPECT_EQ(model.verdicts[0].job(), "cats");
  ASSERT_EQ(model.status.jobs_size(), 2);
  EXPECT_EQ(model.status.jobs(0).job().spec().name(), "cats");
  EXPECT_FALSE(model.status.jobs(0).limited_by().empty());
  ASSERT_EQ(model.stages.size(), 1u);
  const json queue = Parsed(JsonOf(model))["queues"]["STAGE_TRAIN"];
  ASSERT_EQ(queue.size(), 150u);
  EXPECT_EQ(queue[148], 0.25);
  EXPECT_TRUE(queue[149].is_null()) << "nobody has told it yet";
  EXPECT_EQ(model.stages[0].queue_capacity(), 4u);
  EXPECT_EQ(model.stages[0].input_ns_total(), 4 * kSecond);
  EXPECT_THAT(TablesOf(model, {}),
              AllOf(HasSubstr("Job cats"), HasSubstr("&lt;b&gt;"),
                    Not(HasSubstr("<b>"))));
  Parsed(JsonOf(model));

  const auto history =
      world_->HistoryOf("cats", std::chrono::minutes(1), world_.now());
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->step, seconds(2));
  ASSERT_EQ(history->strips.size(), 1u);
  const json past = Parsed(JsonOf(*history));
  EXPECT_EQ(past["strips"][0]["consumer"], "<b>");
  const auto& waiting = past["strips"][0]["waiting"];
  ASSERT_EQ(waiting.size(), 30u);
  EXPECT_TRUE(waiting[0].is_null());
  double known = 0;
  for (const json& each : waiting)
    if (!each.is_null()) {
      EXPECT_EQ(each, 0.5);
      ++known;
    }
  EXPECT_EQ(known, 6);  // four, and two from late reports
  EXPECT_EQ(past["rows_per_s"].size(), 30u);
  // An hour has longer steps.
  EXPECT_EQ(world_->HistoryOf("cats", std::chrono::hours(1), world_.now())
                ->rows_per_s.size(),
            180u);
  EXPECT_EQ(world_->HistoryOf("none", std::chrono::hours(1), world_.now())
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

TEST_F(PageTest, SumsTheQueuesOfAllConsumers) {
  constexpr size_t kConsumers = kMaxPageConsumers + 3;
  const auto job =
      world_.MakeJob(SpecOf("cats", "/data"), Join(WorkerOf("a"), 100));
  ASSERT_NE(job, nullptr);
  auto stats = std::make_shared<v1::ConsumerStats>();
  v1::StageStats* const train = stats->add_stages();
  train->set_stage(v1::STAGE_TRAIN);
  train->set_queue_depth(1);
  train->set_queue_capacity(4);
  for (size_t i = 0; i < kConsumers; ++i)
    EXPECT_TRUE(
        world_
            ->ReportConsumer(world_.Open(*job, fmt::format("c{:03}", i)),
                             {.stats = stats}, world_.now())
            .ok());
  const PageModel model = Model();
  EXPECT_EQ(model.consumers.size(), kMaxPageConsumers);
  EXPECT_EQ(model.num_consumers, kConsumers);
  ASSERT_EQ(model.stages.size(), 1u);
  EXPECT_EQ(model.stages[0].queue_depth(), kConsumers);
  EXPECT_EQ(model.stages[0].queue_capacity(), 4 * kConsumers);
  EXPECT_EQ(Parsed(JsonOf(model))["counts"]["consumers"], kConsumers);
  EXPECT_THAT(TablesOf(model, {}),
              HasSubstr(fmt::format("{} more are not shown",
                                    kConsumers - kMaxTableRows)));
}

// A connection that is cut may be open here for a while after its consumer has
// connected again.
TEST_F(PageTest, AConsumerWithTwoSessionsCountsOnce) {
  const auto job =
      world_.MakeJob(SpecOf("cats", "/data"), Join(WorkerOf("a"), 100));
  ASSERT_NE(job, nullptr);
  world_.Open(*job, "c");
  const SessionId again = world_.Open(*job, "c");
  for (uint64_t i = 0; i < 5; ++i) {
    auto stats = std::make_shared<v1::ConsumerStats>();
    stats->set_rows_total(200 * i);
    stats->add_stages()->set_stage(v1::STAGE_TRAIN);
    EXPECT_TRUE(
        world_->ReportConsumer(again, {.stats = stats}, world_.now()).ok());
    world_.Stop(seconds(2));
  }
  const auto history =
      world_->HistoryOf("cats", std::chrono::minutes(1), world_.now());
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->consumers, 1u);
  EXPECT_EQ(history->strips.size(), 1u);
  EXPECT_EQ(*std::ranges::max_element(history->rows_per_s), 100);
}

TEST_F(PageTest, TablesWriteLargeNumbersInFull) {
  const SessionId worker = Join(WorkerOf("a"), 12'345);
  const auto job = world_.MakeJob(SpecOf("cats", "/data"), worker);
  ASSERT_NE(job, nullptr);
  auto stats = std::make_shared<v1::ConsumerStats>();
  stats->mutable_wait()->set_p95_ms(1500);
  EXPECT_TRUE(world_
                  ->ReportConsumer(world_.Open(*job, "c"), {.stats = stats},
                                   world_.now())
                  .ok());
  EXPECT_THAT(TablesOf(Model(), {}),
              AllOf(HasSubstr(">12345</data>"), HasSubstr(">1500 ms</data>"),
                    Not(HasSubstr("e+"))));
}

TEST_F(PageTest, AnEpochThatDoesNotEndHasNoNumberOfSteps) {
  JobSpec spec = SpecOf("cats", "/data");
  spec.last_batch = LastBatch::kStream;
  ASSERT_NE(world_.MakeJob(spec, Join(WorkerOf("a"), 100)), nullptr);
  const PageModel model = Model();
  ASSERT_EQ(model.status.jobs_size(), 1);
  EXPECT_EQ(model.status.jobs(0).steps_per_epoch(), kStreamSteps);
  EXPECT_THAT(TablesOf(model, {}), Not(HasSubstr("1099511627776")));
}

TEST_F(PageTest, ALiveAnswerEndsWithItsSession) {
  constexpr char kToken[] = "an-own-token-of-the-daemon";
  FakeClock clock;
  const StatusView view(&*world_, &clock);
  SheetRelay sheets;
  const rpc::Access access({.token = kToken}, &clock);
  WebPage page(&*world_, &view, &sheets, &access, &clock);
  const std::string form = std::string("token=") + kToken;
  const auto sign_in = [&]() -> std::string {
    const rpc::HttpResponse answer =
        page.Answer({.path = "/sign-in", .body = form, .is_post = true});
    for (const auto& [name, value] : answer.fields)
      if (name == "Set-Cookie") return value.substr(0, value.find(';'));
    return "";
  };
  const std::string cookie = sign_in(), left = sign_in();
  ASSERT_NE(cookie, "");
  const auto of_session = page.Answer({.path = "/live", .cookie = cookie}).more;
  const auto of_left = page.Answer({.path = "/live", .cookie = left}).more;
  const auto of_token = page.Answer({.path = "/live", .token = kToken}).more;
  ASSERT_TRUE(of_session && of_left && of_token);
  for (const auto* more : {&of_session, &of_left, &of_token})
    EXPECT_THAT(*(*more)(), HasSubstr("event: state"));
  EXPECT_EQ(page.Answer({.path = "/sign-out", .cookie = left, .is_post = true})
                .status,
            303u);
  constexpr char kDenied[] = "event: denied\ndata: {}\n\n";
  EXPECT_EQ(*of_left(), kDenied);
  EXPECT_EQ(of_left(), nullptr);
  EXPECT_THAT(*of_session(), HasSubstr("event: state"));
  clock.Advance(PageSessions::kLifetime);
  EXPECT_EQ(*of_session(), kDenied);
  EXPECT_THAT(*of_token(), HasSubstr("event: state"));
}

// The page for browsers without scripts uses the same words.
TEST_F(PageTest, AMixtureHasItsFirstSourcesWithTheirPresentShares) {
  const SessionId a = Join(WorkerOf("a"), 100);
  std::vector<std::string> names;
  for (size_t i = 0; i < kMaxPageSources + 2; ++i)
    names.push_back(fmt::format("s{}", i));
  JobSpec spec = MixtureOf("mix", names);
  spec.mix_end = MixEnd::kStream;
  spec.last_batch = LastBatch::kStream;
  spec.shares[0].weights.assign(names.size(), 0);
  spec.shares[0].weights[0] = 3;
  spec.shares[0].weights.back() = 1;
  const World::Box box = world_.Create(spec);
  for (auto& [path, asked] : AllAsked(world_, a)) List(world_, asked, 100);
  ASSERT_EQ(Text(box), "OK");
  const PageModel model = Model();
  const json job = Parsed(JsonOf(model))["status"]["jobs"][0]["job"];
  ASSERT_EQ(job["spec"]["sources"].size(), kMaxPageSources);
  EXPECT_EQ(job["spec"]["sources"][1]["name"], "s1");
  EXPECT_EQ(job["spec"]["shares"][0]["weights"][0], 0.75);
  EXPECT_EQ(job["datasets"].size(), names.size());
  EXPECT_EQ(job["datasets"][0], json::object());
  EXPECT_THAT(TablesOf(model, {}),
              AllOf(HasSubstr("s0 75.0 %, s1 0.0 %"), HasSubstr("and 2 more"),
                    Not(HasSubstr("1099511627776"))));
}

TEST_F(PageTest, TablesSayWhatIsGivenUpAndWhatIsPast) {
  const SessionId worker = Join(WorkerOf("a"), 123);
  JobSpec spec = SpecOf("cats", "/data");
  spec.on_bad_sample = BadSamplePolicy::kReplace;
  spec.max_bad = 0.001;
  const auto job = world_.MakeJob(spec, worker);
  ASSERT_NE(job, nullptr);
  BadSampleReport report;
  report.jobs.push_back({"cats", {BadSampleOf(1, "cat/1.jpg", "truncated")}});
  report.plans.push_back({job->plan_hash, {1, 2, 3}});
  EXPECT_TRUE(
      world_->Heartbeat(worker, {123, RateOf(123)}, report, world_.now()).ok());
  std::string tables = TablesOf(Model(), {});
  EXPECT_THAT(tables,
              AllOf(HasSubstr("<strong>given up</strong>: job cats"),
                    HasSubstr("<td>given up</td>"), HasSubstr(">123</data>"),
                    HasSubstr(">976.6 KiB<")));
  world_->CloseWorker(worker, /*left=*/false, world_.now());
  world_.Advance(seconds(10));
  tables = TablesOf(Model(), {});
  EXPECT_THAT(tables,
              AllOf(HasSubstr("<td>LOST</td>"), Not(HasSubstr(">123</data>"))));
}

TEST(PageSessions, EndWithTheirTimeAndAreBounded) {
  PageSessions sessions;
  MonotonicTime now{std::chrono::hours(1)};
  const std::string first = sessions.Open("secret", now).value();
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(sessions.TokenOf(first, now), "secret");
  for (const std::string& none : {std::string(), first + "0", "x" + first})
    EXPECT_EQ(sessions.TokenOf(none, now), "");
  // The least recently used session is dropped.
  const std::string unused = sessions.Open("other", now).value();
  for (size_t i = 0; i < PageSessions::kMost - 1; ++i) {
    now += std::chrono::milliseconds(1);
    EXPECT_EQ(sessions.TokenOf(first, now), "secret");
    sessions.Open("many", now).value();
  }
  EXPECT_EQ(sessions.size(), PageSessions::kMost);
  EXPECT_EQ(sessions.TokenOf(unused, now), "");
  EXPECT_EQ(sessions.TokenOf(first, now), "secret");
  EXPECT_EQ(sessions.TokenOf(first, now + PageSessions::kLifetime), "");
  const std::string closed = sessions.Open("secret", now).value();
  sessions.Close(closed);
  EXPECT_EQ(sessions.TokenOf(closed, now), "");
}

TEST(PageAssets, AreInTheProgram) {
  for (const char* name : {"index.html", "app.js", "dygraph.min.js"}) {
    ASSERT_NE(FindPageAsset(name), nullptr) << name;
    EXPECT_GT(FindPageAsset(name)->bytes.size(), 500u) << name;
  }
  EXPECT_EQ(FindPageAsset("app.js")->type, "text/javascript; charset=utf-8");
  EXPECT_EQ(FindPageAsset("../app.js"), nullptr);
  EXPECT_EQ(PageAssetsHash().size(), 16u);
}

}  // namespace
}  // namespace leat::server
