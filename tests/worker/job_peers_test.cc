// SPDX-License-Identifier: Apache-2.0
//
// When a job asks other workers for records: while that is faster than storage.
#include <functional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/worker/job_fixture.h"
#include "worker/peer_records.h"
#include "worker/stored_bytes.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;

// Keeps each record, of one byte.
class FakeAsker final : public RecordAsker {
 public:
  explicit FakeAsker(FakeClock* clock) : clock_(*clock) {}

  absl::StatusOr<PackedRecord> Ask(const Peer& peer, const Digest&,
                                   uint64_t record, uint16_t,
                                   Duration timeout) override {
    ++asked;
    last_timeout = timeout;
    EXPECT_EQ(peer.address, "there");
    clock_.Advance(takes);
    if (!keeps) return NotFound("record {} is not kept here", record);
    static constexpr std::byte kByte{1};
    StoredSample sample;
    sample.fields.push_back({.bytes = {&kByte, 1}, .shape = {}});
    return PackedRecord{.record = PackSample(sample)};
  }

  void Refuse(const Peer&) override { ++refused; }

  uint64_t asked = 0, refused = 0;
  Duration takes = milliseconds(1), last_timeout{};
  bool keeps = true;

 private:
  FakeClock& clock_;
};

class PeerRecordsTest : public testing::Test {
 protected:
  PeerRecordsTest() {
    OwnedShards owned{.owned = {false, true}};
    owned.peers = {std::make_shared<const Peer>(Peer{"peer", "there", ""})};
    owned.peer_of = {1, 0};
    ownership_.Set("dataset", std::move(owned));
  }
  // How many of so many records come from the peer.
  int Read(int records, Duration storage_takes) {
    int found = 0;
    for (int i = 0; i < records; ++i) {
      if (peers_.Get(static_cast<uint64_t>(i), 0)) {
        ++found;
        continue;
      }
      peers_.CountRead(storage_takes);
    }
    return found;
  }

  FakeClock clock_;
  FakeAsker asker_{&clock_};
  Ownership ownership_;
  SampleCache cache_{0};
  PeerRecords peers_{{.asker = &asker_,
                      .ownership = &ownership_,
                      .codec = {},
                      .dataset_id = "dataset",
                      .dataset = {},
                      .types = {{.kind = ValueType::Kind::kEncoded}},
                      .kept = cache_.Open(Digest{}, "dataset", "dataset")},
                     clock_};
};

TEST_F(PeerRecordsTest, APeerThatIsFasterThanStorageIsAskedForEachRecord) {
  EXPECT_EQ(Read(1000, milliseconds(15)), 999);  // one says what storage takes
  EXPECT_EQ(asker_.last_timeout, milliseconds(30));
  EXPECT_EQ(Read(2048, milliseconds(15)), 2046);
}

TEST_F(PeerRecordsTest, APeerThatIsSlowerIsAskedNowAndThen) {
  asker_.takes = milliseconds(3);
  EXPECT_LE(Read(1000, milliseconds(2)), 8 + 16);
  EXPECT_GE(asker_.asked, 8u + 14u);
  // It is seen when that changes.
  asker_.takes = milliseconds(1);
  Read(2048, milliseconds(2));
  EXPECT_GE(Read(100, milliseconds(2)), 99);
  asker_.takes = milliseconds(9);
  Read(100, milliseconds(2));
  EXPECT_LE(Read(100, milliseconds(2)), 2);
}

TEST_F(PeerRecordsTest, APeerThatKeepsNothingIsAskedNowAndThen) {
  asker_.keeps = false;
  EXPECT_EQ(Read(6400, milliseconds(50)), 0);
  EXPECT_LE(asker_.asked, 8u + 100u);
  asker_.keeps = true;
  Read(64 * 8, milliseconds(50));
  EXPECT_GE(Read(100, milliseconds(50)), 99);
}

TEST_F(PeerRecordsTest, NobodyIsAskedForAShardWithoutAPeer) {
  EXPECT_FALSE(peers_.Get(3, 1).has_value());
  EXPECT_FALSE(peers_.Get(3, 7).has_value());
  EXPECT_EQ(asker_.asked, 0u);
}

// What has moved is there, whatever peers had until now.
TEST_F(PeerRecordsTest, OfShardsThatMovedAPeerIsAskedIfItIsAsFast) {
  const Peer peer{"peer", "there", ""};
  asker_.keeps = false;
  Read(100, milliseconds(2));
  asker_.keeps = true;
  EXPECT_TRUE(peers_.GetFrom(peer, 1).has_value());
  asker_.takes = milliseconds(50);
  EXPECT_TRUE(peers_.GetFrom(peer, 2).has_value());
  EXPECT_FALSE(peers_.GetFrom(peer, 3).has_value());
}

TEST(OwnedShardsTest, WhatHasMovedIsWithWhoOwnedItBefore) {
  const auto peer = [](const char* name) {
    return std::make_shared<const Peer>(Peer{name, name, ""});
  };
  // It had the first shard, and now has all but the last; nobody else has the
  // third.
  const OwnedShards before{.owned = {true, false, false, false, false},
                           .peers = {peer("before")},
                           .peer_of = {1, 1, 0, 0, 1}};
  const OwnedShards now{.owned = {true, true, true, true, false},
                        .peers = {peer("now")},
                        .peer_of = {1, 1, 0, 1, 1}};
  const std::vector<MovedShard> moved = MovedBetween(before, now);
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_EQ(moved[0].shard, 1u);
  EXPECT_EQ(moved[0].from->name, "before");
  EXPECT_EQ(moved[1].shard, 3u);
  EXPECT_EQ(moved[1].from->name, "now");
  EXPECT_TRUE(MovedBetween(now, now).empty());
  EXPECT_EQ(MovedBetween({}, now).size(), 3u);
}

TEST(OwnedShardsTest, MalformedMessagesNameNobody) {
  v1::OwnedShards message;
  message.set_num_shards(9);
  message.set_owned(std::string("\1\1", 2));
  auto* of = message.add_peers();
  of->mutable_peer()->set_name("a");
  of->add_shards(1);
  of->add_shards(9);
  of->add_shards(1u << 31);
  OwnedShards shards = OwnedShards::From(message);
  EXPECT_EQ(shards.owned, (std::vector<bool>{1, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(shards.peer_of, (std::vector<uint32_t>{0, 1, 0, 0, 0, 0, 0, 0, 0}));
  Ownership ownership;
  ownership.Set("d", std::move(shards));
  EXPECT_EQ(ownership.PeerOf("d", 1)->name, "a");
  EXPECT_EQ(ownership.PeerOf("d", 0), nullptr);
  EXPECT_EQ(ownership.PeerOf("d", 1u << 31), nullptr);
  EXPECT_EQ(ownership.PeerOf("e", 1), nullptr);
  message.set_owned("x");
  shards = OwnedShards::From(message);
  EXPECT_TRUE(shards.owned.empty() && shards.peers.empty());
}

}  // namespace
}  // namespace leat::worker
