// SPDX-License-Identifier: Apache-2.0
//
// Jobs that wait for their dataset, and listings that fail.
#include "server/coordinator/parts/datasets.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/indexing.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

TEST(Datasets, AJobIsCreatedOnceItsDatasetIsListed) {
  World world;
  const SessionId worker = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d"));
  EXPECT_FALSE(box->has_value());
  std::optional<IndexDirective> asked = world.Asked(worker);
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->reader.op, "readers.image_folder");
  ASSERT_TRUE(world.Upload(HeaderFor(*asked, "index"), "index").ok());
  ASSERT_EQ(Code(box), StatusCode::kOk) << Text(box);
  EXPECT_FALSE((*box)->value().attached);
  EXPECT_EQ((*box)->value().info->datasets[0].shards.num_shards(), 100u);
  const absl::StatusOr<IndexBlocks> index = world->BlocksOf(asked->dataset_id);
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_EQ(index->blocks->size(), 1u);
  EXPECT_EQ(*world->ReadBlock((*index->blocks)[0].sha256, 0, world.now()),
            "index");
}

// Keeps what a CreateJob is told while it waits.
std::shared_ptr<std::vector<std::string>> CreateAloud(World* world,
                                                      Duration patience) {
  auto told = std::make_shared<std::vector<std::string>>();
  (*world)->CreateJob(
      SpecOf("j", "/d"), world->now().mono + patience, world->now(),
      [told](const absl::StatusOr<CreatedJob>& created) {
        told->push_back(created.status().ToString());
      },
      {}, Relist::kAuto,
      [told](const std::string& text) { told->push_back(text); });
  world->Write();
  return told;
}

