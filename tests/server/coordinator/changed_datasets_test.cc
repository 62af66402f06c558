// SPDX-License-Identifier: Apache-2.0
//
// A known dataset is looked at for each new job, and listed again if it has
// changed.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/dataset_looks.h"
#include "server/state/records.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ChangedDatasets : public testing::Test {
 protected:
  // Makes a listing's look data, as a block that has arrived.
  IndexBlock Look(const std::string& text) {
    const IndexBlock block{
        .sha256 = HashOf(text), .bytes = text.size(), .samples = 0};
    EXPECT_TRUE(world_->PutBlock(block, text, world_.now()).ok());
    return block;
  }
  // Answers a listing request: `content` distinguishes datasets.
  void List(const IndexDirective& asked, const std::string& content,
            uint64_t samples = 1000) {
    IndexHeader header = HeaderFor(asked, content, samples);
    header.fingerprint = HashOf(content);
    SetBlocks({BlockOf(content)}, &header);
    header.look = Look("look of " + content);
    header.changes = {"list.txt: its text has changed"};
    ASSERT_TRUE(world_.Upload(header, content).ok());
  }
  absl::Status Looked(const IndexDirective& asked,
                      const std::vector<std::string>& changes = {},
                      uint64_t entries = 5, uint64_t total = 5) {
    const absl::Status status = world_->NoteLooked(
        {asked.dataset_id, asked.request_id, entries, total, changes, false},
        world_.now());
    world_.Write();
    return status;
  }
  World::Box Create(const std::string& name, Relist relist = Relist::kAuto,
                    const std::string& path = "/d") {
    auto box = std::make_shared<std::optional<absl::StatusOr<CreatedJob>>>();
    world_->CreateJob(
        SpecOf(name, path), world_.now().mono + seconds(60), world_.now(),
        [box](absl::StatusOr<CreatedJob> created) {
          *box = std::move(created);
        },
        {}, relist);
    world_.Write();
    return box;
  }
  // Creates the first job, whose dataset has `content`.
  std::shared_ptr<const JobInfo> First(const std::string& content = "one") {
    World::Box box = Create("first");
    List(*world_.Asked(worker_), content);
    return (**box)->info;
  }
  static const DatasetInfo& DatasetOf(const World::Box& box) {
    return (**box)->info->datasets[0];
  }
  std::vector<std::string> States() {
    std::vector<std::string> states;
    for (const DatasetView& view : world_->Datasets())
      states.push_back(view.state);
    std::sort(states.begin(), states.end());
    return states;
  }

  World world_;
  const SessionId worker_ = world_.Join("a");
};

TEST_F(ChangedDatasets, AFirstListingIsNoLook) {
  World::Box box = Create("first");
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_FALSE(asked.look.has_value());
  EXPECT_FALSE(asked.look_only);
}

TEST_F(ChangedDatasets, ANewJobLooksAndTakesTheListingIfNothingHasChanged) {
  const auto first = First();
  World::Box box = Create("second");
  EXPECT_FALSE(box->has_value());
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_TRUE(asked.look.has_value());
  EXPECT_EQ(asked.look->sha256, HashOf("look of one"));
  EXPECT_FALSE(asked.look_only);
  ASSERT_TRUE(Looked(asked).ok());
  EXPECT_EQ(DatasetOf(box).id, first->datasets[0].id);
  const DatasetView view = world_->Datasets().at(0);
  EXPECT_EQ(view.looked_entries, 5u);
  EXPECT_TRUE(view.looked_at.has_value());
}

TEST_F(ChangedDatasets, AChangedOneIsListedAndOldJobsKeepTheirs) {
  const auto first = First();
  World::Box box = Create("second");
  List(*world_.Asked(worker_), "two", 500);
  EXPECT_NE(DatasetOf(box).id, first->datasets[0].id);
  EXPECT_EQ(DatasetOf(box).shards.num_samples(), 500u);
  EXPECT_NE((**box)->info->plan_hash, first->plan_hash);
  EXPECT_EQ((*world_->GetJob("first"))->datasets[0].id, first->datasets[0].id);
  EXPECT_THAT(States(), ElementsAre("ready", "replaced"));
  // A third job looks at the last listing.
  World::Box third = Create("third");
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_EQ(asked.look->sha256, HashOf("look of two"));
  ASSERT_TRUE(Looked(asked).ok());
  EXPECT_EQ(DatasetOf(third).id, DatasetOf(box).id);
}

