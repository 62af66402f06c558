// SPDX-License-Identifier: Apache-2.0
//
// Jobs of several datasets: their creation, which waits for all listings, and
// what becomes of their datasets.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator/parts/datasets.h"
#include "server/jobs/dataset_looks.h"
#include "tests/server/coordinator/parts/mixture.h"

namespace leat::server {
namespace {

using absl::StatusCode;
using std::chrono::hours;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::SizeIs;

const std::vector<std::string> kThreeSources = {"web", "books", "code"};

class Mixtures : public testing::Test {
 protected:
  World::Box CreateWith(const JobSpec& spec, Relist relist) {
    auto box = std::make_shared<std::optional<absl::StatusOr<CreatedJob>>>();
    world_->CreateJob(
        spec, world_.now().mono + seconds(60), world_.now(),
        [box](absl::StatusOr<CreatedJob> created) {
          *box = std::move(created);
        },
        {}, relist);
    world_.Write();
    return box;
  }
  void Looked(const IndexDirective& asked,
              const std::vector<std::string>& changes = {}) {
    ASSERT_TRUE(world_
                    ->NoteLooked({asked.dataset_id, asked.request_id, 5, 5,
                                  changes, false},
                                 world_.now())
                    .ok());
    world_.Write();
  }
  absl::Status FailListing(const IndexDirective& asked,
                           const absl::Status& why) {
    return world_->FailIndex(asked.dataset_id, asked.request_id, why,
                             world_.now());
  }

