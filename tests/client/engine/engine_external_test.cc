// SPDX-License-Identifier: Apache-2.0
//
// Jobs with client-supplied samples, over real gRPC; workers send back what
// they received.
#include <cstring>
#include <set>

#include "tests/client/engine/cluster_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

// The samples that a batch of the fixture must contain.
class FakeSource : public SampleSource {
 public:
  absl::StatusOr<std::vector<SampleField>> Read(uint64_t epoch,
                                                uint64_t sample) override {
    MutexLock lock(&mu_);
    while (closed_) changed_.Wait(&mu_);
    read_.insert(sample);
    ++reads_;
    if (sample == bad_) return DataLoss("no such page");
    std::vector<SampleField> fields(2);
    for (size_t i = 0; i < 90; ++i)
      fields[0].bytes.push_back(static_cast<char>(ImageByte(sample, i)));
    const int32_t label = Label(sample);
    fields[1].bytes.assign(reinterpret_cast<const char*>(&label), 4);
    if (sample == short_) fields[0].bytes.pop_back();
    return fields;
  }
  void SetBad(uint64_t sample) { bad_ = sample; }
  void SetShort(uint64_t sample) { short_ = sample; }
  void Close() {
    MutexLock lock(&mu_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(&mu_);
    closed_ = false;
    changed_.NotifyAll();
  }
  std::set<uint64_t> read() {
    MutexLock lock(&mu_);
    return read_;
  }
  uint64_t reads() {
    MutexLock lock(&mu_);
    return reads_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool closed_ = false;
  uint64_t bad_ = ~0ull, short_ = ~0ull;
  std::set<uint64_t> read_;
  uint64_t reads_ = 0;
};

class ExternalTest : public ClusterTest {
 protected:
  const std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
};

TEST_F(ExternalTest, SamplesAreSuppliedOnceAnEpochAndComeBackInOrder) {
  Start(2, {.external = true});
  Open({.epochs = 2, .source = source_});
  for (uint64_t epoch = 0; epoch < 2; ++epoch)
    for (uint64_t step = 0; step < 62; ++step) ExpectNext(epoch, step);
  ExpectEnd();
  EXPECT_EQ(source_->reads(), 2u * 62 * 16);
}

TEST_F(ExternalTest, RowsOfALostWorkerAreAskedAgainWithTheSameBytes) {
  Start(2, {.external = true});
  workers_[0]->Behave(Behaviour::kSilent);
  Open({.source = source_});
  workers_[0]->AwaitKept();
  workers_[0]->Kill();
  for (uint64_t step = 0; step < 62; ++step) ExpectNext(0, step);
  EXPECT_GT(batches_->stats().failed_over_rows, 0u);
  EXPECT_EQ(source_->reads(), 62u * 16);
}

TEST_F(ExternalTest, AHostSuppliesTheSamplesOfItsRowsOnly) {
  Start(2, {.samples = 64, .external = true});
  Open({.rows = {3, 9}, .source = source_});
  std::set<uint64_t> own;
  for (uint64_t step = 0; step < 4; ++step) {
    ExpectNext(0, step);
    const std::vector<uint64_t> samples = *batches_->Samples(0, step);
    own.insert(samples.begin(), samples.end());
  }
  ExpectEnd();
  EXPECT_EQ(source_->read(), own);
}

TEST_F(ExternalTest, ASampleInSeveralRowsIsReadOnce) {
  Start(1, {.samples = 5, .last_batch = LastBatch::kPad, .external = true});
  Open({.source = source_});
  ExpectNext(0, 0);
  EXPECT_EQ(source_->reads(), 5u);
}

TEST_F(ExternalTest, AFailedReadFailsItsStepAfterThoseBeforeIt) {
  Start(1, {.external = true});
  Open({.source = source_});
  const std::vector<uint64_t> samples = *batches_->Samples(0, 2);
  batches_.reset();
  source_->SetBad(samples[7]);
  Open({.source = source_});
  ExpectNext(0, 0);
  ExpectNext(0, 1);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = Next().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(Message(status),
                HasSubstr(fmt::format(
                    "epoch 0 step 2: source \"photos\" sample {}: no such page",
                    samples[7])));
  }
}

TEST_F(ExternalTest, AFieldOfAnotherSizeIsAnErrorThatNamesTheSample) {
  Start(1, {.external = true});
  source_->SetShort(17);
  Open({.source = source_});
  absl::StatusOr<std::optional<Batch>> batch = Next();
  while (batch.ok() && batch->has_value()) batch = Next();
  EXPECT_TRUE(absl::IsInvalidArgument(batch.status()));
  EXPECT_THAT(Message(batch.status()),
              HasSubstr("sample 17: field 0: 89 bytes, want uint8 (6, 5, 3)"));
}

TEST_F(ExternalTest, TheTokenGoesOnWithTheSameBytes) {
  Start(1, {.external = true});
  Open({.source = source_});
  for (uint64_t step = 0; step < 10; ++step) ExpectNext(0, step);
  const std::string position = batches_->position();
  const auto other = std::make_shared<FakeSource>();
  Open({.position = position, .source = other});
  for (uint64_t step = 10; step < 62; ++step) ExpectNext(0, step);
  EXPECT_EQ(other->reads(), 52u * 16);
}

TEST_F(ExternalTest, AJobSaysWhetherItWantsASource) {
  Start(1, {.external = true});
  const absl::Status status = job_->Open({}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("1000 samples \"photos\""));
  EXPECT_TRUE(absl::IsFailedPrecondition(job_->Sample(3, kLong).status()));
  auto sample = job_->Sample(3, kLong, source_);
  ASSERT_TRUE(sample.ok()) << sample.status();
  ExpectHolds(*sample, {3});
}

TEST_F(ExternalTest, AStoredJobTakesNoSource) {
  Start(1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(job_->Open({.source = source_}).status()));
}

TEST_F(ExternalTest, WhileTheSourceTakesItsTimeNextAndCancelDoNotHang) {
  Start(1, {.external = true});
  source_->Close();
  Open({.source = source_});
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      batches_->Next(absl::Now() + absl::Milliseconds(5)).status()));
  batches_->Cancel();
  EXPECT_TRUE(absl::IsCancelled(Next().status()));
  source_->Open();
  batches_.reset();
}

}  // namespace
}  // namespace leat::client
