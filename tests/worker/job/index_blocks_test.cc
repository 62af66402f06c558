// SPDX-License-Identifier: Apache-2.0
//
// Indexes in blocks: cut by a listing, fetched when rows need them.
#include <algorithm>
#include <atomic>
#include <latch>
#include <random>
#include <thread>

#include "core/cluster/fault.h"
#include "core/pipeline/long_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/job/fake_job.h"
#include "tests/worker/source/tfrecord/tfrecord_fixture.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "worker/job/block_source.h"
#include "worker/job/index_cache.h"
#include "worker/source/index_blob.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

// Stores the blocks that a listing puts, and returns them like a coordinator.
class Blocks : public IndexSink, public BlockFetcher {
 public:
  absl::Status Add(std::string bytes, uint64_t samples) override {
    const Digest name = HashOf(bytes);
    blocks.push_back(
        {.sha256 = name, .bytes = bytes.size(), .samples = samples});
    kept[name] = std::move(bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                         const std::string& unusable,
                                         MonotonicTime) override {
    ++fetches;
    if (!unusable.empty()) told.push_back(unusable);
    MutexLock lock(&mu);
    const auto it = kept.find(block.sha256);
    if (it == kept.end()) return NotFound("there is no such block");
    return it->second;
  }
  std::string Whole() const {
    std::string whole;
    for (const IndexBlock& block : blocks) whole += kept.at(block.sha256);
    return whole;
  }

  std::vector<IndexBlock> blocks;
  std::map<Digest, std::string> kept;
  Mutex mu;
  std::atomic<int> fetches = 0;
  std::vector<std::string> told;  // of one thread
};

std::vector<std::string> TextsOf(const Source& source, uint64_t sample) {
  const absl::StatusOr<StoredSample> stored = source.Read(sample);
  EXPECT_TRUE(stored.ok()) << stored.status();
  std::vector<std::string> texts;
  if (stored.ok())
    for (const StoredField& field : stored->fields)
      texts.push_back(Text(field));
  return texts;
}

class IndexBlocksTest : public TfrecordTest {
 protected:
  // 12 files of 1 to 12 records; a file without records has no shard.
  Node Records() {
    for (int file = 0; file < 12; ++file) {
      std::string bytes;
      for (int i = 0; i <= file; ++i)
        bytes += Labelled(fmt::format("{}-{}", file, i), 100 * file + i);
      dir_.Write(fmt::format("{:02}.tfrecord", file), bytes);
    }
    dir_.Write("13.tfrecord", "");
    return Reader({dir_.path()});
  }
  // Two classes with images, one without, all of them `repeat` times.
  Node Images(int64_t repeat) {
    for (int i = 0; i < 40; ++i)
      dir_.Write(fmt::format("a/{:02}.jpg", i), fmt::format("a{}", i));
    dir_.Write("b/none.txt", "");
    for (int i = 0; i < 3; ++i)
      dir_.Write(fmt::format("c/{}.jpg", i), fmt::format("c{}", i));
    return {.op = "readers.image_folder",
            .inputs = {},
            .args = {{"path", dir_.path()}, {"repeat", repeat}}};
  }
  BuiltIndex Cut(const Node& reader, uint64_t block_bytes, Blocks* blocks) {
    SourceLimits limits = limits_;
    limits.block_bytes = block_bytes;
    absl::StatusOr<BuiltIndex> built = BuildIndexInto(reader, limits, blocks);
    EXPECT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(built->blob, "");
    return *std::move(built);
  }
  std::unique_ptr<BlockSource> Of(const Node& reader, const BuiltIndex& built,
                                  const Blocks& blocks,
                                  std::shared_ptr<IndexCache> cache) {
    DatasetInfo dataset;
    dataset.name = built.name;
    dataset.fingerprint = built.fingerprint;
    dataset.shards = built.shards;
    EXPECT_TRUE(*CheckIndexBlocks(blocks.blocks, built.shards.num_samples()));
    return std::make_unique<BlockSource>(
        reader, dataset, blocks.blocks,
        blocks.kept.at(blocks.blocks.front().sha256), limits_,
        std::move(cache));
  }
  // Checks that the blocks have the same data as the index in one piece.
  void ExpectSame(const Node& reader, uint64_t block_bytes) {
    SCOPED_TRACE(fmt::format("{} in blocks of {}", reader.op, block_bytes));
    const absl::StatusOr<BuiltIndex> whole = Index(reader);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto slow = OpenSource(reader, whole->blob, limits_);
    ASSERT_TRUE(slow.ok()) << slow.status();
    Blocks blocks;
    const BuiltIndex built = Cut(reader, block_bytes, &blocks);
    EXPECT_EQ(built.fingerprint, whole->fingerprint);
    EXPECT_EQ(built.bytes, whole->bytes);
    EXPECT_EQ(built.classes, whole->classes);
    EXPECT_GT(blocks.blocks.size(), 3u);
    // One after the other they open as usual.
    const auto together = OpenSource(reader, blocks.Whole(), limits_);
    ASSERT_TRUE(together.ok()) << together.status();
    EXPECT_EQ((*together)->fingerprint(), whole->fingerprint);

    const auto cache = std::make_shared<IndexCache>(
        IndexCacheOptions{.max_bytes = 1}, &blocks);
    const auto source = Of(reader, built, blocks, cache);
    ASSERT_EQ(source->num_samples(), (*slow)->num_samples());
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < source->num_samples(); ++i) samples.push_back(i);
    const std::vector<uint64_t> all = samples;
    std::shuffle(samples.begin(), samples.end(), std::minstd_rand(7));
    samples.resize(std::min<size_t>(samples.size(), 200));
    for (const uint64_t i : samples) {
      EXPECT_EQ(TextsOf(*source, i), TextsOf(**slow, i)) << i;
      EXPECT_EQ(source->RecordOf(i), (*slow)->RecordOf(i)) << i;
      EXPECT_EQ(source->Describe(i), (*slow)->Describe(i)) << i;
      const auto place = source->Locate(i), same = (*slow)->Locate(i);
      ASSERT_TRUE(place.ok()) << place.status();
      EXPECT_EQ(std::tie(place->file, place->offset, place->bytes),
                std::tie(same->file, same->offset, same->bytes))
          << i;
      EXPECT_LE(cache->stats().blocks, 1u);
    }
    EXPECT_GT(blocks.fetches, static_cast<int>(blocks.blocks.size()))
        << "what was thrown out has been fetched again";
    const auto many = source->ReadMany(all);
    ASSERT_EQ(many.size(), all.size());
    for (const uint64_t i : all) {
      ASSERT_TRUE(many[i].ok()) << many[i].status();
      EXPECT_EQ(Text(many[i]->fields[0]), TextsOf(**slow, i)[0]);
    }
  }
};