  World world_;
  const SessionId a_ = world_.Join("a");
};

TEST_F(Mixtures, AllDatasetsAreListedAtOnceBySeveralWorkers) {
  const SessionId b = world_.Join("b"), c = world_.Join("c");
  const World::Box box = world_.Create(MixtureOf("m", kThreeSources));
  std::map<std::string, IndexDirective> asked;
  for (const SessionId session : {a_, b, c}) {
    const auto own = AllAsked(world_, session);
    EXPECT_THAT(own, SizeIs(1)) << "each worker has one";
    asked.insert(own.begin(), own.end());
  }
  EXPECT_THAT(asked, ElementsAre(Key("/books"), Key("/code"), Key("/web")));
  List(world_, asked["/code"], 9);
  List(world_, asked["/books"], 40);
  EXPECT_EQ(Text(box), "no answer") << "web is still listed";
  List(world_, asked["/web"], 70);
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  const JobInfo& job = *(**box)->info;
  EXPECT_FALSE((**box)->attached);
  EXPECT_EQ(DatasetNames(job), kThreeSources) << "in the order of the sources";
  EXPECT_EQ(NumSamples(job), 119u);
  EXPECT_EQ(job.plan_hash, PlanHash(job.spec, job.datasets));
}

TEST_F(Mixtures, DatasetsThatAreKnownAreNotListedAgain) {
  world_.MakeJob(SpecOf("plain", "/books"), a_);
  const World::Box box = world_.Create(MixtureOf("m", kThreeSources));
  const auto asked = AllAsked(world_, a_);
  EXPECT_THAT(asked, ElementsAre(Key("/code"), Key("/web")));
  for (const auto& [path, directive] : asked) List(world_, directive);
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_EQ((**box)->info->datasets[1].id,
            (*world_->GetJob("plain"))->datasets[0].id);
}

TEST_F(Mixtures, TwoSourcesOfOneDatasetShareItsListing) {
  JobSpec spec = MixtureOf("m", kThreeSources);
  spec.sources[2].pipeline = spec.sources[0].pipeline;
  const World::Box box = world_.Create(spec);
  const auto asked = AllAsked(world_, a_);
  EXPECT_THAT(asked, ElementsAre(Key("/books"), Key("/web")));
  for (const auto& [path, directive] : asked) List(world_, directive);
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_EQ((**box)->info->datasets[0].id, (**box)->info->datasets[2].id);
  EXPECT_THAT(world_->Datasets(), SizeIs(2));
  EXPECT_TRUE(world_.DeleteJob("m").ok());
  EXPECT_TRUE(world_.DeleteDataset("web").ok());
}

TEST_F(Mixtures, AListingThatFailsIsTheCallersErrorAndTheOthersGoOn) {
  const World::Box box = world_.Create(MixtureOf("m", kThreeSources));
  auto asked = AllAsked(world_, a_);
  List(world_, asked["/web"]);
  ASSERT_TRUE(
      FailListing(asked["/books"], NotFound("/books: no such directory")).ok());
  EXPECT_EQ(Code(box), StatusCode::kNotFound);
  EXPECT_THAT(Text(box), AllOf(HasSubstr("source \"books\": "),
                               HasSubstr("/books: no such directory")));
  List(world_, asked["/code"]);
  EXPECT_TRUE(world_->Jobs().empty());
  // The next call has the failed one listed, and looks at the others.
  const World::Box again = world_.Create(MixtureOf("m", kThreeSources));
  asked = AllAsked(world_, a_);
  EXPECT_FALSE(asked.at("/books").look.has_value());
  EXPECT_TRUE(asked.at("/code").look.has_value());
  List(world_, asked["/books"]);
  Looked(asked["/code"]);
  Looked(asked["/web"]);
  EXPECT_EQ(Code(again), StatusCode::kOk) << Text(again);
}

TEST_F(Mixtures, ADatasetWithoutARowIsNamed) {
  JobSpec spec = MixtureOf("m", kThreeSources);
  spec.mix_end = MixEnd::kFirst;
  spec.last_batch = LastBatch::kDrop;
  const World::Box box = world_.Create(spec);
  for (const auto& [path, directive] : AllAsked(world_, a_))
    List(world_, directive, path == "/code" ? 1 : 1000);
  EXPECT_EQ(Code(box), StatusCode::kInvalidArgument) << Text(box);
  EXPECT_THAT(Text(box), HasSubstr("code"));
}

TEST_F(Mixtures, ItsDeadlineNamesASourceThatIsStillListed) {
  const World::Box box =
      world_.Create(MixtureOf("m", kThreeSources), seconds(2));
  auto asked = AllAsked(world_, a_);
  List(world_, asked["/books"]);
  List(world_, asked["/web"]);
  world_.Advance(seconds(2));
  EXPECT_EQ(Code(box), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(box), HasSubstr("source \"code\": worker a still lists "
                                   "readers.image_folder path=\"/code\""));
  // Its listing serves the next call.
  List(world_, asked["/code"]);
  const auto again = CreateWith(MixtureOf("m", kThreeSources), Relist::kNever);
  EXPECT_EQ(Code(again), StatusCode::kOk) << Text(again);
}

TEST_F(Mixtures, WithoutWorkersACallerIsToldSoAndNothingIsLeft) {
  world_->CloseWorker(a_, /*left=*/true, world_.now());
  const World::Box box =
      world_.Create(MixtureOf("m", kThreeSources), seconds(2));
  world_.Advance(seconds(2));
  EXPECT_EQ(Code(box), StatusCode::kUnavailable);
  EXPECT_THAT(Text(box), AllOf(HasSubstr("source \""), HasSubstr("no worker")));
  EXPECT_TRUE(AllAsked(world_, world_.Join("b")).empty());
}

// More sources than may be listed at a time take turns.
TEST(ManySources, AreListedAFewAtATime) {
  CoordinatorConfig config;
  config.indexing.max_requests = 4;
  World world(config);
  const SessionId a = world.Join("a");
  std::vector<std::string> names;
  for (int i = 0; i < 25; ++i) names.push_back(fmt::format("s{}", i));
  const World::Box box = world.Create(MixtureOf("m", names), seconds(60));
  auto waiting = AllAsked(world, a);
  EXPECT_THAT(waiting, SizeIs(4));
  // A job that nothing is listed for is refused, as before.
  const World::Box other = world.Create(SpecOf("j", "/other"));
  EXPECT_EQ(Code(other), StatusCode::kResourceExhausted);
  std::set<std::string> listed;
  while (!waiting.empty()) {
    EXPECT_FALSE(box->has_value());
    const auto [path, directive] = *waiting.begin();
    waiting.erase(path);
    EXPECT_TRUE(listed.insert(path).second) << path << " twice";
    List(world, directive, 100);
    waiting.merge(AllAsked(world, a));
    EXPECT_LE(waiting.size(), 4u);
  }
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_EQ(DatasetNames(*(**box)->info), names);
}

// The last one, by reader, is listed already, for another job.
TEST(ManySources, TheOneThatIsListedAtADeadlineIsNamed) {
  CoordinatorConfig config;
  config.indexing.max_requests = 1;
  World world(config);
  world.Join("a");
  const JobSpec spec = MixtureOf("m", kThreeSources);
  const PreparedJob job = *Prepare(spec);
  const auto last =
      std::ranges::max_element(job.sources, {}, &PreparedSource::reader_id);
  const std::string& name = spec.sources[last - job.sources.begin()].name;
  world.Create(SpecOf("plain", "/" + name));
  const World::Box box = world.Create(spec, seconds(2));
  world.Advance(seconds(2));
  EXPECT_EQ(Code(box), StatusCode::kDeadlineExceeded) << Text(box);
  EXPECT_THAT(Text(box), HasSubstr("source \"" + name + "\": worker a still"));
}

TEST_F(Mixtures, TheSameSpecAttachesAndAnotherIsRefusedNamingTheDifference) {
  const JobSpec spec = MixtureOf("m", kThreeSources);
  const auto job = MakeMixture(world_, spec, a_);
  const World::Box same = CreateWith(spec, Relist::kNever);
  ASSERT_EQ(Code(same), StatusCode::kOk) << Text(same);
  EXPECT_TRUE((**same)->attached);
  EXPECT_EQ((**same)->info->plan_hash, job->plan_hash);
  const std::pair<const char*, std::function<void(JobSpec&)>> cases[] = {
      {"weights at step 0 ",
       [](JobSpec& other) { other.shares[0].weights[1] = 2; }},
      {"weights at step 100 ",
       [](JobSpec& other) {
         other.shares.push_back({100, {1, 2, 3}});
       }},
      {"source \"books\": pipeline ",
       [](JobSpec& other) {
         other.sources[1].pipeline.nodes[0].args["path"] = Value("/b");
       }},
      {"source_field \"\" != \"from\"",
       [](JobSpec& other) { other.source_field = "from"; }},
      {"a mixture of 3 sources (web, books, code) != one pipeline",
       [](JobSpec& other) { other = SpecOf("m", "/web"); }},
      {"a mixture of 3 sources (web, books, code) != a mixture of 2",
       [](JobSpec& other) {
         other = MixtureOf("m", {"web", "books"});
       }},
  };
  for (const auto& [difference, change] : cases) {
    JobSpec other = spec;
    change(other);
    const World::Box box = CreateWith(other, Relist::kNever);
    EXPECT_EQ(Code(box), StatusCode::kAlreadyExists) << difference;
    EXPECT_THAT(Text(box), HasSubstr(difference));
  }
}

TEST_F(Mixtures, AttachingTellsWhichDatasetHasChanged) {
  const JobSpec spec = MixtureOf("m", kThreeSources);
  MakeMixture(world_, spec, a_);
  const World::Box box = world_.Create(spec);
  auto asked = AllAsked(world_, a_);
  ASSERT_THAT(asked, SizeIs(3));
  for (const auto& [path, directive] : asked) {
    EXPECT_TRUE(directive.look_only) << path;
    EXPECT_FALSE(box->has_value());
    Looked(directive, path == "/books"
                          ? std::vector<std::string>{"x.jpg: it is gone"}
                          : std::vector<std::string>{});
  }
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_TRUE((**box)->attached);
  EXPECT_EQ((**box)->dataset_changed, "books: x.jpg: it is gone");
}

TEST_F(Mixtures, ADatasetOfTwoSourcesIsNamedOnce) {
  JobSpec spec = MixtureOf("m", kThreeSources);
  spec.sources[2].pipeline = spec.sources[0].pipeline;
  MakeMixture(world_, spec, a_);
  const World::Box box = world_.Create(spec);
  for (const auto& [path, directive] : AllAsked(world_, a_))
    Looked(directive, {"x.jpg: it is gone"});
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_EQ((**box)->dataset_changed,
            "web: x.jpg: it is gone; books: x.jpg: it is gone");
}

TEST_F(Mixtures, AttachingTellsWhichDatasetWasListedAgain) {
  const JobSpec spec = MixtureOf("m", kThreeSources);
  MakeMixture(world_, spec, a_);
  const World::Box plain =
      CreateWith(SpecOf("plain", "/books"), Relist::kAlways);
  List(world_, AllAsked(world_, a_).at("/books"), 500, "2");
  ASSERT_EQ(Code(plain), StatusCode::kOk) << Text(plain);
  const World::Box box = world_.Create(spec);
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_EQ((**box)->dataset_changed, fmt::format("books: {}", kListedAgain));
}

// As `replace` does: the job is deleted, and made again.
TEST_F(Mixtures, AfterAChangeOfOneDatasetANewJobHasItsNewListing) {
  const JobSpec spec = MixtureOf("m", kThreeSources);
  const auto before = MakeMixture(world_, spec, a_);
  ASSERT_TRUE(world_.DeleteJob("m").ok());
  const World::Box box = world_.Create(spec);
  auto asked = AllAsked(world_, a_);
  ASSERT_THAT(asked, SizeIs(3));
  Looked(asked["/web"]);
  Looked(asked["/code"]);
  EXPECT_EQ(Text(box), "no answer");
  List(world_, asked["/books"], 500, "2");
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  const JobInfo& after = *(**box)->info;
  EXPECT_NE(after.plan_hash, before->plan_hash);
  EXPECT_EQ(after.datasets[0].id, before->datasets[0].id);
  EXPECT_NE(after.datasets[1].id, before->datasets[1].id);
  EXPECT_EQ(after.datasets[1].shards.num_samples(), 500u);
  EXPECT_EQ(after.datasets[2].id, before->datasets[2].id);
}

TEST_F(Mixtures, RelistAlwaysListsAllAndNeverTakesWhatIsThere) {
  const auto first = MakeMixture(world_, MixtureOf("m", kThreeSources), a_);
  const World::Box never =
      CreateWith(MixtureOf("n", kThreeSources), Relist::kNever);
  ASSERT_EQ(Code(never), StatusCode::kOk) << Text(never);
  EXPECT_EQ((**never)->info->plan_hash, first->plan_hash);
  EXPECT_TRUE(AllAsked(world_, a_).empty());
  const World::Box always =
      CreateWith(MixtureOf("o", kThreeSources), Relist::kAlways);
  auto asked = AllAsked(world_, a_);
  ASSERT_THAT(asked, SizeIs(3));
  for (const auto& [path, directive] : asked) {
    EXPECT_FALSE(directive.look.has_value()) << path;
    List(world_, directive, 1000, path == "/web" ? "2" : "1");
  }
  ASSERT_EQ(Code(always), StatusCode::kOk) << Text(always);
  EXPECT_NE((**always)->info->datasets[0].id, first->datasets[0].id);
  EXPECT_EQ((**always)->info->datasets[1].id, first->datasets[1].id);
}

TEST_F(Mixtures, ARefreshListsTheOneDatasetThatItNames) {
  MakeMixture(world_, MixtureOf("m", kThreeSources), a_);
  absl::Status result = Internal("not answered");
  world_->RefreshDataset("books", world_.now(),
                         [&](absl::Status status) { result = status; });
  world_.Write();
  const auto asked = AllAsked(world_, a_);
  EXPECT_THAT(asked, ElementsAre(Key("/books")));
  List(world_, asked.at("/books"), 400, "2");
  EXPECT_TRUE(result.ok()) << result;
}

TEST_F(Mixtures, TheirDatasetsCannotBeDeleted) {
  MakeMixture(world_, MixtureOf("the-mixture", kThreeSources), a_);
  for (const std::string& name : kThreeSources) {
    const absl::Status used = world_.DeleteDataset(name);
    EXPECT_EQ(used.code(), StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(std::string(Message(used)), HasSubstr("the-mixture"));
  }
  EXPECT_TRUE(world_.DeleteJob("the-mixture").ok());
  for (const std::string& name : kThreeSources)
    EXPECT_TRUE(world_.DeleteDataset(name).ok()) << name;
}

TEST(MixturesExpiry, AnUnusedOneGoesWithTheDatasetsThatNoOtherJobUses) {
  CoordinatorConfig config;
  config.job_ttl = hours(48);
  config.heartbeat_interval = hours(1);
  config.membership.lost_after = hours(100'000);
  World world(config);
  const SessionId a = world.Join("a");
  MakeMixture(world, MixtureOf("m", kThreeSources), a);
  const auto plain = MakeMixture(world, SpecOf("plain", "/books"), a);
  const SessionId consumer = world.Open(*plain, "c");
  world.Advance(hours(100));
  ASSERT_THAT(world->Jobs(), SizeIs(1));
  EXPECT_EQ(world->Jobs()[0].info->spec.name, "plain");
  ASSERT_THAT(world->Datasets(), SizeIs(1));
  EXPECT_EQ(world->Datasets()[0].info->name, "books");
  world->CloseConsumer(consumer, world.now());
  world.Advance(hours(100));
  EXPECT_TRUE(world->Datasets().empty());
}

TEST_F(Mixtures, ARestartGivesTheSameJob) {
  JobSpec spec = MixtureOf("m", kThreeSources);
  spec.shares = {{0, {7, 2, 1}}, {100, {1, 0.25, 0}}};
  spec.source_field = "from";
  const auto before = MakeMixture(world_, spec, a_);
  ASSERT_NE(before, nullptr);
  world_.Restart();
  const auto after = world_->GetJob("m");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ((*after)->plan_hash, before->plan_hash);
  EXPECT_EQ((*after)->spec, before->spec);
  EXPECT_EQ((*after)->schema, before->schema);
  EXPECT_EQ(DatasetNames(**after), kThreeSources);
  const World::Box attached = CreateWith(spec, Relist::kNever);
  ASSERT_EQ(Code(attached), StatusCode::kOk) << Text(attached);
  EXPECT_TRUE((**attached)->attached);
  EXPECT_FALSE(world_.DeleteDataset("code").ok());
  EXPECT_TRUE(world_.DeleteJob("m").ok());
  world_.Restart();
  EXPECT_TRUE(world_->Jobs().empty());
  EXPECT_TRUE(world_.DeleteDataset("code").ok());
}

}  // namespace
}  // namespace leat::server
