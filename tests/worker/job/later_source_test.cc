// SPDX-License-Identifier: Apache-2.0
#include "worker/job/later_source.h"

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Four samples of two records, on a local disk.
class FourSamples final : public FormatSource {
 public:
  uint64_t num_samples() const override { return 4; }
  uint64_t RecordOf(uint64_t sample) const override { return sample % 2; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return DataLoss("sample {}", sample);
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits&) const override {
    return samples.size();
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return "/four/" + std::to_string(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return RecordPlace{.file = std::to_string(sample)};
  }
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const override {
    return RowDocuments{.count = 100 * sample + 10 * first + most,
                        .listed = {}};
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    return column == "label" ? static_cast<int64_t>(sample) : -1;
  }
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string> names) const override {
    return NotFound("columns of {} names", names.size());
  }

 private:
  const Digest fingerprint_ = HashOf("four");
};

class Later : public testing::Test {
 protected:
  std::shared_ptr<const LaterSource> Of(LaterSource::Open open,
                                        uint64_t samples = 4) {
    return std::make_shared<const LaterSource>(
        LaterSource::Known{.name = "four",
                           .fingerprint = HashOf("four"),
                           .root = "/four",
                           .samples = samples,
                           .records = 2},
        LaterSource::Options{.first_pause = milliseconds(10),
                             .max_pause = milliseconds(30),
                             .failures = &failures_,
                             .clock = &clock_},
        std::move(open));
  }
  // Is opened with this error, or with four samples if it is OK.
  std::shared_ptr<const LaterSource> Answering(absl::Status* status) {
    return Of([this, status]() -> absl::StatusOr<LaterSource::Ptr> {
      ++opened_;
      if (!status->ok()) return *status;
      return std::make_shared<const FourSamples>();
    });
  }

  FakeClock clock_;
  StorageFailures failures_{clock_};
  std::atomic<int> opened_ = 0;
};

TEST_F(Later, KnowsItsNumbersBeforeItIsOpened) {
  absl::Status sound;
  const auto source = Answering(&sound);
  EXPECT_EQ(source->num_samples(), 4u);
  EXPECT_EQ(source->num_records(), 2u);
  EXPECT_EQ(source->fingerprint(), HashOf("four"));
  EXPECT_EQ(source->RecordOf(3), Source::kNoRecord);
  EXPECT_EQ(source->Describe(3), "sample 3 of four");
  EXPECT_EQ(source->Nearby(std::vector<uint64_t>{0, 1}, {}), 1u);
  EXPECT_TRUE(source->waits()) << "for the coordinator";
  EXPECT_EQ(opened_, 0);

  EXPECT_EQ(*source->FindRecord(3), 1u);
  EXPECT_EQ(source->RecordOf(3), 1u);
  EXPECT_EQ(source->Describe(3), "/four/3");
  EXPECT_EQ(source->Nearby(std::vector<uint64_t>{0, 1}, {}), 2u);
  EXPECT_FALSE(source->waits());
  EXPECT_EQ(Message(source->Read(2).status()), "sample 2");
  EXPECT_THAT(source->ReadMany(std::vector<uint64_t>{0, 1}), SizeIs(2));
  EXPECT_EQ(source->Locate(1)->file, "1");
  EXPECT_EQ(opened_, 1);
}

TEST_F(Later, PassesOnQuestionsAboutDocumentsAndColumns) {
  absl::Status sound;
  const auto source = Answering(&sound);
  EXPECT_EQ((*source->DocumentsOf(3, 2, 1))->count, 321u);
  EXPECT_EQ(*source->IndexedColumn("label", 3), 3);
  const std::vector<std::string> names = {"a", "b"};
  EXPECT_EQ(Message(source->OpenColumns(names).status()), "columns of 2 names");
}