TEST_F(IndexBlocksTest, BlocksOfRecordsSayTheSameAsTheWhole) {
  const Node reader = Records();
  // Files together in a block, one file per block, a file over several.
  for (const uint64_t block_bytes : {300, 100, 16})
    ExpectSame(reader, block_bytes);
}

TEST_F(IndexBlocksTest, BlocksOfArchivesSayTheSameAsTheWhole) {
  // 9 archives of 1 to 9 samples; every third archive lacks the second field.
  Texts paths;
  for (int part = 0; part < 9; ++part) {
    std::string archive;
    for (int i = 0; i <= part; ++i) {
      const std::string key = fmt::format("deep/{}-{}", part, i);
      archive += TarMemberOf(key + ".jpg", std::string(700 * i, 'x') + key);
      if (i % 3 != 2) archive += TarMemberOf(key + ".cls", key);
    }
    paths.push_back(
        dir_.Write(fmt::format("{}.tar", part), archive + TarEnd()));
  }
  const Node reader = {.op = "readers.webdataset",
                       .inputs = {},
                       .args = {{"paths", paths},
                                {"ext", Texts{"jpg", "cls"}},
                                {"types", Texts{"encoded", "bytes"}},
                                {"missing", "empty"}}};
  // Archives together in a block, one archive per block, one over several.
  for (const uint64_t block_bytes : {400, 100, 16})
    ExpectSame(reader, block_bytes);
}

TEST_F(IndexBlocksTest, BlocksOfImagesSayTheSameAsTheWhole) {
  const Node reader = Images(/*repeat=*/3);
  for (const uint64_t block_bytes : {256, 1}) ExpectSame(reader, block_bytes);
}

TEST_F(IndexBlocksTest, BlocksOfAFileListSayTheSameAsTheWhole) {
  std::string list;
  Texts files;
  for (int i = 0; i < 3100; ++i) {
    const std::string name = fmt::format("{}.bin", i);
    files.push_back(dir_.Write(name, name));
    list += fmt::format("{} {}\n", name, i % 7);
  }
  dir_.Write("list.txt", list);
  ExpectSame(
      {.op = "readers.file_list",
       .inputs = {},
       .args = {{"path", dir_.path() + "/list.txt"}, {"root", dir_.path()}}},
      256);
  // For a list that is an argument only the digest goes with each block.
  ExpectSame({.op = "readers.files",
              .inputs = {},
              .args = {{"files", *LongListOf(files)}}},
             256);
}

