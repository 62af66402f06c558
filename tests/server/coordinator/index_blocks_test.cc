// SPDX-License-Identifier: Apache-2.0
//
// Indexes that arrive in blocks, and the blocks that are kept.
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordinator/coordinator.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

const std::vector<std::string>& Pieces() {
  static const std::vector<std::string> pieces = {
      "head", "first block", std::string((2 << 20) + 7, 'b'), "last"};
  return pieces;
}

// Makes the header of an index of these pieces, of 900 samples.
IndexHeader HeaderOf(const IndexDirective& asked) {
  IndexHeader header = HeaderFor(asked, "", 900);
  std::vector<IndexBlock> blocks;
  for (const std::string& piece : Pieces())
    blocks.push_back(BlockOf(piece, blocks.empty() ? 0 : 300));
  SetBlocks(std::move(blocks), &header);
  return header;
}

class Listing {
 public:
  explicit Listing(World* world) : world_(world) {
    session_ = world->Join("a");
    Ask();
  }
  void Ask() {
    box_ = world_->Create(SpecOf("j", "/d"), std::chrono::hours(10));
    asked_ = *world_->Asked(session_);
  }
  // Acts as the worker's client. Returns true if the block had to be sent.
  bool Put(size_t piece) {
    const IndexBlock block = BlockOf(Pieces()[piece], piece == 0 ? 0 : 300);
    EXPECT_TRUE((*world_)
                    ->CheckBlock(asked_.dataset_id, asked_.request_id, block,
                                 world_->now())
                    .ok());
    if ((*world_)->FindBlock(block, world_->now())) return false;
    EXPECT_TRUE(
        (*world_)->PutBlock(block, Pieces()[piece], world_->now()).ok());
    return true;
  }
  const IndexDirective& asked() const { return asked_; }
  World::Box box() const { return box_; }

 private:
  World* const world_;
  SessionId session_ = 0;
  IndexDirective asked_;
  World::Box box_;
};

TEST(IndexBlocks, AnIndexInBlocksIsKeptAndRead) {
  World world;
  Listing listing(&world);
  EXPECT_EQ(listing.asked().index_block_bytes, kIndexBlockBytes);
  for (size_t i = 0; i < Pieces().size(); ++i) EXPECT_TRUE(listing.Put(i));
  ASSERT_TRUE(world.Upload(HeaderOf(listing.asked())).ok());
  ASSERT_EQ(ErrorOf(listing.box()), "");
  const std::string& id = listing.asked().dataset_id;
  for (int restart = 0; restart < 2; ++restart, world.Restart()) {
    const auto index = world->BlocksOf(id);
    ASSERT_TRUE(index.ok());
    ASSERT_EQ(index->blocks->size(), Pieces().size());
    EXPECT_EQ(index->identity, HeaderOf(listing.asked()).index_sha256);
  }
  EXPECT_EQ(world->Datasets()[0].index_bytes,
            TotalBytes(HeaderOf(listing.asked()).blocks));
}

// The coordinator dies when some blocks are there; the dataset is listed again.
TEST(IndexBlocks, AfterEachCutOnlyTheRestIsSent) {
  for (size_t cut = 0; cut <= Pieces().size(); ++cut) {
    World world;
    {
      Listing listing(&world);
      for (size_t i = 0; i < cut; ++i) EXPECT_TRUE(listing.Put(i));
    }
    world.Restart();
    world.Advance(std::chrono::minutes(59));
    Listing again(&world);
    for (size_t i = 0; i < Pieces().size(); ++i)
      EXPECT_EQ(again.Put(i), i >= cut) << cut << " " << i;
    EXPECT_TRUE(world.Upload(HeaderOf(again.asked())).ok());
    EXPECT_EQ(ErrorOf(again.box()), "");
  }
}

TEST(IndexBlocks, ABlockThatIsNotThereIsNamedAndTheDatasetListedAgain) {
  World world;
  Listing listing(&world);
  for (const size_t i : {0, 1, 3}) listing.Put(i);
  const absl::Status status = world.Upload(HeaderOf(listing.asked()));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr(ToHex(HashOf(Pieces()[2]))));
  EXPECT_FALSE(listing.box()->has_value()) << "it is tried again";
}

TEST(IndexBlocks, BytesOfAnotherHashAreNotKept) {
  World world;
  const IndexBlock block = BlockOf("right", 1);
  for (const char* wrong : {"wrong", "righ", "right!", ""}) {
    const absl::Status status = world->PutBlock(block, wrong, world.now());
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << wrong;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(ToHex(block.sha256)));
  }
  EXPECT_FALSE(world->FindBlock(block, world.now()));
  EXPECT_TRUE(absl::IsNotFound(
      world->ReadBlock(block.sha256, 0, world.now()).status()));
}

