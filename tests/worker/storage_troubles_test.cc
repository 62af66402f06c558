// SPDX-License-Identifier: Apache-2.0
#include "worker/storage_troubles.h"

#include <string>
#include <vector>

#include "core/blame.h"
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

// Records that are read, or not.
class SwitchedSource final : public Source {
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
  return WithBlame(Unavailable("cannot read /data/a: EIO"), Blame::kWorker);
}

class StorageTroublesTest : public testing::Test {
 protected:
  void Fail(const std::string& root = "/data", uint64_t sample = 0) {
    troubles_.Ended(root, Eio(), source_, sample);
  }
  // Failures over more than a second.
  void BeginTrouble(const std::string& root = "/data") {
    Fail(root);
    clock_.Advance(milliseconds(1100));
    Fail(root);
  }
  bool Admitted(const std::string& root = "/data") {
    return troubles_.Admit(root).ok();
  }

  FakeClock clock_;
  StorageTroubles troubles_{clock_};
  std::shared_ptr<SwitchedSource> source_ = std::make_shared<SwitchedSource>();
};

TEST_F(StorageTroublesTest, BeginsWhenFailuresLast) {
  Fail();
  Fail();
  EXPECT_THAT(troubles_.Lasting(), IsEmpty());
  EXPECT_TRUE(Admitted());
  clock_.Advance(milliseconds(900));
  Fail();
  EXPECT_THAT(troubles_.Lasting(), IsEmpty()) << "not a second yet";
  clock_.Advance(milliseconds(5000));
  EXPECT_THAT(troubles_.Lasting(), IsEmpty()) << "nothing failed meanwhile";
  Fail();
  const auto lasting = troubles_.Lasting();
  ASSERT_THAT(lasting, SizeIs(1));
  EXPECT_EQ(lasting[0].root, "/data");
  EXPECT_THAT(lasting[0].error, HasSubstr("EIO"));
  EXPECT_EQ(lasting[0].lasting, milliseconds(5900)) << "since the first one";
}

TEST_F(StorageTroublesTest, OneReadASecondGoesThrough) {
  BeginTrouble();
  EXPECT_TRUE(Admitted());
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = troubles_.Admit("/data");
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_EQ(BlameOf(refused), Blame::kWorker);
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("/data"));
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("EIO"));
  }
  EXPECT_TRUE(Admitted("/other")) << "another root";
  clock_.Advance(milliseconds(1000));
  EXPECT_TRUE(Admitted());
  EXPECT_FALSE(Admitted());
}

TEST_F(StorageTroublesTest, AnyAnswerAboutARecordEndsIt) {
  const std::vector<absl::Status> answers = {
      absl::OkStatus(), WithBlame(DataLoss("bad"), Blame::kSample),
      WithBlame(NotFound("gone"), Blame::kObject)};
  for (const absl::Status& answer : answers) {
    BeginTrouble();
    ASSERT_THAT(troubles_.Lasting(), SizeIs(1));
    troubles_.Ended("/other", answer, source_, 0);
    troubles_.Ended("/data", WithBlame(Unavailable("busy"), Blame::kPassing),
                    source_, 0);
    EXPECT_THAT(troubles_.Lasting(), SizeIs(1)) << "no answer";
    troubles_.Ended("/data", answer, source_, 0);
    EXPECT_THAT(troubles_.Lasting(), IsEmpty()) << answer;
    EXPECT_TRUE(Admitted());
  }
}

TEST_F(StorageTroublesTest, ASuccessBetweenBeginsAnew) {
  Fail();
  clock_.Advance(milliseconds(900));
  troubles_.Ended("/data", absl::OkStatus(), source_, 0);
  Fail();
  clock_.Advance(milliseconds(900));
  Fail();
  EXPECT_THAT(troubles_.Lasting(), IsEmpty());
}

TEST_F(StorageTroublesTest, RootsAreBounded) {
  for (size_t i = 0; i < StorageTroubles::kMaxRoots + 5; ++i)
    Fail(fmt::format("/{}", i));
  clock_.Advance(milliseconds(1000));
  for (size_t i = 0; i < StorageTroubles::kMaxRoots + 5; ++i)
    Fail(fmt::format("/{}", i));
  EXPECT_THAT(troubles_.Lasting(), SizeIs(StorageTroubles::kMaxRoots));
  Fail("");  // of what is in no storage
  EXPECT_THAT(troubles_.Lasting(), SizeIs(StorageTroubles::kMaxRoots));
}

// A worker in trouble is asked for nothing: it has to look by itself.
TEST_F(StorageTroublesTest, ProbesOtherRecordsUntilOneIsRead) {
  source_->status = Eio();
  BeginTrouble();
  troubles_.Probe();
  troubles_.Probe();
  EXPECT_THAT(source_->reads, SizeIs(1)) << "one a second";
  clock_.Advance(milliseconds(1000));
  troubles_.Probe();
  EXPECT_THAT(source_->reads, ElementsAre(7, 14)) << "not the bad one again";
  EXPECT_THAT(troubles_.Lasting(), SizeIs(1));
  source_->status = absl::OkStatus();
  clock_.Advance(milliseconds(1000));
  troubles_.Probe();
  EXPECT_THAT(troubles_.Lasting(), IsEmpty());
  clock_.Advance(milliseconds(1000));
  EXPECT_EQ(troubles_.Probe(), MonotonicTime::max()) << "nothing to look at";
}

TEST_F(StorageTroublesTest, ADatasetThatNobodyReadsIsForgotten) {
  BeginTrouble();
  source_.reset();
  clock_.Advance(milliseconds(1000));
  troubles_.Probe();
  EXPECT_THAT(troubles_.Lasting(), IsEmpty());
}

TEST_F(StorageTroublesTest, ItsThreadEndsWithIt) {
  StorageTroubles troubles;
  EXPECT_TRUE(troubles.Start().ok());
  troubles.Ended("/data", Eio(), source_, 0);
}

}  // namespace
}  // namespace leat::worker
