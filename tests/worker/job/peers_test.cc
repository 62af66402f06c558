// SPDX-License-Identifier: Apache-2.0
//
// A job requests records from other workers while that is faster than storage.
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/worker/job/job_fixture.h"
#include "worker/job/peer_records.h"
#include "worker/sample/stored_bytes.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;

// Keeps each record, with one byte.
class FakeAsker final : public RecordAsker {
 public:
  explicit FakeAsker(FakeClock* clock) : clock_(*clock) {}

  absl::StatusOr<PackedRecord> Ask(const Peer& peer, const Digest&,
                                   uint64_t record, uint16_t form_version,
                                   Duration timeout) override {
    ++asked;
    last_version = form_version;
    last_timeout = timeout;
    EXPECT_EQ(peer.address, "there");
    clock_.Advance(takes);
    if (!keeps) return NotFound("record {} is not kept here", record);
    static constexpr std::byte kByte{1};
    StoredSample sample;
    sample.fields.push_back({.bytes = {&kByte, 1}, .shape = {}});
    PackedRecord packed{.record = PackSample(sample)};
    if (form_kind != 0) packed.form.resize(9);
    packed.form_kind = form_kind;
    return packed;
  }

  void Refuse(const Peer&) override { ++refused; }

  uint64_t asked = 0, refused = 0;
  uint16_t last_version = 0;
  uint32_t form_kind = 0;  // of nine bytes; 0: none
  Duration takes = milliseconds(1), last_timeout{};
  bool keeps = true;

 private:
  FakeClock& clock_;
};

class PeerRecordsTest : public ::testing::Test {
 protected:
  PeerRecordsTest() { Tell(std::nullopt); }
  // `peer` owns the first shard, and has owned the third.
  void Tell(std::optional<double> kept_share) {
    OwnedShards owned{.owned = {false, true, true}};
    owned.peers = {
        std::make_shared<const Peer>(Peer{"peer", "there", "", kept_share})};
    owned.peer_of = {1, 0, 1};
    ownership_.Set("dataset", std::move(owned));
  }
  // Returns how many of `records` records come from the peer.
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
                      .kinds = {},
                      .dataset_id = "dataset",
                      .dataset = {},
                      .types = {{.kind = ValueType::Kind::kEncoded}},
                      .kept = cache_.Open(Digest{}, "dataset", "dataset")},
                     clock_};
};

TEST_F(PeerRecordsTest, APeerThatIsFasterThanStorageIsAskedForEachRecord) {
  EXPECT_EQ(Read(1000, milliseconds(15)), 999);  // one measures storage
  EXPECT_EQ(asker_.last_timeout, milliseconds(30));
  EXPECT_EQ(Read(2048, milliseconds(15)), 2046);
}

