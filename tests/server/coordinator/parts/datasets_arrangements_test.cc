// SPDX-License-Identifier: Apache-2.0
//
// An arrangement is listed after what it arranges, once, and again when that
// has changed.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/plan/selection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

JobSpec Selected(const std::string& name, uint64_t end = 100,
                 const std::string& path = "/d") {
  JobSpec spec = SpecOf(name, path);
  spec.selection.arrangement.samples = {.begin = 0, .end = end, .step = 1};
  return spec;
}

// A mixture of the first 100, and of the first 200 samples of /d.
JobSpec TwoParts() {
  JobSpec mixture = SpecOf("mix", "/d");
  const Graph pipeline = mixture.pipeline;
  mixture.pipeline = {};
  mixture.last_batch = LastBatch::kStream;
  for (const uint64_t end : {100, 200}) {
    MixedSource& source = mixture.sources.emplace_back();
    source.name = std::to_string(end);
    source.pipeline = pipeline;
    source.selection.arrangement.samples = {.begin = 0, .end = end, .step = 1};
  }
  mixture.shares = {{0, {1, 1}}};
  return mixture;
}

class Arrangements : public testing::Test {
 protected:
  explicit Arrangements(const CoordinatorConfig& config = {})
      : world_(config) {}
  // Answers a listing request; `content` distinguishes datasets.
  absl::Status List(const IndexDirective& asked, const std::string& content,
                    uint64_t samples = 1000) {
    IndexHeader header = HeaderFor(asked, content, samples);
    header.fingerprint = HashOf(content);
    header.name = content;
    SetBlocks({BlockOf(content)}, &header);
    if (asked.base == nullptr) {
      const std::string look = "look of " + content;
      header.look = BlockOf(look);
      EXPECT_TRUE(world_->PutBlock(*header.look, look, world_.now()).ok());
    }
    return world_.Upload(header, content);
  }
  absl::Status NothingChanged(const IndexDirective& asked) {
    const absl::Status status = world_->NoteLooked(
        {asked.dataset_id, asked.request_id, 5, 5, {}, false}, world_.now());
    world_.Write();
    return status;
  }
  // Creates a job of the first 100 samples of /d, which were not listed.
  std::shared_ptr<const JobInfo> First() {
    World::Box box = world_.Create(Selected("first"));
    EXPECT_TRUE(List(*world_.Asked(worker_), "all").ok());
    EXPECT_TRUE(List(*world_.Asked(worker_), "part", 100).ok());
    return Info(box);
  }
  static std::shared_ptr<const JobInfo> Info(const World::Box& box) {
    EXPECT_EQ(ErrorOf(box), "");
    return box->has_value() && (*box)->ok() ? (**box)->info : nullptr;
  }

  std::vector<IndexDirective> AllAskedOfIt() {
    std::vector<IndexDirective> asked;
    for (const WorkerMessage& message : world_.Take(worker_))
      if (const auto* directive = std::get_if<IndexDirective>(&message))
        asked.push_back(*directive);
    return asked;
  }

  World world_;
  SessionId worker_ = world_.Join("a");
};

TEST_F(Arrangements, AreListedAfterTheirBase) {
  World::Box box = world_.Create(Selected("first"));
  const IndexDirective base = *world_.Asked(worker_);
  EXPECT_EQ(base.base, nullptr);
  ASSERT_TRUE(List(base, "all").ok());
  EXPECT_FALSE(box->has_value());
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_NE(asked.base, nullptr);
  EXPECT_EQ(asked.base->fingerprint, HashOf("all"));
  EXPECT_EQ(asked.arrangement.samples.end, 100u);
  EXPECT_NE(asked.dataset_id, base.dataset_id);
  ASSERT_TRUE(List(asked, "part", 100).ok());
  const auto job = Info(box);
  ASSERT_NE(job, nullptr);
  const DatasetInfo& dataset = job->datasets[0];
  EXPECT_EQ(dataset.shards.num_samples(), 100u);
  EXPECT_EQ(dataset.arrangement, "samples range 0 99 1\n");
  ASSERT_NE(dataset.base, nullptr);
  EXPECT_EQ(dataset.base->shards.num_samples(), 1000u);
}

TEST_F(Arrangements, OfAKnownBaseNeedALookAtIt) {
  const auto first = First();
  World::Box whole = world_.Create(SpecOf("whole", "/d"));
  ASSERT_TRUE(NothingChanged(*world_.Asked(worker_)).ok());
  EXPECT_EQ(Info(whole)->datasets[0].id, first->datasets[0].base->id);
  // The same arrangement is known, too; another one is listed.
  World::Box again = world_.Create(Selected("again"));
  ASSERT_TRUE(NothingChanged(*world_.Asked(worker_)).ok());
  EXPECT_EQ(Info(again)->datasets[0].id, first->datasets[0].id);
  EXPECT_EQ(Info(again)->plan_hash, first->plan_hash);
  World::Box other = world_.Create(Selected("other", 200));
  ASSERT_TRUE(NothingChanged(*world_.Asked(worker_)).ok());
  ASSERT_TRUE(List(*world_.Asked(worker_), "other part", 200).ok());
  EXPECT_NE(Info(other)->plan_hash, first->plan_hash);
}

