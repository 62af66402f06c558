// SPDX-License-Identifier: Apache-2.0
//
// Blocks of indexes beside a durable store.
#include "server/store/block_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite_store.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class BlockStoreTest : public testing::Test {
 protected:
  BlockStoreTest() {
    std::string name = (fs::temp_directory_path() / "leat-blocks-XXXXXX");
    root_ = mkdtemp(name.data());
    dir_ = root_ / "state";
  }
  ~BlockStoreTest() override { fs::remove_all(root_); }

  // Opens the store, again if it is open.
  void Open() {
    world_.reset();
    store_.reset();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store =
        SqliteStore::Open(dir_, {});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Starts a coordinator on the folder, as after a restart.
  World& Start() {
    Open();
    world_.emplace(CoordinatorConfig{},
                   std::shared_ptr<Store>(store_.get(), [](Store*) {}));
    return *world_;
  }
  static void WriteAll(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static DatasetIndexed Dataset(const std::string& id,
                                const std::string& index) {
    DatasetIndexed indexed;
    indexed.dataset.id = id;
    indexed.dataset.name = "photos";
    indexed.dataset.shards = *ShardTable::Uniform(100, 10);
    indexed.index_bytes = index.size();
    indexed.index_sha256 = HashOf(index);
    return indexed;
  }
  absl::StatusOr<State> Load() {
    State state;
    RETURN_IF_ERROR(
        store_->Replay([&](const Event& event) { return state.Apply(event); }));
    return state;
  }

  fs::path root_, dir_;
  std::unique_ptr<SqliteStore> store_;
  std::optional<World> world_;  // uses the store
};

TEST_F(BlockStoreTest, BlocksSurviveWhileTheyAreWantedAndWhole) {
  Open();
  const WallTime now = WallTime(std::chrono::hours(100));
  const std::string bytes(3000, 'b');
  const Digest name = HashOf(bytes), other = HashOf("other");
  ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok());
  ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok()) << "twice";
  ASSERT_TRUE(store_->blocks().Put(other, "other", now).ok());
  // Files that a process was writing when it died.
  const fs::path blocks = dir_ / "blocks";
  WriteAll(blocks / (ToHex(name) + ".1.tmp"), "half");
  WriteAll(blocks / "readme", "nobody's");
  Open();
  EXPECT_FALSE(fs::exists(blocks / (ToHex(name) + ".1.tmp")));
  EXPECT_EQ(*store_->blocks().Read(name, 0, 1000), bytes.substr(0, 1000));
  EXPECT_EQ(*store_->blocks().Read(name, 2900, 1000), bytes.substr(0, 100));
  EXPECT_EQ(*store_->blocks().Read(name, 3000, 1000), "");
  EXPECT_FALSE(store_->blocks().Find(name, 2999, now).ok()) << "another size";
  EXPECT_TRUE(
      absl::IsNotFound(store_->blocks().Read(HashOf("none"), 0, 1).status()));
  // Found recently, referenced, neither.
  const auto collect = [&](const std::set<Digest>& live, Duration after) {
    return *store_->blocks().Collect(
        live, now + std::chrono::duration_cast<WallTime::duration>(after));
  };
  EXPECT_EQ(collect({}, seconds(0)), 0u);
  EXPECT_TRUE(store_->blocks().Find(name, 3000, now + seconds(60)).ok());
  EXPECT_EQ(collect({}, seconds(1)), 1u);
  EXPECT_FALSE(store_->blocks().Read(other, 0, 1).ok());
  EXPECT_EQ(collect({name}, seconds(1000)), 0u);
  EXPECT_EQ(collect({}, seconds(1000)), 1u);
  EXPECT_TRUE(fs::exists(blocks / "readme"));
}

// Returns the effects of a disk, or of a loss of power, on a file.
std::vector<std::string> Damaged(const std::string& bytes) {
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  return {flipped, bytes.substr(1), std::string(bytes.size(), '\0'), "",
          bytes + '\0'};
}

