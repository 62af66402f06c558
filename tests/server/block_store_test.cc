// SPDX-License-Identifier: Apache-2.0
//
// Blocks of indexes beside a durable store.
#include "server/block_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "server/sqlite_store.h"
#include "tests/server/world.h"

namespace leat::server {
namespace {

namespace fs = std::filesystem;

class BlockStoreTest : public testing::Test {
 protected:
  BlockStoreTest() {
    std::string name = (fs::temp_directory_path() / "leat-blocks-XXXXXX");
    root_ = mkdtemp(name.data());
    dir_ = root_ / "state";
  }
  ~BlockStoreTest() override { fs::remove_all(root_); }

  // Again, if it is open.
  void Open() {
    store_.reset();
    absl::StatusOr<std::unique_ptr<SqliteStore>> store =
        SqliteStore::Open(dir_, {});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
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
};

TEST_F(BlockStoreTest, BlocksSurviveWhileTheyAreWantedAndWhole) {
  Open();
  const WallTime now = WallTime(std::chrono::hours(100));
  const std::string bytes(3000, 'b');
  const Digest name = HashOf(bytes), other = HashOf("other");
  ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok());
  ASSERT_TRUE(store_->blocks().Put(name, bytes, now).ok()) << "twice";
  ASSERT_TRUE(store_->blocks().Put(other, "other", now).ok());
  // What a process was writing when it died.
  const fs::path blocks = dir_ / "blocks";
  WriteAll(blocks / (ToHex(name) + ".1.tmp"), "half");
  WriteAll(blocks / "readme", "nobody's");
  Open();
  EXPECT_FALSE(fs::exists(blocks / (ToHex(name) + ".1.tmp")));
  EXPECT_EQ(*store_->blocks().Read(name, 0, 1000), bytes.substr(0, 1000));
  EXPECT_EQ(*store_->blocks().Read(name, 2900, 1000), bytes.substr(0, 100));
  EXPECT_EQ(*store_->blocks().Read(name, 3000, 1000), "");
  EXPECT_FALSE(store_->blocks().Find(name, 2999, now)) << "another size";
  EXPECT_TRUE(
      absl::IsNotFound(store_->blocks().Read(HashOf("none"), 0, 1).status()));
  // Found lately, wanted, neither.
  const auto collect = [&](const std::set<Digest>& live, Duration after) {
    return *store_->blocks().Collect(
        live, now + std::chrono::duration_cast<WallTime::duration>(after));
  };
  EXPECT_EQ(collect({}, seconds(0)), 0u);
  EXPECT_TRUE(store_->blocks().Find(name, 3000, now + seconds(60)));
  EXPECT_EQ(collect({}, seconds(1)), 1u);
  EXPECT_FALSE(store_->blocks().Read(other, 0, 1).ok());
  EXPECT_EQ(collect({name}, seconds(1000)), 0u);
  EXPECT_EQ(collect({}, seconds(1000)), 1u);
  EXPECT_TRUE(fs::exists(blocks / "readme"));
}

TEST_F(BlockStoreTest, ADatasetInBlocksIsReadBackAsItWas) {
  Open();
  DatasetIndexed indexed = Dataset("in-blocks", "");
  indexed.index_bytes = 10;
  const std::vector<IndexBlock> blocks = {
      {.sha256 = HashOf("a"), .bytes = 3, .samples = 0},
      {.sha256 = HashOf("b"), .bytes = 7, .samples = 100}};
  indexed.blocks = std::make_shared<const std::vector<IndexBlock>>(blocks);
  ASSERT_TRUE(store_->Append(Event{{}, indexed, {}}, {}).ok());
  ASSERT_TRUE(
      store_->Append(Event{{}, Dataset("whole", "index"), {}}, "index").ok());
  Open();
  const absl::StatusOr<State> state = Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_NE(state->FindDataset("in-blocks"), nullptr);
  EXPECT_EQ(*state->FindDataset("in-blocks")->blocks, blocks);
  EXPECT_EQ(state->FindDataset("whole")->blocks, nullptr);
  EXPECT_EQ(*store_->ReadIndex("whole", 0), "index")
      << "as releases without blocks kept it";
  for (const Event& event : state->Events()) {
    const auto* kept = std::get_if<DatasetIndexed>(&event.kind);
    if (kept == nullptr || kept->dataset.id != "in-blocks") continue;
    EXPECT_EQ(*kept->blocks, blocks) << "also when the log is rewritten";
  }
}

}  // namespace
}  // namespace leat::server