TEST_F(Arrangements, OfABaseThatHasChangedAreMadeAnew) {
  const auto first = First();
  World::Box box = world_.Create(Selected("second"));
  ASSERT_TRUE(List(*world_.Asked(worker_), "all, changed", 900).ok());
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_EQ(asked.base->fingerprint, HashOf("all, changed"));
  ASSERT_TRUE(List(asked, "part, changed", 100).ok());
  const auto second = Info(box);
  EXPECT_NE(second->datasets[0].id, first->datasets[0].id);
  EXPECT_EQ(second->datasets[0].base->shards.num_samples(), 900u);
  EXPECT_EQ((*world_->GetJob("first"))->datasets[0].id, first->datasets[0].id);
}

TEST_F(Arrangements, TwoJobsListOneOnce) {
  world_->CloseWorker(worker_, /*left=*/true, world_.now());
  World::Box one = world_.Create(Selected("one"));
  World::Box two = world_.Create(Selected("two"));
  worker_ = world_.Join("b");
  world_.Write();
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_TRUE(List(asked, "part", 100).ok());
  EXPECT_EQ(Info(one)->datasets[0].id, Info(two)->datasets[0].id);
  EXPECT_FALSE(world_.Asked(worker_).has_value());
}

TEST_F(Arrangements, GoOnAtAnotherWorker) {
  World::Box box = world_.Create(Selected("first"));
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  ASSERT_TRUE(world_.Asked(worker_).has_value());
  world_->CloseWorker(worker_, /*left=*/false, world_.now());
  world_.Write();
  const SessionId successor = world_.Join("b");
  world_.Write();
  const auto asked = world_.Asked(successor);
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->base->fingerprint, HashOf("all"));
  ASSERT_TRUE(List(*asked, "part", 100).ok());
  EXPECT_NE(Info(box), nullptr);
}

class ArrangementTrails : public Arrangements {
 protected:
  // Reports that so many samples were walked, with a part of this text.
  absl::Status Tell(const IndexDirective& asked, uint64_t walked,
                    const std::string& text, uint32_t part) {
    const IndexBlock block = BlockOf(text);
    EXPECT_TRUE(world_->PutBlock(block, text, world_.now()).ok());
    return world_->NoteProgress({.dataset_id = asked.dataset_id,
                                 .request_id = asked.request_id,
                                 .walked = walked,
                                 .total = 100,
                                 .trail = block,
                                 .part = part},
                                world_.now());
  }
  // The worker that lists is lost; another one is asked.
  std::optional<IndexDirective> Next() {
    world_->CloseWorker(worker_, /*left=*/false, world_.now());
    world_.Write();
    worker_ = world_.Join(fmt::format("w{}", ++workers_));
    world_.Write();
    return world_.Asked(worker_);
  }
  World::Box box_ = world_.Create(Selected("first"));
  int workers_ = 0;
};

TEST_F(ArrangementTrails, AreGivenToTheWorkerThatGoesOn) {
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  const IndexDirective first = *world_.Asked(worker_);
  EXPECT_TRUE(first.trail.empty());
  ASSERT_TRUE(Tell(first, 20, "a", 0).ok());
  ASSERT_TRUE(Tell(first, 40, "b", 1).ok());
  const auto views = world_->Datasets({});
  const auto view = std::ranges::find(views, "indexing", &DatasetView::state);
  ASSERT_NE(view, views.end());
  EXPECT_EQ(view->info->name, "all › 0:100");
  EXPECT_EQ(view->walked, 40u);
  EXPECT_EQ(view->walked_total, 100u);
  const auto second = Next();
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(second->trail, ElementsAre(BlockOf("a"), BlockOf("b")));
  EXPECT_TRUE(absl::IsNotFound(Tell(first, 60, "late", 2)));
  ASSERT_TRUE(Tell(*second, 40, "better", 1).ok());
  ASSERT_TRUE(Tell(*second, 60, "c", 2).ok());
  const auto third = Next();
  ASSERT_TRUE(third.has_value());
  EXPECT_THAT(third->trail,
              ElementsAre(BlockOf("a"), BlockOf("better"), BlockOf("c")));
  ASSERT_TRUE(List(*third, "part", 100).ok());
  EXPECT_NE(Info(box_), nullptr);
}