TEST_F(BlockStoreTest, ADamagedBlockIsRemovedWhenItIsFirstLookedAt) {
  const WallTime now = WallTime(std::chrono::hours(100));
  const std::string bytes(3000, 'b');
  const Digest name = HashOf(bytes);
  const fs::path path = dir_ / "blocks" / ToHex(name);
  Open();
  for (const std::string& damaged : Damaged(bytes))
    for (const bool finds : {false, true}) {
      ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok());
      WriteAll(path, damaged);
      Open();
      const absl::Status status =
          finds ? store_->blocks().Find(name, bytes.size(), now)
                : store_->blocks().Check(name, /*again=*/false);
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(Message(status)), HasSubstr(ToHex(name)));
      EXPECT_FALSE(fs::exists(path));
      EXPECT_TRUE(absl::IsNotFound(store_->blocks().Check(name, false)));
      EXPECT_TRUE(absl::IsNotFound(store_->blocks().Find(name, 3000, now)));
    }
  // A block that this process has compared is compared again only on request,
  // or when its size has changed.
  ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok());
  WriteAll(path, Damaged(bytes)[0]);
  EXPECT_TRUE(store_->blocks().Check(name, /*again=*/false).ok());
  EXPECT_TRUE(absl::IsDataLoss(store_->blocks().Check(name, /*again=*/true)));
  ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok());
  WriteAll(path, Damaged(bytes)[1]);
  EXPECT_TRUE(absl::IsDataLoss(store_->blocks().Find(name, 3000, now)));
  // A path that is not a file is neither read nor removed.
  fs::create_directory(path);
  EXPECT_EQ(store_->blocks().Check(name, false).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_TRUE(fs::is_empty(path));
}

// Answers a listing that this damage has caused, as a worker does.
void ListAgain(World* world, const IndexDirective& asked,
               const std::vector<std::string>& pieces, size_t sends) {
  IndexHeader header = HeaderFor(asked, "", 900);
  std::vector<IndexBlock> blocks;
  size_t sent = 0;
  for (const std::string& piece : pieces) {
    blocks.push_back(BlockOf(piece, blocks.empty() ? 0 : 450));
    if ((*world)->FindBlock(blocks.back(), world->now())) continue;
    ++sent;
    ASSERT_TRUE((*world)->PutBlock(blocks.back(), piece, world->now()).ok());
  }
  SetBlocks(std::move(blocks), &header);
  EXPECT_EQ(sent, sends);
  EXPECT_TRUE(world->Upload(header).ok());
}

TEST_F(BlockStoreTest, ADatasetWithADamagedBlockIsListedAgain) {
  const std::vector<std::string> pieces = {"head", std::string(5000, 'x'),
                                           std::string(5000, 'y')};
  const Digest name = HashOf(pieces[1]);
  const fs::path path = dir_ / "blocks" / ToHex(name);
  World* world = &Start();
  SessionId worker = world->Join("a");
  const World::Box box = world->Create(SpecOf("j", "/d"));
  ListAgain(world, *world->Asked(worker), pieces, 3);
  ASSERT_EQ(ErrorOf(box), "");
  std::vector<std::string> damages = Damaged(pieces[1]);
  damages.emplace_back();  // missing, the last
  for (size_t i = 0; i < damages.size(); ++i) {
    world->Advance(std::chrono::minutes(5));
    WriteAll(path, damages[i]);
    if (i + 1 == damages.size()) fs::remove(path);
    world = &Start();
    worker = world->Join("a");
    EXPECT_FALSE(world->Asked(worker)) << "nobody has needed the block";
    EXPECT_TRUE((*world)->ReadBlock(HashOf(pieces[0]), 0, world->now()).ok());
    for (int reads = 0; reads < 3; ++reads) {
      const auto read = (*world)->ReadBlock(name, 0, world->now());
      ASSERT_FALSE(read.ok()) << i;
      EXPECT_THAT(std::string(Message(read.status())),
                  HasSubstr(path.string()));
    }
    EXPECT_TRUE(world->Found("INDEX_DAMAGED"));
    EXPECT_THAT(world->SummaryOf("INDEX_DAMAGED"),
                AllOf(HasSubstr("photos"), HasSubstr(path.string()),
                      HasSubstr("listed again")));
    const auto asked = world->Asked(worker);
    ASSERT_TRUE(asked.has_value()) << i;
    ListAgain(world, *asked, pieces, 1);
    EXPECT_FALSE(world->Asked(worker)) << "once";
    EXPECT_FALSE(world->Found("INDEX_DAMAGED"));
    EXPECT_EQ(*(*world)->ReadBlock(name, 0, world->now()), pieces[1]);
  }
}