TEST(Datasets, ACallThatWaitsIsToldWhatWasFoundSoFar) {
  World world;
  const SessionId worker = world.Join("a");
  const auto told = CreateAloud(&world, seconds(25));
  const IndexDirective asked = *world.Asked(worker);
  // Lets ten seconds pass, in which the worker reports this.
  const auto pass = [&](uint64_t files, uint64_t samples) {
    for (int i = 0; i < 10; ++i) {
      for (const uint64_t request : {asked.request_id, asked.request_id + 1}) {
        WorkerReport report;
        report.listings = {{.dataset_id = asked.dataset_id,
                            .request_id = request,
                            .files = request == asked.request_id ? files : 7,
                            .samples = samples}};
        EXPECT_TRUE(world->Heartbeat(worker, report, {}, world.now()).ok());
      }
      world.Advance(seconds(1));
    }
  };
  world.Advance(std::chrono::milliseconds(1900));
  EXPECT_THAT(*told, testing::IsEmpty());
  world.Advance(std::chrono::milliseconds(100));
  const std::string lists =
      "worker a lists readers.image_folder path=\"/d\" repeat=1: ";
  EXPECT_THAT(*told,
              testing::ElementsAre(lists + "nothing found so far, after 2 s"));
  pass(120'000, 0);
  pass(130'000, 65'536);
  EXPECT_THAT(std::vector<std::string>(told->begin() + 1, told->end()),
              testing::ElementsAre(
                  lists + "120000 files so far, after 12 s",
                  lists + "130000 files and 65536 samples so far, after 22 s"));
  ASSERT_EQ(world->Datasets().size(), 1u);
  EXPECT_EQ(world->Datasets()[0].files, 130'000u);
  pass(140'000, 131'072);
  ASSERT_EQ(told->size(), 4u) << "the last one is the answer";
  EXPECT_THAT(told->back(),
              testing::HasSubstr("140000 files and 131072 samples so far; it "
                                 "goes on: call again"));
}

TEST(Datasets, TextsAboutAListingCutALongListOfFiles) {
  World world;
  world.Join("a");
  JobSpec spec = SpecOf("j", "/d");
  Node& reader = spec.pipeline.nodes[0];
  reader.op = "readers.files";
  reader.args = {{"files", std::vector<std::string>(3000, "/d/a.jpg")},
                 {"labels", std::vector<int64_t>(3000, 1)}};
  const World::Box box = world.Create(spec, seconds(1));
  world.Advance(seconds(1));
  EXPECT_EQ(Code(box), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(box), testing::HasSubstr("and 2997 more (digest "));
  EXPECT_LT(Text(box).size(), 400u);
}

TEST(Datasets, ACallThatWaitsForAWorkerIsToldSo) {
  World world;
  const auto told = CreateAloud(&world, seconds(11));
  world.Advance(seconds(20));
  ASSERT_EQ(told->size(), 2u);
  EXPECT_THAT(told->front(), testing::HasSubstr("no worker is ready to list"));
  EXPECT_THAT(told->back(), testing::HasSubstr("no worker was ready within"));
}

TEST(Datasets, TheSameSpecAttachesAndAnotherIsRefusedNamingTheDifference) {
  World world;
  const SessionId worker = world.Join("a");
  const auto job = world.MakeJob(SpecOf("j", "/d"), worker);
  World::Box same = world.Create(SpecOf("j", "/d"));
  ASSERT_EQ(Code(same), StatusCode::kOk);
  EXPECT_TRUE((*same)->value().attached);
  EXPECT_EQ((*same)->value().info->plan_hash, job->plan_hash);
  World::Box other = world.Create(SpecOf("j", "/d", 32));
  EXPECT_EQ(Code(other), StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(other), testing::HasSubstr("32"));
}

TEST(Datasets, AWrongSpecIsRefusedAtOnce) {
  World world;
  EXPECT_EQ(Code(world.Create(SpecOf("j", "/d", 0))),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Code(world.Create(SpecOf("no spaces", "/d"))),
            StatusCode::kInvalidArgument);
}

TEST(Datasets, ABatchLargerThanTheDatasetIsRefusedWhenItIsKnown) {
  World world;
  const SessionId worker = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d", 2000));
  ASSERT_TRUE(world.Upload(HeaderFor(*world.Asked(worker), "x"), "x").ok());
  EXPECT_EQ(Code(box), StatusCode::kInvalidArgument) << Text(box);
}

TEST(Datasets, JobsOfOneDatasetShareOneListing) {
  World world;
  const SessionId a = world.Join("a"), b = world.Join("b");
  World::Box one = world.Create(SpecOf("one", "/d"));
  World::Box two = world.Create(SpecOf("two", "/d"));
  World::Box again = world.Create(SpecOf("two", "/d"));
  std::optional<IndexDirective> asked = world.Asked(a);
  EXPECT_FALSE(world.Asked(b).has_value());
  ASSERT_TRUE(world.Upload(HeaderFor(*asked, "x"), "x").ok());
  EXPECT_EQ(Code(one), StatusCode::kOk) << Text(one);
  EXPECT_EQ(Code(two), StatusCode::kOk) << Text(two);
  EXPECT_EQ(Code(again), StatusCode::kOk) << Text(again);
  EXPECT_TRUE((*again)->value().attached);
}

TEST(Datasets, AListingIsTriedElsewhereWhenItsWorkerIsLost) {
  World world;
  const SessionId a = world.Join("a"), b = world.Join("b");
  World::Box box = world.Create(SpecOf("j", "/d"));
  const std::optional<IndexDirective> first = world.Asked(a);
  ASSERT_TRUE(first.has_value());
  world.Advance(seconds(2));
  ASSERT_TRUE(world.Beat(b).ok());
  world.Advance(seconds(2));
  const std::optional<IndexDirective> second = world.Asked(b);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(world.Upload(HeaderFor(*first, "x"), "x").code(),
            StatusCode::kNotFound);
  EXPECT_TRUE(world.Upload(HeaderFor(*second, "x"), "x").ok());
  EXPECT_EQ(Code(box), StatusCode::kOk) << Text(box);
}

TEST(Datasets, AListingThatEveryWorkerDiesOfIsGivenUp) {
  World world;
  World::Box box = world.Create(SpecOf("j", "/d"), std::chrono::hours(1));
  for (int i = 0; i < 3; ++i) {
    const SessionId worker = world.Join("a");
    ASSERT_TRUE(world.Asked(worker).has_value()) << i;
    world->CloseWorker(worker, false, world.now());
    world.Advance(seconds(4));
  }
  EXPECT_EQ(Code(box), StatusCode::kUnavailable) << Text(box);
  EXPECT_TRUE(world.Found("INDEX_FAILED"));
}

TEST(Datasets, AListingThatFailsAnswersAllWhoWait) {
  World world;
  const SessionId a = world.Join("a");
  World::Box one = world.Create(SpecOf("one", "/d"));
  World::Box two = world.Create(SpecOf("two", "/d"));
  const IndexDirective asked = *world.Asked(a);
  ASSERT_TRUE(world
                  ->FailIndex(asked.dataset_id, asked.request_id,
                              NotFound("/d: no such directory"), world.now())
                  .ok());
  EXPECT_EQ(Code(one), StatusCode::kNotFound);
  EXPECT_THAT(Text(two), testing::HasSubstr("/d: no such directory"));
  ASSERT_EQ(world->Datasets().size(), 1u);
  EXPECT_EQ(world->Datasets()[0].state, "failed");
  EXPECT_EQ(world->Datasets()[0].info->name, "d") << "as one that is listed";
  // It can be retried.
  World::Box again = world.Create(SpecOf("one", "/d"));
  EXPECT_TRUE(world.Asked(a).has_value());
  EXPECT_EQ(world->Datasets()[0].state, "indexing");
}

TEST(Datasets, ThatFailedIsForgottenByTheNameThatIsShown) {
  World world;
  const SessionId a = world.Join("a");
  world.Create(SpecOf("one", "s3://key:secret@bucket/photos/"));
  const IndexDirective asked = *world.Asked(a);
  ASSERT_TRUE(world
                  ->FailIndex(asked.dataset_id, asked.request_id,
                              NotFound("no such bucket"), world.now())
                  .ok());
  EXPECT_EQ(world->Datasets()[0].info->name, "photos");
  EXPECT_TRUE(world.DeleteDataset("photos").ok());
  EXPECT_TRUE(world->Datasets().empty());
}

TEST(Datasets, ANameIsTheLastPartOfTheReadersPath) {
  EXPECT_EQ(ProposedName("readers.tfrecord(path=\"/d/x/*.tfrecord\")", "id"),
            "*.tfrecord");
  EXPECT_EQ(ProposedName("readers.image_folder(path=\"/\")", "0123456789abcd"),
            "0123456789ab");
  EXPECT_EQ(ProposedName("readers.external(sha256:12)", "0123456789abcd"),
            "0123456789ab");
  EXPECT_EQ(ProposedName("a \"b", "0123"), "0123");
  EXPECT_EQ(ProposedName("readers.webdataset(ext=texts[\"jpg\",\"cls\"],"
                         "paths=texts[\"http://h:80/a/part-0.tar\"])",
                         "id"),
            "part-0.tar");
}

TEST(Datasets, WithoutWorkersACallerIsToldSoAtItsDeadline) {
  World world;
  World::Box box = world.Create(SpecOf("j", "/d"), seconds(5));
  world.Advance(seconds(4));
  EXPECT_FALSE(box->has_value());
  world.Advance(seconds(1));
  EXPECT_EQ(Code(box), StatusCode::kUnavailable);
  EXPECT_THAT(Text(box), testing::HasSubstr("leat-worker"));
  EXPECT_TRUE(world->Datasets().empty());
}

TEST(Datasets, AListingGoesOnAfterItsCallersDeadline) {
  World world;
  const SessionId a = world.Join("a");
  World::Box late = world.Create(SpecOf("j", "/d"), seconds(2));
  const IndexDirective asked = *world.Asked(a);
  world.Advance(seconds(2));
  EXPECT_EQ(Code(late), StatusCode::kDeadlineExceeded);
  World::Box again = world.Create(SpecOf("j", "/d"));
  EXPECT_TRUE(world.Upload(HeaderFor(asked, "x"), "x").ok());
  EXPECT_EQ(Code(again), StatusCode::kOk) << Text(again);
}

TEST(Datasets, ACancelledWaitIsNotAnswered) {
  World world;
  const SessionId a = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d"));
  world->CancelWait(world.last_wait());
  EXPECT_TRUE(world.Upload(HeaderFor(*world.Asked(a), "x"), "x").ok());
  EXPECT_FALSE(box->has_value());
  EXPECT_TRUE(world->Jobs().empty());
}

TEST(Datasets, AnOversizedIndexIsRefusedAndEverybodyWhoWaitsIsTold) {
  CoordinatorConfig config;
  config.max_index_bytes = 10;
  World world(config);
  const SessionId a = world.Join("a");
  World::Box one = world.Create(SpecOf("one", "/d"));
  World::Box two = world.Create(SpecOf("two", "/d"));
  const IndexDirective asked = *world.Asked(a);
  EXPECT_EQ(asked.max_index_bytes, 10u) << "the worker knows the limit";
  EXPECT_EQ(
      world.Upload(HeaderFor(asked, "far too long"), "far too long").code(),
      StatusCode::kResourceExhausted);
  for (const World::Box& box : {one, two}) {
    EXPECT_EQ(Code(box), StatusCode::kResourceExhausted) << Text(box);
    EXPECT_THAT(Text(box), testing::HasSubstr("limit of 10 bytes"));
  }
  EXPECT_TRUE(world.Found("INDEX_FAILED"));
  // The listing is over, and can be requested again.
  EXPECT_FALSE(world.Asked(a).has_value());
  World::Box again = world.Create(SpecOf("one", "/d"));
  ASSERT_TRUE(world.Upload(HeaderFor(*world.Asked(a), "right"), "right").ok());
  EXPECT_EQ(Code(again), StatusCode::kOk) << Text(again);
}

TEST(Datasets, ADamagedUploadHasTheDatasetListedAgainThreeTimesInAll) {
  World world;
  const SessionId a = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d"), std::chrono::hours(1));
  for (int i = 0; i < 2; ++i) {
    const std::optional<IndexDirective> asked = world.Asked(a);
    ASSERT_TRUE(asked.has_value());
    EXPECT_EQ(world.Upload(HeaderFor(*asked, "not there")).code(),
              StatusCode::kDataLoss);
    EXPECT_FALSE(box->has_value());
  }
  const std::optional<IndexDirective> third = world.Asked(a);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(world.Upload(HeaderFor(*third, "not there")).code(),
            StatusCode::kDataLoss);
  EXPECT_EQ(Code(box), StatusCode::kUnavailable);
  EXPECT_THAT(Text(box), testing::HasSubstr("sent it damaged"));
}

TEST(Datasets, AStaleUploadThatIsRefusedEndsNobodysListing) {
  World world;
  const SessionId a = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d"));
  const IndexDirective asked = *world.Asked(a);
  world->RefuseUpload(asked.dataset_id, asked.request_id + 1,
                      InvalidArgument("another one"), world.now());
  EXPECT_FALSE(box->has_value());
  ASSERT_TRUE(world.Upload(HeaderFor(asked, "right"), "right").ok());
  EXPECT_EQ(Code(box), StatusCode::kOk) << Text(box);
}

// The answer to the first one did not arrive in time.
TEST(Datasets, AnUploadThatComesTwiceEndsNoLaterAttempt) {
  World world;
  const SessionId a = world.Join("a");
  const World::Box first = world.Create(SpecOf("first", "/d"));
  const IndexDirective asked = *world.Asked(a);
  const World::Box late = world.Create(SpecOf("late", "/d"));
  IndexHeader header = HeaderFor(asked, "x");
  header.look = BlockOf("look");
  for (const char* const bytes : {"x", "look"})
    ASSERT_TRUE(world->PutBlock(BlockOf(bytes), bytes, world.now()).ok());
  std::vector<absl::Status> answers;
  for (int i = 0; i < 2; ++i)
    world->FinishUpload(header, world.now(), [&](const absl::Status& status) {
      answers.push_back(status);
    });
  world.Write();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(answers[0].ok()) << answers[0];
  EXPECT_TRUE(absl::IsNotFound(answers[1])) << answers[1];
  EXPECT_EQ(Code(first), absl::StatusCode::kOk) << Text(first);
  EXPECT_EQ(Text(late), "no answer");
  const IndexDirective again = *world.Asked(a);
  ASSERT_TRUE(
      world
          ->NoteLooked({again.dataset_id, again.request_id, 5, 5, {}, false},
                       world.now())
          .ok());
  world.Write();
  EXPECT_EQ(Code(late), absl::StatusCode::kOk) << Text(late);
}

TEST(Datasets, AFailedListingCanBeForgotten) {
  World world;
  const SessionId a = world.Join("a");
  world.Create(SpecOf("j", "/d"));
  const IndexDirective asked = *world.Asked(a);
  ASSERT_TRUE(world
                  ->FailIndex(asked.dataset_id, asked.request_id,
                              NotFound("/d: no such directory"), world.now())
                  .ok());
  ASSERT_TRUE(world.Found("INDEX_FAILED"));
  EXPECT_TRUE(world.DeleteDataset(asked.dataset_id.substr(0, 12)).ok());
  EXPECT_FALSE(world.Found("INDEX_FAILED"));
  EXPECT_TRUE(world->Datasets().empty());
  EXPECT_EQ(world.DeleteDataset(asked.dataset_id).code(),
            StatusCode::kNotFound);
}

TEST(Datasets, CancelledCreationsLeaveNoListingsBehind) {
  World world;
  for (int i = 0; i < 100; ++i) {  // more than may be listed at once
    World::Box box = world.Create(SpecOf("j", fmt::format("/{}", i)));
    ASSERT_FALSE(box->has_value()) << i << ": " << Text(box);
    world->CancelWait(world.last_wait());
  }
  EXPECT_FALSE(world.Asked(world.Join("a")).has_value());
}

}  // namespace
}  // namespace leat::server
