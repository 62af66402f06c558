// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/form_horizon.h"

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/sample_forms.h"

namespace leat::worker {
namespace {

constexpr double kWithoutBound = FormHorizon::kWithoutBound;

class FormHorizonTest : public ::testing::Test {
 protected:
  std::unique_ptr<FormHorizon::Reading> Read(uint64_t end_epoch,
                                             double share = 1,
                                             const Digest& job = kJob) const {
    return std::make_unique<FormHorizon::Reading>(
        horizon_, FormHorizon::Iterator{.job = job,
                                        .share = share,
                                        .end_epoch = end_epoch,
                                        .steps_per_epoch = 4});
  }
  double After(uint64_t epoch, const Digest& job = kJob) const {
    return horizon_->UsesAfter(job, epoch);
  }

  static inline const Digest kJob = HashOf("job"), kOther = HashOf("other");
  const std::shared_ptr<FormHorizon> horizon_ = std::make_shared<FormHorizon>();
};

TEST_F(FormHorizonTest, NothingIsKnownWithoutIteratorsOrOfOneThatSaysNothing) {
  EXPECT_EQ(After(0), kWithoutBound);
  EXPECT_EQ(horizon_->UsesLeft(), 0);
  const auto one = Read(1);
  const auto old = Read(0);
  EXPECT_EQ(After(0), kWithoutBound);
  EXPECT_EQ(horizon_->UsesLeft(), kWithoutBound);
}

TEST_F(FormHorizonTest, EpochsAfterTheOneThatDecodesAreLeft) {
  const auto three = Read(3);
  EXPECT_EQ(After(0), 0) << "it has asked for nothing so far";
  three->At(0, 1);
  EXPECT_EQ(After(0), 2);
  EXPECT_EQ(horizon_->UsesLeft(), 2.5);
  three->At(1, 0);  // it requests ahead: rows of epoch 0 are still decoded
  EXPECT_EQ(After(0), 2);
  EXPECT_EQ(After(1), 1);
  three->At(0, 3);  // again, for a worker that was lost
  EXPECT_EQ(horizon_->UsesLeft(), 1.75);
  three->At(2, 3);
  EXPECT_EQ(After(2), 0);
  EXPECT_EQ(horizon_->UsesLeft(), 0);
}

TEST_F(FormHorizonTest, AnIteratorThatGoesOnInTheMiddleCountsFromThere) {
  const auto resumed = Read(90);
  resumed->At(88, 2);
  EXPECT_EQ(After(88), 1);
  EXPECT_EQ(horizon_->UsesLeft(), 1.25);
}

TEST_F(FormHorizonTest, HostsOfOneTrainingAddUpToWhatOneWouldRead) {
  std::vector<std::unique_ptr<FormHorizon::Reading>> hosts;
  for (int host = 0; host < 4; ++host) hosts.push_back(Read(3, 0.25));
  for (const auto& host : hosts) host->At(1, 0);
  hosts[2]->At(0, 3);
  EXPECT_EQ(After(1), 1);
  EXPECT_EQ(After(0), 2);
}

TEST_F(FormHorizonTest, JobsAndIteratorsThatGoTheirOwnWayAddUp) {
  const auto first = Read(2);
  first->At(0, 0);
  const auto other = Read(5, 1, kOther);
  other->At(2, 1);  // 2.5 epochs are left
  EXPECT_EQ(After(0), 1 + 2.5);
  EXPECT_EQ(After(2, kOther), 2 + 1.75);
  const auto far = Read(30);
  far->At(28, 3);
  EXPECT_EQ(After(0), 1 + 2.5 + 1);
}

TEST_F(FormHorizonTest, WhoReadsToItsEndAgainAndAgainIsWithoutBound) {
  for (int look = 0; look < 100; ++look) Read(1)->At(0, 0);  // broken off
  {
    const auto first = Read(1);
    first->At(0, 3);
    EXPECT_EQ(After(0), 0);
  }
  const auto second = Read(1);
  second->At(0, 0);
  EXPECT_EQ(After(0), kWithoutBound);
}

TEST_F(FormHorizonTest, IteratorsComeAndGoWhileOthersAsk) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 300; ++i) {
        const auto reading = Read(t == 0 ? 0 : 5);
        reading->At(i % 3, 0);
        EXPECT_GE(After(0), 0);
        EXPECT_GE(horizon_->UsesLeft(), 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(horizon_->UsesLeft(), 0);
}

// Decodes by a cache with a rich account, of kept records. A plain decode takes
// 10 ms; pixels take 12 ms to make, and 1 ms to be decoded.
class RepaidFormsTest : public ::testing::Test {
 protected:
  RepaidFormsTest() {
    cache_.forms().account().Save(std::chrono::hours(1));
    for (uint64_t record = 0; record < 200; ++record) {
      files_.emplace_back(1000);
      EXPECT_TRUE(
          cache_.Put(kept_, {.number = record}, StoredImage(files_.back(), 1)));
    }
  }

  // Returns the kind that was made.
  std::optional<JpegFormKind> Decode(uint64_t record, const Digest* job,
                                     uint64_t epoch) {
    const auto sample = cache_.Find(kept_, record);
    SampleForms forms(&cache_, &kept_, record, {},
                      {.job = job, .epoch = epoch});
    const FormWish wish =
        forms.Begin(sample->fields[0].bytes, DecodeClass::kFull);
    FormAnswer answer;
    if (wish.use.form != nullptr) answer.used = wish.use.kind;
    std::optional<JpegFormKind> made;
    if (wish.make.pixels) made = JpegFormKind::kPixels;
    if (made) {
      const auto owner = std::make_shared<const int>(1);
      answer.made.push_back(
          {std::shared_ptr<const JpegForm>(
               owner, reinterpret_cast<const JpegForm*>(owner.get())),
           *made, 2000});
    }
    clock_.Advance(std::chrono::milliseconds(answer.used ? 1 : made ? 22 : 10));
    forms.End(std::move(answer));
    return made;
  }
  // True if pixels repay for a record that will be decoded `uses` times after
  // this.
  bool Repays(std::optional<JpegFormKind> instead, uint64_t uses) const {
    FormHorizon::Reading reading(
        SampleCache::HorizonOf(kept_),
        {.job = job_, .end_epoch = 11 + uses, .steps_per_epoch = 10});
    reading.At(10, 0);
    return FormShelf::Repays(kept_, JpegFormKind::kPixels, instead, 1000,
                             {.job = &job_, .epoch = 10});
  }
  int Epoch(uint64_t epoch, const Digest* job = nullptr) {
    int made = 0;
    for (uint64_t record = 0; record < 200; ++record)
      made += Decode(record, job, epoch).has_value();
    return made;
  }

  FakeClock clock_;
  std::vector<std::vector<std::byte>> files_;
  SampleCache cache_{10 << 20, nullptr, clock_, {.pixels = true}};
  const SampleCache::DatasetPtr kept_ =
      cache_.Open(HashOf("photos"), "photos", "photos", 200);
  const Digest job_ = HashOf("job");
};

TEST_F(RepaidFormsTest, NoneIsMadeThatNoDecodeWillUse) {
  FormHorizon::Reading look(
      SampleCache::HorizonOf(kept_),
      {.job = job_, .end_epoch = 1, .steps_per_epoch = 10});
  look.At(0, 0);
  EXPECT_EQ(Epoch(0, &job_), 0);
  EXPECT_EQ(cache_.forms().account().totals().spent, Duration(0));
}

TEST_F(RepaidFormsTest, WhereOneDecodeDoesNotRepayThemTwoDo) {
  auto training = std::make_unique<FormHorizon::Reading>(
      SampleCache::HorizonOf(kept_),
      FormHorizon::Iterator{
          .job = job_, .end_epoch = 3, .steps_per_epoch = 10});
  training->At(0, 0);
  // In epoch 0 they save 18 ms of 12.
  EXPECT_GT(Epoch(0, &job_), 100);
  // They would save 9 ms of 12 in epoch 1.
  const int made = Epoch(1, &job_);
  EXPECT_EQ(made, 0);
  // A job that reports no end makes them.
  EXPECT_GT(Epoch(1), 10);
  training.reset();
  EXPECT_FALSE(Repays(std::nullopt, 1)) << "9 ms of 12";
  EXPECT_TRUE(Repays(std::nullopt, 2)) << "18 ms";
  // By a usual seek index they save 6 ms, and the decode that makes pixels
  // takes 3 ms more than by it.
  EXPECT_FALSE(Repays(JpegFormKind::kSeekIndex, 2)) << "12 ms of 15";
  EXPECT_TRUE(Repays(JpegFormKind::kSeekIndex, 3)) << "18 ms";
}

// The first pixels are those of small files, whose decodes by them take as long
// as those of large ones.
TEST_F(RepaidFormsTest, DecodesOfSmallFilesSayNothingOfLargeOnes) {
  FormShelf::DecodeTerms terms;
  for (int i = 0; i < 100; ++i) {
    cache_.forms().CountDecode(kept_,
                               {.used = std::nullopt,
                                .made = std::nullopt,
                                .file_bytes = 1000,
                                .took = std::chrono::milliseconds(10)},
                               &terms);
    cache_.forms().CountDecode(kept_,
                               {.used = JpegFormKind::kPixels,
                                .made = std::nullopt,
                                .file_bytes = 10,
                                .took = std::chrono::milliseconds(1)},
                               &terms);
  }
  EXPECT_TRUE(Repays(std::nullopt, 1)) << "and not 100 ms of 10";
}

}  // namespace
}  // namespace leat::worker
