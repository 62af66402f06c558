// SPDX-License-Identifier: Apache-2.0
#include "worker/job/long_lists.h"

#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/pipeline/long_list.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

// This fake returns blocks like a coordinator.
class ListBlocks final : public BlockFetcher {
 public:
  absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                         const std::string&,
                                         MonotonicTime) override {
    ++fetches;
    if (busy-- > 0) return Unavailable("too many read blocks");
    const auto it = kept.find(block.sha256);
    if (it == kept.end()) return NotFound("there is no such block");
    return it->second;
  }
  void Keep(const LongList& list) {
    for (size_t i = 0; i < list.blocks.size(); ++i)
      kept[list.blocks[i]] = BlockOf(list, i);
  }

  std::map<Digest, std::string> kept;
  int fetches = 0;
  int busy = 0;
};

LongList WithoutValues(LongList list) {
  list.values = nullptr;
  return list;
}

class LongListsTest : public ::testing::Test {
 protected:
  LongListsTest() : labels_(140'000) {
    std::iota(labels_.begin(), labels_.end(), 0);
    files_.assign(90'000, "/photos/a.jpg");
    blocks_.Keep(Files());
    blocks_.Keep(Labels());
  }
  LongList Files() const { return *LongListOf(files_); }
  LongList Labels() const { return *LongListOf(labels_); }
  // Returns a reader with the digests, after its lists were fetched.
  absl::StatusOr<Node> Fetched(const LongList& files, const LongList& labels) {
    Node reader{.op = "readers.files",
                .args = {{"files", WithoutValues(files)},
                         {"labels", WithoutValues(labels)},
                         {"root", std::string()}}};
    RETURN_IF_ERROR(FetchLongLists(
        &blocks_, std::chrono::seconds(5), [](Duration) { return true; },
        &reader));
    return reader;
  }

  std::vector<int64_t> labels_;
  std::vector<std::string> files_;
  ListBlocks blocks_;
};

TEST_F(LongListsTest, ValuesComeBlockByBlock) {
  blocks_.busy = 2;
  const absl::StatusOr<Node> reader = Fetched(Files(), Labels());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(TextsOf(std::get<LongList>(reader->args.at("files"))), files_);
  EXPECT_EQ(IntsOf(std::get<LongList>(reader->args.at("labels"))), labels_);
  EXPECT_EQ(blocks_.fetches,
            Files().blocks.size() + Labels().blocks.size() + 2);
}

TEST_F(LongListsTest, WhatIsNotWhatTheDigestSaysIsRefused) {
  const LongList labels = Labels();
  LongList lies = labels;
  lies.first[0] = "17";
  ASSERT_TRUE(CompleteLongList(&lies).ok());
  absl::Status status = Fetched(Files(), lies).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("readers.files: argument labels: 140000 entries came"));
  blocks_.kept[labels.blocks[1]][7] ^= 1;
  status = Fetched(Files(), labels).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("another hash"));
  blocks_.kept.erase(labels.blocks[1]);
  EXPECT_TRUE(absl::IsNotFound(Fetched(Files(), labels).status()));
}

// The client checks nothing.
TEST_F(LongListsTest, EntriesThatTheArgumentDoesNotTakeAreRefused) {
  labels_[139'999] = -1;
  files_[7] = "\xff";
  blocks_.Keep(Labels());
  EXPECT_THAT(std::string(Message(Fetched(Files(), Labels()).status())),
              HasSubstr("argument files: "))
      << "not kept yet";
  blocks_.Keep(Files());
  EXPECT_THAT(std::string(Message(Fetched(Files(), Labels()).status())),
              HasSubstr("argument files: entry 7: is no UTF-8"));
  files_[7] = "/a";
  blocks_.Keep(Files());
  EXPECT_THAT(std::string(Message(Fetched(Files(), Labels()).status())),
              HasSubstr("argument labels: entry 139999: -1, want integers"));
}

TEST_F(LongListsTest, WhoStopsIsNotWaitedFor) {
  blocks_.busy = 1000;
  Node reader{.op = "readers.files",
              .args = {{"files", WithoutValues(Files())}}};
  EXPECT_TRUE(absl::IsUnavailable(FetchLongLists(
      &blocks_, std::chrono::minutes(5), [](Duration) { return false; },
      &reader)));
  EXPECT_EQ(blocks_.fetches, 1);
}

}  // namespace
}  // namespace leat::worker