TEST_F(ArrangementTrails, ThatHaveNoPlaceOrAreNotThereAreRefused) {
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  const IndexDirective asked = *world_.Asked(worker_);
  EXPECT_TRUE(absl::IsInvalidArgument(Tell(asked, 1, "a", 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(
      world_->NoteProgress({.dataset_id = asked.dataset_id,
                            .request_id = asked.request_id,
                            .trail = BlockOf("not put")},
                           world_.now())));
  EXPECT_TRUE(Tell(asked, 1, "a", 0).ok());
}

TEST_F(ArrangementTrails, HaveABound) {
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  const IndexDirective asked = *world_.Asked(worker_);
  for (uint32_t i = 0; i < 4100; ++i)
    ASSERT_TRUE(Tell(asked, i, fmt::format("part {}", i), i).ok()) << i;
  EXPECT_THAT(Next()->trail, SizeIs(4096));
}

// A listing that gets on may lose any number of workers.
TEST_F(ArrangementTrails, CountAsProgress) {
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  std::optional<IndexDirective> asked = world_.Asked(worker_);
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(asked.has_value()) << i;
    ASSERT_TRUE(Tell(*asked, i + 1, fmt::format("part {}", i), i).ok());
    asked = Next();
  }
  // A part that was done before does not count again.
  ASSERT_TRUE(Tell(*asked, 1, "part 0", 0).ok());
  ASSERT_TRUE(Next().has_value());
  EXPECT_FALSE(Next().has_value());
  EXPECT_THAT(ErrorOf(box_), HasSubstr("was tried 3 times"));
}

TEST_F(ArrangementTrails, OutliveTheRemovalOfBlocksThatNobodyWants) {
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_TRUE(Tell(asked, 1, "a", 0).ok());
  const auto there = [&] {
    return world_->ReadBlock(BlockOf("a").sha256, 0, world_.now()).ok();
  };
  for (int i = 0; i < 9000; ++i) {  // two hours and a half
    world_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(world_.Beat(worker_).ok());
    ASSERT_TRUE(world_
                    ->NoteProgress({.dataset_id = asked.dataset_id,
                                    .request_id = asked.request_id},
                                   world_.now())
                    .ok());
  }
  EXPECT_TRUE(there());
  ASSERT_TRUE(List(asked, "part", 100).ok());
  world_.Advance(std::chrono::hours(3));
  EXPECT_FALSE(there());
}

TEST_F(Arrangements, AndTheirBasesSurviveARestart) {
  const auto first = First();
  world_.Restart();
  const auto job = *world_->GetJob("first");
  ASSERT_NE(job->datasets[0].base, nullptr);
  EXPECT_EQ(job->datasets[0].base->fingerprint, HashOf("all"));
  EXPECT_EQ(job->datasets[0].arrangement, first->datasets[0].arrangement);
  EXPECT_EQ(job->plan_hash, first->plan_hash);
}

TEST_F(Arrangements, KeepTheirBase) {
  First();
  EXPECT_THAT(std::string(world_.DeleteDataset("part").message()),
              HasSubstr("dataset part is used by 1 job: first"));
  ASSERT_TRUE(world_.DeleteJob("first").ok());
  EXPECT_EQ(world_.DeleteDataset("all").message(),
            "dataset all is arranged as \"part\": delete that first");
  ASSERT_TRUE(world_.DeleteDataset("part").ok());
  EXPECT_TRUE(world_.DeleteDataset("all").ok());
}

TEST_F(Arrangements, ThatFailToBeListedFailTheirJob) {
  World::Box box = world_.Create(Selected("first"));
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  const IndexDirective asked = *world_.Asked(worker_);
  ASSERT_TRUE(world_
                  ->FailIndex(asked.dataset_id, asked.request_id,
                              InvalidArgument("samples has 5000"), world_.now())
                  .ok());
  world_.Write();
  EXPECT_THAT(ErrorOf(box), HasSubstr("samples has 5000"));
  EXPECT_EQ(Code(box), absl::StatusCode::kInvalidArgument);
}

TEST_F(Arrangements, OfAMixtureAreListedForEachSource) {
  World::Box box = world_.Create(TwoParts());
  ASSERT_TRUE(List(*world_.Asked(worker_), "all").ok());
  EXPECT_FALSE(box->has_value());
  const std::vector<IndexDirective> asked = AllAskedOfIt();
  ASSERT_EQ(asked.size(), 2u);
  for (const IndexDirective& each : asked)
    ASSERT_TRUE(List(each, fmt::format("{}", each.arrangement.samples.end),
                     each.arrangement.samples.end)
                    .ok());
  EXPECT_EQ(Info(box)->datasets[1].shards.num_samples(), 200u);
}

class TwoAtATime : public Arrangements {
 protected:
  TwoAtATime() : Arrangements(Config()) {}
  static CoordinatorConfig Config() {
    CoordinatorConfig config;
    config.indexing.max_requests = 2;
    return config;
  }
};

TEST_F(TwoAtATime, AJobWhoseBaseHasGoneMeanwhileIsToldSo) {
  World::Box mix = world_.Create(TwoParts());
  World::Box box = world_.Create(Selected("one", 100, "/e"));
  const std::vector<IndexDirective> bases = AllAskedOfIt();
  ASSERT_EQ(bases.size(), 2u);
  // The parts of the mixture take both places, one after the other.
  ASSERT_TRUE(List(bases[0], "d").ok());
  const IndexDirective part = *world_.Asked(worker_);
  ASSERT_TRUE(List(bases[1], "e").ok());
  ASSERT_TRUE(world_.DeleteDataset("e").ok());
  EXPECT_FALSE(box->has_value());
  ASSERT_TRUE(List(part, "part", 100).ok());
  EXPECT_EQ(Code(box), absl::StatusCode::kAborted) << Text(box);
  EXPECT_FALSE(mix->has_value());
}

}  // namespace
}  // namespace leat::server