TEST_F(IndexBlocksTest, TheIdentityDoesNotDependOnWhoListsOrSends) {
  const Node reader = Records();
  Blocks one, other;
  const BuiltIndex built = Cut(reader, 100, &one);
  limits_.listing_threads = 1;
  Cut(reader, 100, &other);
  EXPECT_EQ(one.blocks, other.blocks);
  const Digest identity =
      IndexIdentity(built.fingerprint, built.shards, one.blocks);
  std::vector<IndexBlock> changed = one.blocks;
  std::swap(changed[1], changed[2]);
  EXPECT_NE(IndexIdentity(built.fingerprint, built.shards, changed), identity);
  changed = one.blocks;
  ++changed[1].samples;
  EXPECT_NE(IndexIdentity(built.fingerprint, built.shards, changed), identity);
}

TEST_F(IndexBlocksTest, AFormatWithoutBlocksIsCutAnywhere) {
  dir_.Write("x.bin", std::string(3073, 'a'));
  Blocks blocks;
  const Node reader = {.op = "readers.cifar10",
                       .inputs = {},
                       .args = {{"paths", Texts{dir_.path() + "/x.bin"}}}};
  const absl::StatusOr<BuiltIndex> whole = Index(reader);
  ASSERT_TRUE(whole.ok()) << whole.status();
  Cut(reader, 16, &blocks);
  EXPECT_GT(blocks.blocks.size(), 1u);
  EXPECT_EQ(blocks.Whole(), whole->blob);
  EXPECT_FALSE(*CheckIndexBlocks(blocks.blocks, whole->shards.num_samples()));
}

TEST_F(IndexBlocksTest, AnIndexOverTheLimitEndsItsListing) {
  const Node reader = Records();
  limits_.max_blocks_bytes = 200;
  Blocks blocks;
  const auto built = BuildIndexInto(reader, limits_, &blocks);
  EXPECT_EQ(built.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(Message(built.status())), HasSubstr("200 bytes"));
}

// Whatever is wrong with a block: no sample is bad because of it, and its name
// is reported.
TEST_F(IndexBlocksTest, ABlockThatIsWrongIsNamedAndMakesNoSampleBad) {
  const Node reader = Records();
  Blocks blocks;
  const BuiltIndex built = Cut(reader, 100, &blocks);
  const Digest name = blocks.blocks[1].sha256;
  const std::string good = blocks.kept.at(name);
  const auto cache = std::make_shared<IndexCache>(
      IndexCacheOptions{.wait = std::chrono::milliseconds(50)}, &blocks);
  const auto source = Of(reader, built, blocks, cache);
  const auto expect_error = [&](const char* what) {
    const absl::Status status = source->Read(0).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(FaultOf(status), Fault::kTransient) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(ToHex(name)));
    EXPECT_THAT(std::string(Message(status)), HasSubstr(what));
  };
  std::string wrong = good;
  wrong.back() ^= 1;
  blocks.kept[name] = wrong;
  expect_error("another hash");
  ASSERT_EQ(blocks.told.size(), 1u) << "the coordinator looks, and gives again";
  EXPECT_THAT(blocks.told[0], HasSubstr("another hash"));
  EXPECT_EQ(blocks.fetches, 2);
  blocks.kept[name] = good.substr(1);
  expect_error("another hash");
  blocks.kept[name] = blocks.kept.at(blocks.blocks[2].sha256);
  expect_error("another hash");
  blocks.kept.erase(name);
  expect_error("there is no such block");
  EXPECT_EQ(TextsOf(*source, built.shards.num_samples() - 1)[0], "11-11")
      << "other blocks are not concerned";
  blocks.kept[name] = good;
  EXPECT_EQ(TextsOf(*source, 0)[0], "0-0") << "an error is not remembered";
}

TEST_F(IndexBlocksTest, ABlockOfOtherSamplesThanTheIndexSaysIsRefused) {
  const Node reader = Records();
  Blocks blocks;
  const BuiltIndex built = Cut(reader, 100, &blocks);
  // The sum is unchanged.
  ASSERT_GT(blocks.blocks[2].samples, 1u);
  ++blocks.blocks[1].samples;
  --blocks.blocks[2].samples;
  const auto cache = std::make_shared<IndexCache>(IndexCacheOptions{}, &blocks);
  const absl::Status status =
      Of(reader, built, blocks, cache)->Read(0).status();
  EXPECT_EQ(FaultOf(status), Fault::kTransient);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("samples, and the block"));
  ASSERT_EQ(blocks.told.size(), 1u);
  EXPECT_THAT(blocks.told[0], HasSubstr("samples, and the block"));
}

