// SPDX-License-Identifier: Apache-2.0
#include "worker/job/storage_failures.h"

#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A source that succeeds or fails as set.
class SwitchedSource final : public FormatSource {
 public:
  uint64_t num_samples() const override { return 100; }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    reads.push_back(sample);
    if (!status.ok()) return status;
    return StoredSample();
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t) const override { return "record"; }
  absl::StatusOr<RecordPlace> Locate(uint64_t) const override {
    return RecordPlace{.file = "record"};
  }
  absl::Status status;
  mutable std::vector<uint64_t> reads;

 private:
  const Digest fingerprint_{};
};

absl::Status Eio() {
  return WithFault(Unavailable("cannot read /data/a: EIO"), Fault::kWorker);
}

class StorageFailuresTest : public ::testing::Test {
 protected:
  using Dataset = StorageFailures::Dataset;
  // Returns a dataset of /data, identified by `number`.
  static Dataset Of(uint8_t number) {
    return {.root = "/data", .fingerprint = {number}};
  }

  void Fail(const Dataset& dataset = Of(0), uint64_t sample = 0) {
    failures_.Ended(dataset, Eio(), source_, sample);
  }
  // Makes reads fail over more than a second.
  void BeginFailure(const Dataset& dataset = Of(0)) {
    Fail(dataset);
    clock_.Advance(milliseconds(1100));
    Fail(dataset);
  }
  bool Admitted(const Dataset& dataset = Of(0)) {
    return failures_.Admit(dataset).ok();
  }

  FakeClock clock_;
  StorageFailures failures_{clock_};
  std::shared_ptr<SwitchedSource> source_ = std::make_shared<SwitchedSource>();
};

TEST_F(StorageFailuresTest, BeginsWhenFailuresLast) {
  Fail();
  Fail();
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
  EXPECT_TRUE(Admitted());
  clock_.Advance(milliseconds(900));
  Fail();
  EXPECT_THAT(failures_.Lasting(), IsEmpty()) << "not a second yet";
  clock_.Advance(milliseconds(5000));
  EXPECT_THAT(failures_.Lasting(), IsEmpty()) << "nothing failed meanwhile";
  Fail();
  const auto lasting = failures_.Lasting();
  ASSERT_THAT(lasting, SizeIs(1));
  EXPECT_EQ(lasting[0].root, "/data");
  EXPECT_THAT(lasting[0].error, HasSubstr("EIO"));
  EXPECT_EQ(lasting[0].lasting, milliseconds(5900)) << "since the first one";
}

TEST_F(StorageFailuresTest, ErrorsAreUtf8) {
  const std::string cut = std::string(505, 'x') + "é is cut";
  for (int i = 0; i < 2; ++i) {
    failures_.Ended(
        Of(0), WithFault(Unavailable("{}: {}", "\xff", cut), Fault::kWorker),
        source_, 0);
    clock_.Advance(milliseconds(1100));
  }
  ASSERT_THAT(failures_.Lasting(), SizeIs(1));
  EXPECT_EQ(failures_.Lasting()[0].error,
            "\\xff: " + std::string(505, 'x') + "é");
}

TEST_F(StorageFailuresTest, OneReadASecondGoesThrough) {
  BeginFailure();
  EXPECT_TRUE(Admitted());
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = failures_.Admit(Of(0));
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_EQ(FaultOf(refused), Fault::kWorker);
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("/data"));
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("EIO"));
  }
  EXPECT_TRUE(Admitted({"/other"})) << "another root";
  EXPECT_TRUE(Admitted(Of(1))) << "another dataset of the root";
  clock_.Advance(milliseconds(1000));
  EXPECT_TRUE(Admitted());
  EXPECT_FALSE(Admitted());
}

TEST_F(StorageFailuresTest, AnyAnswerAboutARecordEndsIt) {
  const std::vector<absl::Status> answers = {
      absl::OkStatus(), WithFault(DataLoss("bad"), Fault::kSample),
      WithFault(NotFound("gone"), Fault::kObject)};
  for (const absl::Status& answer : answers) {
    BeginFailure();
    ASSERT_THAT(failures_.Lasting(), SizeIs(1));
    failures_.Ended({"/other"}, answer, source_, 0);
    failures_.Ended(Of(0), WithFault(Unavailable("busy"), Fault::kTransient),
                    source_, 0);
    EXPECT_THAT(failures_.Lasting(), SizeIs(1)) << "no answer";
    failures_.Ended(Of(0), answer, source_, 0);
    EXPECT_THAT(failures_.Lasting(), IsEmpty()) << answer;
    EXPECT_TRUE(Admitted());
  }
}

TEST_F(StorageFailuresTest, ASuccessBetweenBeginsAnew) {
  Fail();
  clock_.Advance(milliseconds(900));
  failures_.Ended(Of(0), absl::OkStatus(), source_, 0);
  Fail();
  clock_.Advance(milliseconds(900));
  Fail();
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
}