TEST_F(ChangedDatasets, OneThatIsAsBeforeHasItsOldListing) {
  const auto first = First("one");
  Create("second");
  List(*world_.Asked(worker_), "two");
  World::Box box = Create("third");
  List(*world_.Asked(worker_), "one");
  EXPECT_EQ(DatasetOf(box).id, first->datasets[0].id);
  world_.Restart();
  const SessionId worker = world_.Join("a");
  World::Box fourth = Create("fourth");
  const IndexDirective asked = *world_.Asked(worker);
  EXPECT_EQ(asked.look->sha256, HashOf("look of one"));
  ASSERT_TRUE(Looked(asked).ok());
  EXPECT_EQ(DatasetOf(fourth).id, first->datasets[0].id);
}

// The state of a coordinator is compacted to events that recreate it.
TEST_F(ChangedDatasets, CompactedEventsKnowTheLastListing) {
  First("one");
  Create("second");
  List(*world_.Asked(worker_), "two");
  Create("third");
  List(*world_.Asked(worker_), "one");
  State state;
  std::vector<Event> events;
  ASSERT_TRUE(
      world_.store()
          .Replay([&](const Event& event) { return state.Apply(event); })
          .ok());
  State again;
  for (const Event& event : state.Events()) {
    const auto read = DecodeEvent(EncodeEvent(event));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(again.Apply(*read).ok());
  }
  const std::string& id = state.FindJob("first")->info->datasets[0].id;
  const DatasetRecord* last =
      again.CurrentListing(again.FindDataset(id)->reader_id);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->info->id, id);
  EXPECT_EQ(last->look->sha256, HashOf("look of one"));
}

TEST_F(ChangedDatasets, AJobThatExistsIsAttachedAndToldWhatHasChanged) {
  First();
  World::Box box = Create("first");
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_TRUE(asked.look_only);
  EXPECT_FALSE(box->has_value());
  ASSERT_TRUE(Looked(asked, {"list.txt: its text has changed"}).ok());
  ASSERT_TRUE(box->has_value() && (*box)->ok());
  EXPECT_TRUE((**box)->attached);
  EXPECT_EQ((**box)->dataset_changed, "list.txt: its text has changed");
  EXPECT_THAT(States(), ElementsAre("ready"));
  // A job that reads it causes a finding, too.
  EXPECT_FALSE(world_.Found("DATASET_CHANGED"));
  world_.Open(*(**box)->info, "c");
  EXPECT_TRUE(world_.Found("DATASET_CHANGED"));
}

TEST_F(ChangedDatasets, AJobThatExistsWaitsForNobody) {
  First();
  World::Box box = Create("first");
  ASSERT_TRUE(world_.Asked(worker_).has_value());
  world_.Advance(kAttachPatience + seconds(1));
  ASSERT_TRUE(box->has_value() && (*box)->ok()) << "the worker hangs";
  EXPECT_EQ((**box)->dataset_changed, "");
  world_->CloseWorker(worker_, false, world_.now());
  world_.Advance(seconds(10));
  World::Box again = Create("first");
  ASSERT_TRUE(again->has_value() && (*again)->ok()) << "there is no worker";
  EXPECT_FALSE(world_.Found("INDEX_FAILED"));
}

// For example, the worker's mount hangs.
TEST_F(ChangedDatasets, ALookThatHangsIsAnotherWorkersSoon) {
  First();
  const SessionId other = world_.Join("b");
  World::Box box = Create("second");
  ASSERT_TRUE(world_.Asked(worker_).has_value());
  for (int i = 0; i < 31; ++i) {
    world_.Advance(seconds(1));
    ASSERT_TRUE(world_.Beat(worker_).ok() && world_.Beat(other).ok());
  }
  const auto again = world_.Asked(other);
  ASSERT_TRUE(again.has_value());
  ASSERT_TRUE(Looked(*again).ok());
  EXPECT_TRUE(box->has_value());
}

// Listing a changed dataset may take as long as any listing.
TEST_F(ChangedDatasets, AListingAfterALookHasTheTimeOfAListing) {
  First();
  const SessionId other = world_.Join("b");
  World::Box box = Create("second");
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_TRUE(world_
                  ->NoteLooked({.reader_id = asked.dataset_id,
                                .request_id = asked.request_id,
                                .entries = 1,
                                .total = 5,
                                .changes = {"list.txt: it is gone"},
                                .lists = true},
                               world_.now())
                  .ok());
  EXPECT_FALSE(box->has_value());
  for (int i = 0; i < 50; ++i) {
    world_.Advance(seconds(1));
    ASSERT_TRUE(world_.Beat(worker_).ok() && world_.Beat(other).ok());
  }
  EXPECT_FALSE(world_.Asked(other).has_value());
  List(asked, "two");
  EXPECT_TRUE(box->has_value());
}