TEST_F(IndexBlocksTest, ABlockIsFetchedOnceHoweverManyWaitForIt) {
  const Node reader = Records();
  Blocks blocks;
  const BuiltIndex built = Cut(reader, 100, &blocks);
  const auto cache = std::make_shared<IndexCache>(IndexCacheOptions{}, &blocks);
  const auto source = Of(reader, built, blocks, cache);
  std::vector<std::thread> threads;
  {
    MutexLock hold(&blocks.mu);  // the first fetch does not end before
    std::latch begun(8);
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        begun.count_down();
        EXPECT_EQ(TextsOf(*source, 0)[0], "0-0");
      });
    begun.wait();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(blocks.fetches, 1);
  EXPECT_EQ(cache->stats().fetched_total, 1u);
}

TEST_F(IndexBlocksTest, StoppingEndsTheWaitForABlock) {
  class Never : public BlockFetcher {
   public:
    absl::StatusOr<std::string> FetchBlock(const IndexBlock&,
                                           const std::string&,
                                           MonotonicTime) override {
      begun = true;
      begun.notify_all();
      return Unavailable("the coordinator is away");
    }
    std::atomic<bool> begun = false;
  } never;
  const auto cache = std::make_shared<IndexCache>(
      IndexCacheOptions{.wait = std::chrono::hours(1)}, &never);
  const IndexBlock block{.sha256 = HashOf("x"), .bytes = 1, .samples = 1};
  absl::Status status;
  std::thread reads(
      [&] { status = cache->Get(1, 1, block, nullptr).status(); });
  never.begun.wait(false);
  cache->Stop();
  reads.join();
  EXPECT_EQ(FaultOf(status), Fault::kTransient);
}

// 10⁹ records in a thousand files; each block declares a million.
TEST_F(IndexBlocksTest, AThousandMillionRecordsAreLookedUpInABoundedMemory) {
  constexpr uint64_t kFiles = 1000, kRecords = 1'000'000, kSize = 300;
  const Node reader = Reader({dir_.path()});
  Blocks blocks;
  SourceLimits limits = limits_;
  limits.blocks = &blocks;
  BlobWriter writer(limits);
  stored::v1::TfrecordHead head;
  head.add_paths(dir_.path());
  ASSERT_TRUE(writer.Add(head).ok());
  stored::v1::TfrecordFile part;
  part.mutable_file()->set_name(dir_.path() + "/none.tfrecord");
  part.mutable_file()->set_bytes(kRecords * kSize);
  part.mutable_file()->set_identity("size=300000000 mtime_ns=1");
  part.mutable_sizes()->Resize(kRecords, kSize);
  ASSERT_TRUE(writer.Add(part, kRecords).ok());
  ASSERT_TRUE(writer.Finish().ok());
  ASSERT_EQ(blocks.blocks.size(), 2u);
  blocks.blocks.resize(1 + kFiles, blocks.blocks[1]);
  BuiltIndex built;
  built.name = "large";
  built.shards =
      *ShardTable::FromSizes(std::vector<uint64_t>(kFiles, kRecords));
  const uint64_t bound = 4 * blocks.blocks[1].bytes;  // two blocks
  const auto cache = std::make_shared<IndexCache>(
      IndexCacheOptions{.max_bytes = bound}, &blocks);
  const auto source = Of(reader, built, blocks, cache);
  EXPECT_EQ(source->num_samples(), kFiles * kRecords);
  std::minstd_rand random(7);
  for (int i = 0; i < 12; ++i) {
    const uint64_t sample =
        std::uniform_int_distribution<uint64_t>(0, 999'999'999)(random);
    EXPECT_FALSE(source->Read(sample).ok()) << "there is no such file";
    EXPECT_THAT(source->Describe(sample),
                HasSubstr(fmt::format("record {} at {}", sample % kRecords,
                                      sample % kRecords * kSize)));
    EXPECT_LE(cache->stats().bytes, bound);
  }
  EXPECT_GE(cache->stats().fetched_total, 10u);
  RecordProperty("index_bytes", static_cast<int>(TotalBytes(blocks.blocks)));
  RecordProperty("held_bytes", static_cast<int>(cache->stats().bytes));
}

}  // namespace
}  // namespace leat::worker