TEST_F(StorageFailuresTest, DatasetsAreBounded) {
  constexpr uint8_t kMost = StorageFailures::kMaxDatasets;
  for (uint8_t i = 0; i < kMost + 5; ++i) Fail(Of(i));
  clock_.Advance(milliseconds(1000));
  for (uint8_t i = 0; i < kMost + 5; ++i) Fail(Of(i));
  ASSERT_THAT(failures_.Lasting(), SizeIs(1));
  EXPECT_THAT(failures_.Lasting()[0].fingerprints, SizeIs(kMost));
  Fail({""});  // a dataset in no storage
  EXPECT_THAT(failures_.Lasting(), SizeIs(1));
}

// Two of three datasets with one root are forbidden.
TEST_F(StorageFailuresTest, EachDatasetOfARootIsJudgedByItsOwnReads) {
  const auto read = std::make_shared<SwitchedSource>();
  BeginFailure(Of(1));
  Fail(Of(3));
  failures_.Ended(Of(2), absl::OkStatus(), read, 0);
  EXPECT_TRUE(Admitted(Of(1)));
  EXPECT_FALSE(Admitted(Of(1)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Admitted(Of(2))) << i;
  EXPECT_THAT(failures_.Lasting()[0].fingerprints, ElementsAre(Digest{1}));
  clock_.Advance(milliseconds(1100));
  failures_.Ended(Of(2), absl::OkStatus(), read, 0);
  Fail(Of(3));
  // People see one failure, as long as the older one.
  const auto lasting = failures_.Lasting();
  ASSERT_THAT(lasting, SizeIs(1));
  EXPECT_THAT(lasting[0].fingerprints, ElementsAre(Digest{1}, Digest{3}));
  EXPECT_EQ(lasting[0].lasting, milliseconds(2200));
  // The thread reads a record of each, and of no other.
  source_->status = Eio();
  clock_.Advance(milliseconds(1000));
  failures_.Probe();
  EXPECT_THAT(source_->reads, SizeIs(2));
  EXPECT_THAT(read->reads, IsEmpty());
  failures_.Ended(Of(1), absl::OkStatus(), source_, 0);
  EXPECT_THAT(failures_.Lasting()[0].fingerprints, ElementsAre(Digest{3}));
  EXPECT_TRUE(Admitted(Of(1)));
}

TEST_F(StorageFailuresTest, TheThreadTakesNoReadersPlace) {
  source_->status = Eio();
  BeginFailure();
  clock_.Advance(milliseconds(1000));
  failures_.Probe();
  EXPECT_THAT(source_->reads, SizeIs(1));
  EXPECT_TRUE(Admitted());
  EXPECT_FALSE(Admitted());
  clock_.Advance(milliseconds(1000));
  EXPECT_TRUE(Admitted());
  failures_.Probe();
  EXPECT_THAT(source_->reads, SizeIs(2)) << "nor a reader the thread's";
}

// Two jobs read a dataset; the one that failed last has ended.
TEST_F(StorageFailuresTest, ADatasetWhoseLastReaderEndsIsTriedAgain) {
  auto other = std::make_shared<SwitchedSource>();
  BeginFailure();
  failures_.Ended(Of(0), Eio(), other, 0);
  other.reset();
  clock_.Advance(milliseconds(1000));
  failures_.Probe();
  EXPECT_THAT(source_->reads, IsEmpty());
  EXPECT_TRUE(Admitted());
  EXPECT_TRUE(Admitted());
  BeginFailure();
  EXPECT_THAT(failures_.Lasting(), SizeIs(1));
}

// A failing worker gets no requests: it has to check by itself.
TEST_F(StorageFailuresTest, ProbesOtherRecordsUntilOneIsRead) {
  source_->status = Eio();
  BeginFailure();
  failures_.Probe();
  failures_.Probe();
  EXPECT_THAT(source_->reads, SizeIs(1)) << "one a second";
  clock_.Advance(milliseconds(1000));
  failures_.Probe();
  EXPECT_THAT(source_->reads, ElementsAre(7, 14)) << "not the bad one again";
  EXPECT_THAT(failures_.Lasting(), SizeIs(1));
  source_->status = absl::OkStatus();
  clock_.Advance(milliseconds(1000));
  failures_.Probe();
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
  clock_.Advance(milliseconds(1000));
  EXPECT_EQ(failures_.Probe(), MonotonicTime::max()) << "nothing to look at";
}

TEST_F(StorageFailuresTest, ADatasetThatNobodyReadsIsForgotten) {
  BeginFailure();
  source_.reset();
  clock_.Advance(milliseconds(1000));
  failures_.Probe();
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
}

TEST_F(StorageFailuresTest, ItsThreadEndsWithIt) {
  StorageFailures failures;
  EXPECT_TRUE(failures.Start().ok());
  failures.Ended(Of(0), Eio(), source_, 0);
}

}  // namespace
}  // namespace leat::worker