TEST_F(ChangedDatasets, RelistAlwaysListsAndNeverTakesWhatIsThere) {
  const auto first = First();
  World::Box never = Create("never", Relist::kNever);
  ASSERT_TRUE(never->has_value());
  EXPECT_EQ(DatasetOf(never).id, first->datasets[0].id);
  EXPECT_FALSE(world_.Asked(worker_).has_value());
  World::Box always = Create("always", Relist::kAlways);
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_FALSE(asked.look.has_value());
  List(asked, "two");
  EXPECT_NE(DatasetOf(always).id, first->datasets[0].id);
  // Nothing is looked at for an existing job.
  World::Box attached = Create("first", Relist::kNever);
  ASSERT_TRUE(attached->has_value());
  EXPECT_EQ((**attached)->dataset_changed, "");
}

TEST_F(ChangedDatasets, OneThatAttachesWhileAnotherListsIsToldSo) {
  First();
  World::Box made = Create("made");
  const IndexDirective look = *world_.Asked(worker_);
  World::Box attached = Create("first");  // joins while the worker lists
  List(look, "two");
  ASSERT_TRUE(attached->has_value() && (*attached)->ok());
  EXPECT_EQ((**attached)->dataset_changed, kListedAgain);
  // From then on it is told at once, whatever it wants, without a look.
  for (const Relist relist : {Relist::kAuto, Relist::kAlways}) {
    World::Box again = Create("first", relist);
    ASSERT_TRUE(again->has_value());
    EXPECT_EQ((**again)->dataset_changed, kListedAgain);
  }
  EXPECT_FALSE(world_.Asked(worker_).has_value());
}

TEST_F(ChangedDatasets, AJobThatExistsIsNotListedForItsOwnSake) {
  First();
  World::Box box = Create("first", Relist::kAlways);
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_TRUE(asked.look.has_value());
  EXPECT_TRUE(asked.look_only);
  ASSERT_TRUE(Looked(asked).ok());
  EXPECT_TRUE(box->has_value());
}

// A look that began before the call was made does not cover what the caller has
// written since.
TEST_F(ChangedDatasets, ALookThatBeganEarlierIsNotEnough) {
  First();
  World::Box early = Create("early");
  const IndexDirective one = *world_.Asked(worker_);
  World::Box late = Create("late");
  EXPECT_FALSE(world_.Asked(worker_).has_value());
  ASSERT_TRUE(Looked(one).ok());
  EXPECT_TRUE(early->has_value());
  EXPECT_FALSE(late->has_value());
  const IndexDirective two = *world_.Asked(worker_);
  List(two, "two");
  ASSERT_TRUE(late->has_value());
  EXPECT_NE(DatasetOf(late).id, DatasetOf(early).id);
}

TEST_F(ChangedDatasets, WhoWantsAListingIsNotServedByALook) {
  First();
  World::Box attached = Create("first");
  const IndexDirective look = *world_.Asked(worker_);
  World::Box made = Create("made"), forced = Create("forced", Relist::kAlways);
  ASSERT_TRUE(Looked(look, {"x: it is gone"}).ok());
  EXPECT_TRUE(attached->has_value());
  EXPECT_FALSE(made->has_value());
  EXPECT_FALSE(forced->has_value());
  const IndexDirective next = *world_.Asked(worker_);
  EXPECT_FALSE(next.look_only);
  List(next, "two");
  ASSERT_TRUE(made->has_value());
  if (!forced->has_value()) List(*world_.Asked(worker_), "two");
  ASSERT_TRUE(forced->has_value());
  EXPECT_EQ(DatasetOf(forced).id, DatasetOf(made).id);
}

TEST_F(ChangedDatasets, OneThatCannotBeLookedAtInFullIsListedAfterADay) {
  First();
  World::Box box = Create("second");
  ASSERT_TRUE(Looked(*world_.Asked(worker_), {}, 5, 100).ok());
  EXPECT_TRUE(box->has_value());
  for (int i = 0; i < 25 * 60; ++i) {
    world_.Advance(seconds(60));
    ASSERT_TRUE(world_.Beat(worker_).ok());
  }
  World::Box late = Create("late");
  ASSERT_TRUE(Looked(*world_.Asked(worker_), {}, 5, 100).ok());
  EXPECT_FALSE(late->has_value());
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_FALSE(asked.look.has_value());
  List(asked, "one");
  EXPECT_TRUE(late->has_value());
}

