// SPDX-License-Identifier: Apache-2.0
//
// Records that one request to storage reads are requested from their owner,
// while that is faster than the request. Rows equal those from storage,
// whatever the owner does.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/job_fixture.h"
#include "worker/job/peer_records.h"
#include "worker/sample/stored_bytes.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kFiles = 6;  // of JobTest
constexpr Duration kRequestTakes = milliseconds(60);

// Storage whose requests take the same time, however many records they read.
class RequestSource final : public FormatSource {
 public:
  RequestSource(std::shared_ptr<const Source> source, FakeClock* clock)
      : source_(std::move(source)), clock_(*clock) {}
  uint64_t num_samples() const override { return source_->num_samples(); }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    alone.push_back(sample);
    clock_.Advance(kRequestTakes);
    if (cut == sample) return Unavailable("cut off");
    return source_->Read(sample);
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    requests.emplace_back(samples.begin(), samples.end());
    clock_.Advance(kRequestTakes);
    std::vector<absl::StatusOr<StoredSample>> stored;
    for (const uint64_t sample : samples)
      stored.push_back(cut == sample ? Unavailable("cut off")
                                     : source_->Read(sample));
    return stored;
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits&) const override {
    size_t count = 1;
    while (count < samples.size() &&
           samples[count] <= samples[count - 1] + 1 + gap)
      ++count;
    return count;
  }
  const Digest& fingerprint() const override { return source_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return source_->Describe(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return source_->Locate(sample);
  }

  uint64_t gap = kFiles;        // records that a request spans
  std::optional<uint64_t> cut;  // a record that cannot be read
  mutable std::vector<std::vector<uint64_t>> requests;
  mutable std::vector<uint64_t> alone;

 private:
  const std::shared_ptr<const Source> source_;
  FakeClock& clock_;
};

// It owns all shards, and answers with the records that it keeps.
class OwnerAsker final : public RecordAsker {
 public:
  enum class Answers { kTruly, kWrongly, kNever };

  OwnerAsker(std::shared_ptr<const Source> source, FakeClock* clock)
      : source_(std::move(source)), clock_(*clock) {}
  absl::StatusOr<PackedRecord> Ask(const Peer&, const Digest&, uint64_t record,
                                   uint16_t, Duration timeout) override {
    asked.push_back(record);
    if (answers == Answers::kNever) {
      clock_.Advance(timeout);
      return absl::DeadlineExceededError("it hangs");
    }
    clock_.Advance(takes);
    if (!keeps.contains(record)) return NotFound("record {}", record);
    StoredSample sample = *source_->Read(record);
    if (answers == Answers::kWrongly) sample.fields.pop_back();
    return PackedRecord{.record = PackSample(sample)};
  }
  void Refuse(const Peer&) override { ++refused; }

  Answers answers = Answers::kTruly;
  Duration takes = milliseconds(1);
  std::set<uint64_t> keeps = {0, 1, 2, 3, 4, 5};
  std::vector<uint64_t> asked;
  int refused = 0;

 private:
  const std::shared_ptr<const Source> source_;
  FakeClock& clock_;
};

class PeersTogetherTest : public JobTest {
 protected:
  PeersTogetherTest() {
    Tell(std::nullopt);
    context_.cache = &nothing_;
    context_.asker = &owner_;
    context_.read_attempts = 1;
    auto runtime = JobRuntime::Create(job_.info, {source_}, &context_);
    EXPECT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *std::move(runtime);
  }
  // Reports to the worker that the owner keeps this share of the records.
  void Tell(std::optional<double> kept_share) {
    const uint32_t shards = job_.info.datasets[0].shards.num_shards();
    OwnedShards owned{.owned = std::vector<bool>(shards)};
    owned.peers = {
        std::make_shared<const Peer>(Peer{"peer", "there", "", kept_share})};
    owned.peer_of.assign(shards, 1);
    ownership_.Set("dataset", std::move(owned));
  }
  // Reads these together, and checks that rows are those of the files.
  void Read(const std::vector<uint64_t>& samples = {0, 1, 2, 3, 4, 5}) {
    std::vector<RowOf> rows;
    for (const uint64_t sample : samples) rows.push_back({.sample = sample});
    const std::vector<RowRecords> records = runtime_->ReadTogether(rows);
    ASSERT_EQ(records.size(), rows.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto row = Row(*runtime_, samples[i], nullptr, &records[i]);
      ASSERT_TRUE(row.ok()) << row.status();
      ASSERT_EQ(*row, static_cast<char>('a' + samples[i]));
    }
  }
  // Returns the time that the batch takes.
  Duration Time(const std::vector<uint64_t>& samples = {0, 1, 2, 3, 4, 5}) {
    const MonotonicTime began = clock_.Now();
    Read(samples);
    return clock_.Now() - began;
  }

  FakeClock clock_;
  SampleCache nothing_{0, nullptr, clock_};
  const FakeJob job_ = Job();
  const std::shared_ptr<const Source> files_ =
      *OpenSource(job_.info.spec.pipeline.nodes[0], job_.blob, SourceLimits{});
  const std::shared_ptr<RequestSource> source_ =
      std::make_shared<RequestSource>(files_, &clock_);
  OwnerAsker owner_{files_, &clock_};
  JobTable::Runtime runtime_;
};

TEST_F(PeersTogetherTest, RecordsThatTheOwnerKeepsTakeNoRequest) {
  for (int i = 0; i < 100; ++i) Read();
  EXPECT_THAT(source_->requests, ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5)))
      << "to know what it takes";
  EXPECT_TRUE(source_->alone.empty());
  EXPECT_EQ(owner_.asked.size(), 99 * kFiles);
}

