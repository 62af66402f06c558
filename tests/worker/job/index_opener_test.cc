// SPDX-License-Identifier: Apache-2.0
//
// Arrangements over the blocks that a coordinator keeps.
#include "worker/job/index_opener.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/arranged/arrange.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

// Keeps the blocks of listings, and gives them back like a coordinator.
class FakeIndexes final : public IndexFetcher {
 public:
  // Stores an index, and completes `dataset` by it.
  void Keep(const BuiltIndex& built,
            std::vector<std::pair<std::string, uint64_t>> blocks,
            DatasetInfo* dataset) {
    FetchedBlocks index;
    for (auto& [bytes, samples] : blocks) {
      const Digest name = HashOf(bytes);
      index.blocks.push_back(
          {.sha256 = name, .bytes = bytes.size(), .samples = samples});
      bytes_[name] = std::move(bytes);
    }
    dataset->fingerprint = built.fingerprint;
    dataset->shards = built.shards;
    dataset->name = built.name;
    index.identity =
        IndexIdentity(built.fingerprint, built.shards, index.blocks);
    indexes_[dataset->id] = std::move(index);
  }
  void Lose() { bytes_.clear(); }

  std::vector<absl::StatusOr<FetchedBlocks>> FetchBlocks(
      std::span<const DatasetInfo* const> datasets) override {
    return {indexes_.at(datasets[0]->id)};
  }
  absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                         const std::string&,
                                         MonotonicTime) override {
    const auto it = bytes_.find(block.sha256);
    if (it == bytes_.end()) return NotFound("there is no such block");
    return it->second;
  }

 private:
  std::map<std::string, FetchedBlocks> indexes_;
  std::map<Digest, std::string> bytes_;
};

class BlockList final : public IndexSink {
 public:
  absl::Status Add(std::string bytes, uint64_t samples) override {
    blocks.emplace_back(std::move(bytes), samples);
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, uint64_t>> blocks;
};

class IndexOpenerTest : public ::testing::Test {
 protected:
  IndexOpenerTest() {
    for (int i = 0; i < 3000; ++i)
      dir_.Write(fmt::format("k/{:04}.jpg", i), std::to_string(i));
    reader_ = {.op = "readers.image_folder",
               .inputs = {},
               .args = {{"path", dir_.path()}, {"repeat", int64_t{1}}}};
    BlockList blocks;
    SourceLimits limits;
    limits.block_bytes = 4096;
    const auto built = BuildIndexInto(reader_, limits, &blocks);
    EXPECT_TRUE(built.ok()) << built.status();
    base_.id = "base";
    indexes_.Keep(*built, std::move(blocks.blocks), &base_);
  }

  // Lists an arrangement in blocks of `block_bytes`.
  DatasetInfo Arranged(const Arrangement& arrangement, uint64_t block_bytes) {
    BlockList blocks;
    SourceLimits limits;
    limits.blocks = &blocks;
    limits.block_bytes = block_bytes;
    const auto built = Arrange(
        arrangement, {.base = base_, .reader = reader_, .source = *Open(base_)},
        limits);
    EXPECT_TRUE(built.ok()) << built.status();
    DatasetInfo dataset;
    dataset.id = CanonicalText(arrangement);
    dataset.base = std::make_shared<const DatasetInfo>(base_);
    indexes_.Keep(*built, std::move(blocks.blocks), &dataset);
    return dataset;
  }

  std::shared_ptr<const Source> Open(const DatasetInfo& dataset) {
    const IndexOpener opener({.fetcher = &indexes_, .cache = cache_},
                             [](Duration) { return false; });
    std::shared_ptr<const Source> base;
    if (dataset.base != nullptr) base = Open(*dataset.base);
    const auto source = opener.Open(dataset, reader_, base);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *source : nullptr;
  }

  TempDir dir_;
  Node reader_;
  FakeIndexes indexes_;
  std::shared_ptr<IndexCache> cache_ = std::make_shared<IndexCache>(
      IndexCacheOptions{.wait = Duration::zero()}, &indexes_);
  DatasetInfo base_;
};

// The numbers of records are those of the base, however the index is cut.
TEST_F(IndexOpenerTest, AnArrangementReadsItsBase) {
  const Arrangement odd{.samples = {.begin = 1, .end = 3000, .step = 2}};
  for (const uint64_t block_bytes : {uint64_t{200}, kIndexBlockBytes}) {
    const auto source = Open(Arranged(odd, block_bytes));
    ASSERT_NE(source, nullptr);
    EXPECT_EQ(source->num_samples(), 1500u);
    EXPECT_EQ(source->num_records(), 3000u);
    for (const uint64_t sample : {0, 1, 700, 1499}) {
      EXPECT_EQ(*source->FindRecord(sample), 2 * sample + 1);
      EXPECT_EQ(source->RecordOf(sample), 2 * sample + 1);
      const auto stored = source->Read(sample);
      ASSERT_TRUE(stored.ok()) << stored.status();
      EXPECT_EQ(stored->fields[0].bytes.size(),
                std::to_string(2 * sample + 1).size());
      EXPECT_THAT(source->Describe(sample),
                  HasSubstr(fmt::format("{:04}.jpg", 2 * sample + 1)));
    }
    EXPECT_EQ(source->ReadMany(std::vector<uint64_t>{2, 1499}).size(), 2u);
  }
}

// A record that no block tells is not confused with another one.
TEST_F(IndexOpenerTest, WithoutItsBlockARecordHasNoNumber) {
  const auto source = Open(Arranged(
      {.samples = {.begin = 0, .end = 3000, .step = 1}}, /*block_bytes=*/200));
  ASSERT_NE(source, nullptr);
  indexes_.Lose();
  EXPECT_EQ(source->RecordOf(2500), Source::kNoRecord);
  EXPECT_TRUE(absl::IsUnavailable(source->FindRecord(2500).status()));
  EXPECT_TRUE(absl::IsUnavailable(source->Read(2500).status()));
}

}  // namespace
}  // namespace leat::worker