TEST_F(ChangedDatasets, ARefreshListsAgainAndSaysHowItWent) {
  const auto first = First();
  std::vector<absl::Status> results;
  const auto refresh = [&](const std::string& name) {
    world_->RefreshDataset(name, world_.now(), [&](absl::Status status) {
      results.push_back(std::move(status));
    });
    world_.Write();
  };
  refresh("nothing");
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(results[0]));
  refresh("photos");
  ASSERT_THAT(results, SizeIs(1));
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_FALSE(asked.look.has_value());
  List(asked, "two");
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_TRUE(results[1].ok()) << results[1];
  EXPECT_THAT(States(), ElementsAre("ready", "replaced"));
  // The name means the last listing, which no job uses.
  refresh("photos");
  EXPECT_EQ(results.back().code(), absl::StatusCode::kFailedPrecondition);
  refresh(first->datasets[0].id);
  const IndexDirective again = *world_.Asked(worker_);
  ASSERT_TRUE(world_
                  ->FailIndex(again.dataset_id, again.request_id,
                              NotFound("/d: no such directory"), world_.now())
                  .ok());
  EXPECT_THAT(results.back().ToString(), HasSubstr("no such directory"));
  refresh(first->datasets[0].id);
  world_->Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(results.back()));
}

TEST_F(ChangedDatasets, AReplacedListingWithoutJobsGoesWithinHours) {
  First();
  Create("second");
  List(*world_.Asked(worker_), "two");
  ASSERT_TRUE(world_.DeleteJob("first").ok());
  ASSERT_TRUE(world_.DeleteJob("second").ok());
  EXPECT_THAT(States(), ElementsAre("ready", "replaced"));
  for (int i = 0; i < 3 * 60; ++i) {
    world_.Advance(seconds(60));
    ASSERT_TRUE(world_.Beat(worker_).ok());
  }
  EXPECT_THAT(States(), ElementsAre("ready"));
}

TEST_F(ChangedDatasets, ALookOfAnotherAttemptIsNobodys) {
  First();
  World::Box box = Create("second");
  IndexDirective asked = *world_.Asked(worker_);
  asked.request_id += 1;
  EXPECT_TRUE(absl::IsNotFound(Looked(asked)));
  EXPECT_FALSE(box->has_value());
}

// Storage that does not answer is retried for minutes.
TEST_F(ChangedDatasets, WhoWaitsForAListingLearnsWhatStorageSays) {
  World::Box box = Create("first", Relist::kAuto, "http://h/?.tar");
  ASSERT_TRUE(world_.Asked(worker_).has_value());
  const auto stats = std::make_shared<v1::WorkerStats>();
  stats->add_storage_waits(
      "http://h/x.tar: connection refused (tried 3 times)");
  stats->add_storage_waits("http://other/x.tar: no such host");
  ASSERT_TRUE(
      world_->Heartbeat(worker_, {0, stats}, {}, world_.now(), {}).ok());
  EXPECT_THAT(world_.SummaryOf("INDEX_WAITS"),
              HasSubstr("x.tar: connection refused"));
  for (int i = 0; i < 61; ++i) {
    world_.Advance(seconds(1));
    ASSERT_TRUE(
        world_->Heartbeat(worker_, {0, stats}, {}, world_.now(), {}).ok());
  }
  ASSERT_TRUE(box->has_value());
  EXPECT_THAT((*box)->status().ToString(), HasSubstr("still lists"));
  EXPECT_THAT((*box)->status().ToString(),
              HasSubstr("connection refused (tried 3 times)"));
  EXPECT_THAT((*box)->status().ToString(), Not(HasSubstr("no such host")));
  EXPECT_THAT(world_.SummaryOf("INDEX_WAITS"), Not(HasSubstr("no such host")));
}

TEST_F(ChangedDatasets, AFailedListingIsNoFindingForEver) {
  Create("first");
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_TRUE(world_
                  ->FailIndex(asked.dataset_id, asked.request_id,
                              NotFound("/d: no such directory"), world_.now())
                  .ok());
  EXPECT_TRUE(world_.Found("INDEX_FAILED"));
  world_.Advance(std::chrono::minutes(11));
  EXPECT_FALSE(world_.Found("INDEX_FAILED"));
}

}  // namespace
}  // namespace leat::server