TEST_F(PeerRecordsTest, APeerThatIsSlowerIsAskedNowAndThen) {
  asker_.takes = milliseconds(3);
  EXPECT_LE(Read(1000, milliseconds(2)), 8 + 16);
  EXPECT_GE(asker_.asked, 8u + 14u);
  // A change is noticed.
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

// Returns a codec that accepts any bytes for a form of the kind.
FormCodec CodecOf(JpegFormKind kind) {
  return {.version = 5,
          .parse =
              [kind](std::vector<std::byte> bytes) -> absl::StatusOr<KeptForm> {
            return KeptForm{.kind = kind, .bytes = bytes.size()};
          },
          .bytes_of = nullptr,
          .is_of = [](const KeptForm&,
                      std::span<const std::byte>) { return true; }};
}

// The peer may be set to keep other forms than this worker.
TEST_F(PeerRecordsTest, FormsOfKindsThatAreNotKeptHereAreLeftOut) {
  const auto get = [&](FormKinds kinds, JpegFormKind parsed) {
    PeerRecords peers({.asker = &asker_,
                       .ownership = &ownership_,
                       .codec = CodecOf(parsed),
                       .kinds = kinds,
                       .dataset_id = "dataset",
                       .dataset = {},
                       .types = {{.kind = ValueType::Kind::kEncoded}},
                       .kept = cache_.Open(Digest{}, "dataset", "dataset")},
                      clock_);
    const std::optional<StoredSample> sample = peers.Get(1, 0);
    EXPECT_TRUE(sample.has_value());
    return sample && sample->form != nullptr;
  };
  constexpr auto kCoefficients = JpegFormKind::kCoefficients;
  asker_.form_kind = 2;
  EXPECT_TRUE(get({.coefficients = true}, kCoefficients));
  EXPECT_EQ(asker_.last_version, 5);
  EXPECT_FALSE(get({.seek_index = true}, kCoefficients));
  EXPECT_EQ(asker_.refused, 0u) << "it is the peer's right";
  EXPECT_FALSE(get({.pixels = true}, kCoefficients));
  EXPECT_EQ(asker_.last_version, 0) << "none is asked for";
  // Data that is not what it claims to be.
  EXPECT_FALSE(get({.coefficients = true}, JpegFormKind::kSeekIndex));
  EXPECT_EQ(asker_.refused, 1u);
  asker_.form_kind = 9;
  EXPECT_FALSE(get({.coefficients = true}, kCoefficients));
  EXPECT_EQ(asker_.refused, 2u);
}

TEST_F(PeerRecordsTest, NobodyIsAskedForAShardWithoutAPeer) {
  EXPECT_FALSE(peers_.Get(3, 1).has_value());
  EXPECT_FALSE(peers_.Get(3, 7).has_value());
  EXPECT_EQ(asker_.asked, 0u);
}

TEST_F(PeerRecordsTest, APeerThatIsToldToKeepNothingIsNotAsked) {
  Tell(0);
  EXPECT_EQ(Read(1000, milliseconds(50)), 0);
  EXPECT_EQ(asker_.asked, 0u);
  // Former shards that it may still keep are a different matter.
  EXPECT_TRUE(peers_.Get(1, 2).has_value());
  EXPECT_TRUE(peers_.GetFrom({"peer", "there", "", 0}, 1).has_value());
  asker_.asked = 0;
  Tell(std::nullopt);
  EXPECT_GE(Read(100, milliseconds(50)), 98);
  EXPECT_GE(asker_.asked, 98u);
}

// Without a reported share, eight misses would end it.
TEST_F(PeerRecordsTest, TheShareThatWasToldIsWhatIsExpected) {
  Tell(1.0 / 8);
  asker_.takes = milliseconds(3);
  asker_.keeps = false;
  Read(100, milliseconds(16));  // an eighth of it pays for no answer
  EXPECT_LE(asker_.asked, PeerRecords::kFirstTold + 2);
  // It has come to keep all.
  Tell(1);
  asker_.keeps = true;
  EXPECT_GE(Read(100, milliseconds(16)), 99);
  // A false share is detected.
  asker_.keeps = false;
  asker_.asked = 0;
  Read(1000, milliseconds(16));
  EXPECT_LE(asker_.asked, 64u);
  asker_.asked = 0;
  Tell(7.0 / 8);
  Read(1000, milliseconds(16));
  EXPECT_LE(asker_.asked, 64u);
  EXPECT_GE(asker_.asked, 16u) << "it begins anew";
}

// The records that have moved are there, whatever peers had until now.
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
  // It had the first shard, and now has all but the last; the third has no
  // other owner.
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
  EXPECT_EQ(ownership.OtherOwnerOf("d", 1).kept_share, std::nullopt);
  EXPECT_TRUE(ownership.OtherOwnerOf("d", 1).may_keep());
  EXPECT_FALSE(ownership.OtherOwnerOf("d", 0).may_keep());
  EXPECT_FALSE(ownership.OtherOwnerOf("e", 1).may_keep());
  for (const double share : {-0.5, 1.5, std::nan("")}) {
    of->set_kept_share(share);
    EXPECT_TRUE(OwnedShards::From(message).OtherOwnerOf(1).may_keep());
    EXPECT_EQ(OwnedShards::From(message).OtherOwnerOf(1).kept_share,
              std::nullopt);
  }
  of->set_kept_share(0);
  EXPECT_FALSE(OwnedShards::From(message).OtherOwnerOf(1).may_keep());
  message.set_owned("x");
  shards = OwnedShards::From(message);
  EXPECT_TRUE(shards.owned.empty() && shards.peers.empty());
}

}  // namespace
}  // namespace leat::worker