TEST(IndexBlocks, NobodysBlocksAndTooLargeOnesAreRefused) {
  CoordinatorConfig config;
  config.max_index_bytes = 100;
  World world(config);
  Listing listing(&world);
  const auto check = [&](uint64_t request, uint64_t bytes) {
    return world
        ->CheckBlock(listing.asked().dataset_id, request,
                     {.sha256 = HashOf("x"), .bytes = bytes, .samples = 1},
                     world.now())
        .code();
  };
  const uint64_t request = listing.asked().request_id;
  EXPECT_EQ(check(request, 100), StatusCode::kOk);
  EXPECT_EQ(check(request, 101), StatusCode::kResourceExhausted);
  EXPECT_EQ(check(request, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(check(request + 1, 100), StatusCode::kNotFound);
  EXPECT_EQ(world.Upload(HeaderOf(listing.asked())).code(),
            StatusCode::kResourceExhausted);
  EXPECT_THAT(ErrorOf(listing.box()), HasSubstr("limit of 100 bytes"))
      << "who waits is told";
}

TEST(IndexBlocks, AHeaderThatContradictsItselfIsRefused) {
  const auto upload = [](const std::function<void(IndexHeader*)>& change) {
    World world;
    Listing listing(&world);
    for (size_t i = 0; i < Pieces().size(); ++i) listing.Put(i);
    IndexHeader header = HeaderOf(listing.asked());
    change(&header);
    return world.Upload(header).code();
  };
  EXPECT_EQ(upload([](IndexHeader* header) {
              header->shards = *ShardTable::Uniform(901, 10);
            }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(upload([](IndexHeader* header) { header->blocks[2].samples = 0; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(upload([](IndexHeader* header) { header->blocks.clear(); }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(upload([](IndexHeader* header) { ++header->index_bytes; }),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(upload([](IndexHeader* header) {
              std::swap(header->blocks[1], header->blocks[3]);
            }),
            StatusCode::kDataLoss);
}

TEST(IndexBlocks, BlocksOfNoDatasetGoAfterAWhile) {
  CoordinatorConfig config;
  config.job_ttl = std::chrono::hours(24 * 365);
  World world(config);
  Listing listing(&world);
  for (size_t i = 0; i < Pieces().size(); ++i) listing.Put(i);
  const IndexBlock stray = BlockOf("stray", 1);
  EXPECT_TRUE(world->PutBlock(stray, "stray", world.now()).ok());
  ASSERT_TRUE(world.Upload(HeaderOf(listing.asked())).ok());
  const auto there = [&](const IndexBlock& block) {
    return world->ReadBlock(block.sha256, 0, world.now()).ok();
  };
  const IndexBlock own = BlockOf(Pieces()[1], 300);
  world.Advance(std::chrono::minutes(30));
  EXPECT_TRUE(there(stray));
  world.Advance(std::chrono::hours(3));
  EXPECT_FALSE(there(stray));
  EXPECT_TRUE(there(own));
  world.Restart();
  world.Advance(std::chrono::hours(3));
  EXPECT_TRUE(there(own)) << "also after a start";
  ASSERT_TRUE(world.DeleteJob("j").ok());
  ASSERT_TRUE(world.DeleteDataset("photos").ok());
  world.Advance(std::chrono::hours(3));
  EXPECT_FALSE(there(own));
}

TEST(IndexBlocks, BlocksOfListsStayWhileAJobNamesThem) {
  CoordinatorConfig config;
  config.job_ttl = std::chrono::hours(24 * 365);
  World world(config);
  const SessionId worker = world.Join("a");
  JobSpec spec = SpecOf("j", "/d");
  spec.pipeline.nodes[0] = {
      "readers.files",
      {},
      {{"files", *LongListOf(std::vector<std::string>(70'000, "/a"))},
       {"labels", *LongListOf(std::vector<int64_t>(70'000, 3))}}};
  const auto list = [&](const char* name) {
    return std::get<LongList>(spec.pipeline.nodes[0].args.at(name));
  };
  for (const char* name : {"files", "labels"})
    EXPECT_TRUE(world
                    ->PutBlock({list(name).blocks[0], list(name).bytes},
                               *list(name).values, world.now())
                    .ok());
  World::Box box = world.Create(spec, std::chrono::hours(10));
  const IndexDirective asked = *world.Asked(worker);
  EXPECT_EQ(asked.reader.args.at("files"), Value(list("files")));
  ASSERT_TRUE(world.Upload(HeaderFor(asked, "x", 900), "x").ok());
  const auto there = [&] {
    return world->ReadBlock(list("files").blocks[0], 0, world.now()).ok() &&
           world->ReadBlock(list("labels").blocks[0], 0, world.now()).ok();
  };
  world.Advance(std::chrono::hours(3));
  EXPECT_TRUE(there());
  world.Restart();
  world.Advance(std::chrono::hours(3));
  EXPECT_TRUE(there()) << "also after a start";
  EXPECT_EQ((*world->GetJob("j"))->spec.pipeline.nodes[0].args.at("files"),
            Value(list("files")));
  ASSERT_TRUE(world.DeleteJob("j").ok());
  world.Advance(std::chrono::hours(3));
  EXPECT_FALSE(there());
}

TEST(IndexBlocks, AListingThatBringsBlocksHasTime) {
  CoordinatorConfig config;
  config.indexing.attempt_timeout = std::chrono::minutes(30);
  World world(config);
  const SessionId worker = world.Join("a");
  World::Box box = world.Create(SpecOf("j", "/d"), std::chrono::hours(10));
  const IndexDirective asked = *world.Asked(worker);
  const IndexBlock block = BlockOf("x", 1);
  for (int i = 0; i < 10; ++i) {
    for (int second = 0; second < 20 * 60; second += 2) {
      world.Advance(seconds(2));
      ASSERT_TRUE(world.Beat(worker).ok());
    }
    EXPECT_TRUE(
        world
            ->CheckBlock(asked.dataset_id, asked.request_id, block, world.now())
            .ok());
  }
}

TEST(MemoryBlocks, HasABound) {
  MemoryBlocks blocks(10);
  EXPECT_TRUE(blocks.Put(HashOf("12345678"), "12345678", {}).ok());
  EXPECT_TRUE(blocks.Put(HashOf("12345678"), "12345678", {}).ok())
      << "it is there already";
  const absl::Status status = blocks.Put(HashOf("abc"), "abc", {});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("state directory"));
  EXPECT_EQ(*blocks.Collect({}, WallTime(seconds(1))), 1u);
  EXPECT_TRUE(blocks.Put(HashOf("abc"), "abc", {}).ok());
}

}  // namespace
}  // namespace leat::server