TEST_F(Later, IsOpenedOnceHoweverManyThreadsNeedIt) {
  std::latch all(8);
  const auto source = Of([&]() -> absl::StatusOr<LaterSource::Ptr> {
    ++opened_;
    all.wait();
    return std::make_shared<const FourSamples>();
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      all.count_down();
      EXPECT_EQ(*source->FindRecord(2), 0u);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened_, 1);
}

TEST_F(Later, AnAttemptIsAwaitedUpToADeadline) {
  std::latch waits(1);
  const auto source = Of([&]() -> absl::StatusOr<LaterSource::Ptr> {
    waits.wait();
    return Unavailable("the disk is slow");
  });
  std::thread opens([&] { source->Opened().IgnoreError(); });
  source->AwaitAttempt(Clock::Real().Now() + milliseconds(1));
  waits.count_down();
  source->AwaitAttempt(MonotonicTime::max());
  EXPECT_EQ(Message(source->Opened().status()), "the disk is slow");
  opens.join();
}

TEST_F(Later, AnErrorIsTheAnswerUntilThePauseIsOver) {
  absl::Status status = Unavailable("away");
  const auto source = Answering(&status);
  EXPECT_FALSE(source->Read(0).ok());
  EXPECT_FALSE(source->Read(1).ok());
  EXPECT_EQ(opened_, 1);
  for (const int pause : {10, 20, 30, 30}) {
    clock_.Advance(milliseconds(pause - 1));
    EXPECT_FALSE(source->FindRecord(0).ok());
    const int before = opened_;
    clock_.Advance(milliseconds(1));
    EXPECT_FALSE(source->FindRecord(0).ok());
    EXPECT_EQ(opened_, before + 1) << pause;
  }
  status = absl::OkStatus();
  clock_.Advance(milliseconds(30));
  EXPECT_EQ(*source->FindRecord(1), 1u);
}

TEST_F(Later, WhoHasWaitedForAFailedAttemptDoesNotTryAgain) {
  std::latch both(2);
  const auto source = Of([&]() -> absl::StatusOr<LaterSource::Ptr> {
    ++opened_;
    both.wait();
    return Unavailable("away");
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      both.count_down();
      EXPECT_FALSE(source->Read(0).ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened_, 1);
}

TEST_F(Later, TheFaultOfARowIsStoragesOrTheCoordinatorsOrThisWorkers) {
  struct {
    absl::Status status;
    Fault fault;
    bool unavailable;
  } const cases[] = {
      {WithFault(Unavailable("gone"), Fault::kObject), Fault::kObject, true},
      {WithFault(DataLoss("its header"), Fault::kSample), Fault::kSample,
       false},
      {WithFault(Unavailable("no mount"), Fault::kWorker), Fault::kWorker,
       true},
      {Unavailable("away"), Fault::kTransient, true},
      {NotFound("no index"), Fault::kTransient, true},
      {DataLoss("a malformed index"), Fault::kWorker, true},
      {InvalidArgument("no such reader"), Fault::kWorker, true},
  };
  for (const auto& each : cases) {
    absl::Status status = each.status;
    const auto source = Answering(&status);
    const absl::Status row = source->Read(1).status();
    EXPECT_EQ(FaultOf(row), each.fault) << row;
    EXPECT_EQ(absl::IsUnavailable(row), each.unavailable) << row;
    EXPECT_THAT(std::string(Message(row)), HasSubstr("dataset four"));
    EXPECT_EQ(source->FindRecord(1).status(), row);
    EXPECT_EQ(source->ReadMany(std::vector<uint64_t>{1, 2})[1].status(), row);
    EXPECT_EQ(source->Opened().status(), each.status) << "as it was";
  }
}

TEST_F(Later, AnIndexOfOtherSamplesIsThisWorkersFault) {
  const auto source =
      Of([] { return std::make_shared<const FourSamples>(); }, /*samples=*/5);
  const absl::Status row = source->Read(1).status();
  EXPECT_EQ(FaultOf(row), Fault::kWorker);
  EXPECT_THAT(std::string(Message(row)), HasSubstr("4 samples, want 5"));
}

// No row of it is needed: the probes of the failures try again.
TEST_F(Later, ADatasetThatCannotBeOpenedIsFoundAsOneThatCannotBeRead) {
  absl::Status status = WithFault(Unavailable("no mount"), Fault::kWorker);
  const auto source = Answering(&status);
  EXPECT_FALSE(source->Opened().ok());
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
  clock_.Advance(StorageFailures::kInterval);
  failures_.Probe();
  const std::vector<StorageFailures::Failure> lasting = failures_.Lasting();
  ASSERT_THAT(lasting, SizeIs(1));
  EXPECT_EQ(lasting[0].root, "/four");
  EXPECT_THAT(lasting[0].error, HasSubstr("cannot open dataset four"));
  EXPECT_EQ(lasting[0].fingerprints, std::vector<Digest>{HashOf("four")});
  status = absl::OkStatus();
  clock_.Advance(StorageFailures::kInterval);
  failures_.Probe();
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
}

}  // namespace
}  // namespace leat::worker