TEST_F(BlockStoreTest, WhatAListingDoesNotMendIsSaidAndTriedAgainLater) {
  const std::vector<std::string> pieces = {"head", "first", "second"};
  const Digest name = HashOf(pieces[1]);
  World* world = &Start();
  SessionId worker = world->Join("a");
  const World::Box box = world->Create(SpecOf("j", "/d"));
  ListAgain(world, *world->Asked(worker), pieces, 3);
  ASSERT_EQ(ErrorOf(box), "");
  // The folder is gone: blocks can be neither read nor written.
  fs::rename(dir_ / "blocks", dir_ / "away");
  world = &Start();
  fs::remove_all(dir_ / "blocks");
  worker = world->Join("a");
  EXPECT_FALSE((*world)->ReadBlock(name, 0, world->now()).ok());
  auto asked = world->Asked(worker);
  ASSERT_TRUE(asked.has_value());
  const IndexBlock block{.sha256 = name, .bytes = 5, .samples = 450};
  const absl::Status put = (*world)->PutBlock(block, pieces[1], world->now());
  EXPECT_THAT(std::string(Message(put)), HasSubstr((dir_ / "blocks").string()));
  ASSERT_TRUE(
      (*world)
          ->FailIndex(asked->dataset_id, asked->request_id, put, world->now())
          .ok());
  world->Write();
  EXPECT_THAT(world->SummaryOf("INDEX_DAMAGED"),
              AllOf(HasSubstr(ToHex(name)), HasSubstr("could not be listed")));
  EXPECT_FALSE((*world)->ReadBlock(name, 0, world->now()).ok());
  EXPECT_FALSE(world->Asked(worker)) << "not at once";
  world->Stop(std::chrono::minutes(2));
  (*world)->ReadBlock(name, 0, world->now()).IgnoreError();
  asked = world->Asked(worker);
  ASSERT_TRUE(asked.has_value());
  // The dataset has other blocks by now.
  fs::rename(dir_ / "away", dir_ / "blocks");
  fs::remove(dir_ / "blocks" / ToHex(name));
  ListAgain(world, *asked, {"head", "other", "second"}, 1);
  EXPECT_THAT(world->SummaryOf("INDEX_DAMAGED"),
              HasSubstr("create them again"));
  // No listing names the block, so it is removed.
  world->Stop(std::chrono::minutes(11));
  EXPECT_FALSE(world->Found("INDEX_DAMAGED"));
}

TEST_F(BlockStoreTest, AWorkersDoubtIsLookedIntoAndTold) {
  const std::vector<std::string> pieces = {"head", "first", "second"};
  const Digest name = HashOf(pieces[1]);
  World* const world = &Start();
  SessionId worker = world->Join("a");
  const World::Box box = world->Create(SpecOf("j", "/d"));
  ListAgain(world, *world->Asked(worker), pieces, 3);
  EXPECT_TRUE((*world)->DoubtBlock(name, "does not open", world->now()).ok());
  EXPECT_THAT(world->SummaryOf("INDEX_DAMAGED"),
              AllOf(HasSubstr(ToHex(name)), HasSubstr("does not open")));
  EXPECT_FALSE(world->Asked(worker)) << "the block is as it was listed";
  // It was damaged after this process had compared it.
  WriteAll(dir_ / "blocks" / ToHex(name), "fIrst");
  EXPECT_TRUE(absl::IsDataLoss(
      (*world)->DoubtBlock(name, "of another hash", world->now())));
  world->Stop(std::chrono::minutes(2));
  EXPECT_FALSE((*world)->ReadBlock(name, 0, world->now()).ok());
  const auto asked = world->Asked(worker);
  ASSERT_TRUE(asked.has_value());
  ListAgain(world, *asked, pieces, 1);
  EXPECT_FALSE(world->Found("INDEX_DAMAGED"));
}

TEST_F(BlockStoreTest, ADatasetInBlocksIsReadBackAsItWas) {
  Open();
  DatasetIndexed indexed = Dataset("in-blocks", "");
  indexed.index_bytes = 10;
  const std::vector<IndexBlock> blocks = {
      {.sha256 = HashOf("a"), .bytes = 3, .samples = 0},
      {.sha256 = HashOf("b"), .bytes = 7, .samples = 100}};
  indexed.blocks = std::make_shared<const std::vector<IndexBlock>>(blocks);
  ASSERT_TRUE(store_->Append(Event{{}, indexed, {}}).ok());
  Open();
  const absl::StatusOr<State> state = Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_NE(state->FindDataset("in-blocks"), nullptr);
  EXPECT_EQ(*state->FindDataset("in-blocks")->blocks, blocks);
  for (const Event& event : state->Events()) {
    const auto* kept = std::get_if<DatasetIndexed>(&event.kind);
    if (kept == nullptr) continue;
    EXPECT_EQ(*kept->blocks, blocks) << "also when the log is rewritten";
  }
}

}  // namespace
}  // namespace leat::server