TEST_F(PeersTogetherTest, WhatTheOwnerDoesNotKeepComesByOneRequest) {
  owner_.keeps = {0, 1, 3};
  Read();
  source_->requests.clear();
  Read();
  EXPECT_THAT(source_->requests, ElementsAre(ElementsAre(2, 4, 5)));
  // If that would be several requests, the records in between are read once
  // more.
  source_->gap = 0;
  Read();
  EXPECT_THAT(source_->requests.back(), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(source_->requests.size(), 2u);
  EXPECT_TRUE(source_->alone.empty());
}

// Requesting a part saves nothing if the request is still made.
TEST_F(PeersTogetherTest, AnswersForAPartDoNotPay) {
  owner_.keeps = {0, 1, 3};
  for (int i = 0; i < 1000; ++i) Read();
  EXPECT_LE(
      owner_.asked.size(),
      (PeerRecords::kFirstTogether + 1000 / PeerRecords::kOneOf + 1) * kFiles);
  EXPECT_GE(owner_.asked.size(), 1000 / PeerRecords::kOneOf * kFiles);
  // A change is noticed.
  owner_.keeps.insert({2, 4, 5});
  for (int i = 0; i < 1000; ++i) Read();
  owner_.asked.clear();
  for (int i = 0; i < 10; ++i) Read();
  EXPECT_GE(owner_.asked.size(), 9 * kFiles);
}

TEST_F(PeersTogetherTest, SixSlowAnswersAreComparedAsSix) {
  owner_.takes = kRequestTakes / 4;  // faster than a request
  for (int i = 0; i < 200; ++i) Read();
  EXPECT_LE(owner_.asked.size(), (PeerRecords::kFirstTogether + 4) * kFiles);
  for (int i = 0; i < 10; ++i) {
    owner_.asked.clear();
    const Duration took = Time();
    EXPECT_LE(took, owner_.asked.empty() ? kRequestTakes : 3 * kRequestTakes);
  }
}

// Each of two records is half of a request, each of six a sixth.
TEST_F(PeersTogetherTest, AnswersPayForTwoRecordsAndNotForSix) {
  owner_.takes = kRequestTakes / 5;
  for (int i = 0; i < 20; ++i) Read({2, 3});
  EXPECT_EQ(source_->requests.size(), 1u);
  owner_.asked.clear();
  for (int i = 0; i < 20; ++i) Read();
  EXPECT_EQ(source_->requests.size(), 21u);
  EXPECT_TRUE(owner_.asked.empty());
}

TEST_F(PeersTogetherTest, AnOwnerThatHangsIsWaitedForOnceABatch) {
  Read();
  owner_.answers = OwnerAsker::Answers::kNever;
  EXPECT_LE(Time(), 3 * kRequestTakes);
  EXPECT_THAT(owner_.asked, ElementsAre(0));
  EXPECT_EQ(source_->requests.size(), 2u);
  EXPECT_THAT(source_->requests.back(), ElementsAre(0, 1, 2, 3, 4, 5));
  for (int i = 0; i < 200; ++i) Read();
  EXPECT_LE(owner_.asked.size(), PeerRecords::kFirstTogether + 4);
  EXPECT_EQ(source_->requests.size(), 202u);
  EXPECT_TRUE(source_->alone.empty());
}

TEST_F(PeersTogetherTest, WhatIsNoRecordOfTheDatasetIsRefused) {
  Read();
  owner_.answers = OwnerAsker::Answers::kWrongly;
  Read();
  EXPECT_EQ(owner_.refused, 1);
  EXPECT_THAT(owner_.asked, ElementsAre(0));
  EXPECT_THAT(source_->requests, Each(ElementsAre(0, 1, 2, 3, 4, 5)));
  EXPECT_TRUE(source_->alone.empty());
}

// The owner is not asked again for records that storage retries.
TEST_F(PeersTogetherTest, ARecordThatCannotBeReadFailsAsItDoesAlone) {
  Read();
  owner_.keeps = {0, 1, 2};
  source_->cut = 4;
  const RowOf rows[] = {{.sample = 1}, {.sample = 4}, {.sample = 5}};
  const std::vector<RowRecords> records = runtime_->ReadTogether(rows);
  EXPECT_EQ(*Row(*runtime_, 1, nullptr, &records[0]), 'b');
  EXPECT_EQ(*Row(*runtime_, 5, nullptr, &records[2]), 'f');
  EXPECT_TRUE(absl::IsUnavailable(records[1].front().stored.status()));
  EXPECT_THAT(owner_.asked, ElementsAre(1, 4, 5));
  EXPECT_THAT(source_->alone, ElementsAre(4));
}

// A share of 1 makes it try again, after answers for a part did not pay.
TEST_F(PeersTogetherTest, WhatTheOwnerIsToldToKeepIsHeeded) {
  Tell(0);
  for (int i = 0; i < 20; ++i) Read();
  EXPECT_TRUE(owner_.asked.empty());
  Tell(0.5);
  owner_.keeps = {0, 1, 3};
  for (int i = 0; i < 50; ++i) Read();
  owner_.asked.clear();
  Tell(1);
  owner_.keeps = {0, 1, 2, 3, 4, 5};
  for (int i = 0; i < 50; ++i) Read();
  EXPECT_EQ(owner_.asked.size(), 50 * kFiles);
}

TEST_F(PeersTogetherTest, NobodyIsAskedForShardsWithoutAPeer) {
  ownership_.Set(
      "dataset",
      {.owned = std::vector<bool>(job_.info.datasets[0].shards.num_shards())});
  for (int i = 0; i < 20; ++i) Read();
  EXPECT_TRUE(owner_.asked.empty());
  EXPECT_EQ(source_->requests.size(), 20u);
}

}  // namespace
}  // namespace leat::worker
