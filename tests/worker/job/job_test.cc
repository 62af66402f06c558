// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/job_fixture.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(JobTest, ComputesRows) {
  const auto job = Create(Job());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(*Row(**job, 2), 'c');
  EXPECT_EQ(*Row(**job, 5), 'f');
}

TEST_F(JobTest, FailNamesTheSampleAndItsFile) {
  dir_.Write("k/c.jpg", "!");
  const auto job = Create(Job());
  const absl::Status status = Row(**job, 2).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(Message(status),
            fmt::format("sample 2: {}/k/c.jpg: it is bad", dir_.path()));
  const auto report = bad_.Take();
  ASSERT_THAT(report, SizeIs(1));
  EXPECT_THAT(report.at("job").at(2).record, HasSubstr("c.jpg"));
}

TEST_F(JobTest, ReplaceTakesThePlansSubstitute) {
  dir_.Write("k/c.jpg", "!");
  const auto job = Create(Job(BadSamplePolicy::kReplace));
  uint32_t attempt = 0;
  while ((*job)->plan().Substitute(0, 2, attempt) == 2) ++attempt;
  const uint64_t other = (*job)->plan().Substitute(0, 2, attempt);
  EXPECT_EQ(*Row(**job, 2), "abcdef"[other]);
  EXPECT_EQ(bad_.total(), 1u + attempt);
}

TEST_F(JobTest, ReplaceEndsWhereEverySampleIsBad) {
  for (const char c : std::string("abcdef"))
    dir_.Write(std::string("k/") + c + ".jpg", "!");
  const auto job = Create(Job(BadSamplePolicy::kReplace));
  const absl::Status status = Row(**job, 2).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Message(status), HasSubstr("16 substitutes"));
}

TEST_F(JobTest, ZeroMarksTheRow) {
  dir_.Write("k/c.jpg", "!");
  const auto job = Create(Job(BadSamplePolicy::kZero));
  ASSERT_TRUE(job.ok()) << job.status();
  bool valid = true;
  EXPECT_EQ(*Row(**job, 2, &valid), 0);
  EXPECT_FALSE(valid);
  EXPECT_EQ(*Row(**job, 3, &valid), 'd');
  EXPECT_TRUE(valid);
}

TEST_F(JobTest, ARemovedFileFollowsThePolicy) {
  const FakeJob failing = Job(), zeroing = Job(BadSamplePolicy::kZero);
  const auto fail = Create(failing);
  const auto zero = Create(zeroing);
  std::filesystem::remove(dir_.path() + "/k/c.jpg");
  for (const auto& job : {fail, zero}) {
    const absl::Status seen = Row(**job, 2).status();
    EXPECT_TRUE(absl::IsNotFound(seen));
    EXPECT_EQ(FaultOf(seen), Fault::kObject) << "as far as this worker sees";
  }
  const absl::Status status = Row(**fail, 2, nullptr, nullptr, {2}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(FaultOf(status), Fault::kSample);
  EXPECT_EQ(*Row(**zero, 2, nullptr, nullptr, {2}), 0);
}

TEST_F(JobTest, AMissingFolderIsTheWorkersFault) {
  const auto zero = Create(Job(BadSamplePolicy::kZero));
  std::filesystem::remove_all(dir_.path() + "/k");
  const absl::Status status = Row(**zero, 2, nullptr, nullptr, {2}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kWorker);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("is it mounted here?"));
  EXPECT_EQ(bad_.total(), 0u);
}

TEST_F(JobTest, OnlyOwnedShardsAreCached) {
  const FakeJob job = Job();
  std::vector<bool> owned(job.info.datasets[0].shards.num_shards(), false);
  ownership_.Set("dataset", {.owned = owned});
  const auto runtime = Create(job);
  EXPECT_TRUE(Row(**runtime, 0).ok());
  EXPECT_EQ(cache_.stats().records, 0u);
  owned.assign(owned.size(), true);
  ownership_.Set("dataset", {.owned = owned});
  EXPECT_TRUE(Row(**runtime, 0).ok());
  EXPECT_EQ(cache_.stats().records, 1u);
  EXPECT_EQ(cache_.stats().datasets.at(0).id, "dataset");
}

// The index that a job was made with identifies its files by size and time.
TEST_F(JobTest, AFileThatChangedIsNotServedForTheOneThatIsKept) {
  const auto before = Create(Job());
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(*Row(**before, 0), 'a');
  dir_.Write("k/a.jpg", "zz");
  EXPECT_EQ(*Row(**before, 0), 'a') << "what was indexed is kept";
  const auto after = Create(Job());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*Row(**after, 0), 'z');
  EXPECT_EQ(*Row(**before, 0), 'a');
  EXPECT_EQ(cache_.stats().records, 2u);
}

// Another source, except for the requested changes.
class ChangedSource : public FormatSource {
 public:
  ChangedSource(std::shared_ptr<const Source> source, std::string place)
      : source_(std::move(source)), place_(std::move(place)) {}
  uint64_t num_samples() const override { return source_->num_samples(); }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    ++reads;
    return Unavailable("{}: cut off", Describe(sample));
  }
  const Digest& fingerprint() const override { return source_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return place_.empty() ? source_->Describe(sample) : place_;
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    if (place_.empty()) return source_->Locate(sample);
    return RecordPlace{.file = place_};
  }
  mutable std::atomic<int> reads{0};

 private:
  const std::shared_ptr<const Source> source_;
  const std::string place_;
};

TEST_F(JobTest, WhatWasReadAheadIsWhatARowIsMadeOf) {
  context_.read_ahead_of = ReadAheadOf::kAll;
  const auto job = Create(Job());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE((*job)->reads_ahead());
  const RowRecords records = (*job)->ReadAhead({.sample = 2});
  std::filesystem::remove(dir_.path() + "/k/c.jpg");
  EXPECT_EQ(*Row(**job, 2, nullptr, &records), 'c');
  // Both ways return the same error.
  std::filesystem::remove(dir_.path() + "/k/e.jpg");
  const RowRecords gone = (*job)->ReadAhead({.sample = 4});
  const auto ahead = Row(**job, 4, nullptr, &gone);
  const auto here = Row(**job, 4);
  EXPECT_TRUE(absl::IsNotFound(here.status())) << here.status();
  EXPECT_EQ(ahead.status(), here.status());
  // Records of other samples are not used.
  EXPECT_EQ(*Row(**job, 3, nullptr, &records), 'd');
}

// Its records are neighbours; among those that are read together one fails.
class NeighbouringSource : public ChangedSource {
 public:
  explicit NeighbouringSource(std::shared_ptr<const Source> source)
      : ChangedSource(source, ""), source_(std::move(source)) {}
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    ++reads;
    if (away) return Unavailable("away");
    return source_->Read(sample);
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    together.emplace_back(samples.begin(), samples.end());
    std::vector<absl::StatusOr<StoredSample>> stored;
    for (const uint64_t sample : samples)
      stored.push_back(away || sample == 3 ? Unavailable("cut off")
                                           : source_->Read(sample));
    return stored;
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const override {
    return std::min<size_t>(samples.size(), limits.total_bytes);
  }
  bool away = false;
  mutable std::vector<std::vector<uint64_t>> together;

 private:
  const std::shared_ptr<const Source> source_;
};

TEST_F(JobTest,
       NeighboursAreReadTogetherIfTheyAreNotKeptAndAreTriedAgainAlone) {
  context_.nearby.total_bytes = 4;
  const FakeJob job = Job();
  ownership_.Set("dataset",
                 {.owned = std::vector<bool>(
                      job.info.datasets[0].shards.num_shards(), true)});
  const auto source = std::make_shared<NeighbouringSource>(
      *OpenSource(job.info.spec.pipeline.nodes[0], job.blob, SourceLimits{}));
  const auto runtime = JobRuntime::Create(job.info, {source}, &context_);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  const uint64_t samples[] = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ((*runtime)->CountTogether(samples), 4u);
  EXPECT_EQ(*Row(**runtime, 1), 'b');  // is kept now
  source->reads = 0;
  std::vector<RowOf> rows;
  for (uint64_t sample = 0; sample < 4; ++sample)
    rows.push_back({.sample = sample});
  const std::vector<RowRecords> records = (*runtime)->ReadTogether(rows);
  EXPECT_THAT(source->together, ElementsAre(ElementsAre(0, 2, 3)));
  EXPECT_EQ(source->reads, 1);
  ASSERT_EQ(records.size(), 4u);
  for (uint64_t sample = 0; sample < 4; ++sample)
    EXPECT_EQ(*Row(**runtime, sample, nullptr, &records[sample]),
              static_cast<char>('a' + sample));
  EXPECT_EQ(source->reads, 1);
  // Storage that does not answer is waited for once, not for each of them.
  source->away = true;
  source->reads = 0;
  const RowOf others[] = {{.sample = 4}, {.sample = 5}};
  for (const RowRecords& each : (*runtime)->ReadTogether(others))
    EXPECT_TRUE(absl::IsUnavailable(each.front().stored.status()));
  EXPECT_EQ(source->reads, 3);
}

TEST_F(JobTest, OnlyDatasetsOnTheNetworkAreReadAhead) {
  const FakeJob job = Job();
  EXPECT_FALSE((*Create(job))->reads_ahead());
  std::shared_ptr<const Source> source =
      *OpenSource(job.info.spec.pipeline.nodes[0], job.blob, SourceLimits{});
  const auto remote = JobRuntime::Create(
      job.info, {std::make_shared<ChangedSource>(source, "s3://b/k")},
      &context_);
  ASSERT_TRUE(remote.ok()) << remote.status();
  EXPECT_TRUE((*remote)->reads_ahead());
}

TEST_F(JobTest, ReadsAreTriedAgainUntilTheWorkerStops) {
  StopSignal stop;
  context_.stop = &stop;
  const FakeJob job = Job();
  std::shared_ptr<const Source> source =
      *OpenSource(job.info.spec.pipeline.nodes[0], job.blob, SourceLimits{});
  const auto failing = std::make_shared<ChangedSource>(source, "");
  const auto runtime = JobRuntime::Create(job.info, {failing}, &context_);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_THAT(Row(**runtime, 0).status().message(),
              HasSubstr("cut off (tried 3 times)"));
  EXPECT_EQ(failing->reads, 3);
  stop.Stop();
  EXPECT_TRUE(absl::IsCancelled(Row(**runtime, 0).status()));
  EXPECT_EQ(failing->reads, 4);
}

TEST_F(JobTest, AJobThatDoesNotFitIsRefused) {
  FakeJob job = Job();
  job.info.plan_hash[0] ^= 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(job).status()));
  job = Job();
  job.info.schema.fields.pop_back();
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(job).status()));
  job = Job();
  job.info.spec.batch = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Create(job).status()));
}

TEST_F(JobTest, AsksMustAgreeWithThePlan) {
  const auto runtime = Create(Job());
  const JobRuntime& job = **runtime;
  EXPECT_TRUE(
      job.CheckRequest({.step = 1, .rows = {0, 1}, .samples = {2, 3}}).ok());
  EXPECT_TRUE(job.CheckRequest({.rows = {0}, .samples = {5}}).ok());
  const std::vector<RowRequest> wrong = {
      {.step = 1, .rows = {0, 1}, .samples = {2, 4}},
      {.step = 3, .rows = {0, 1}, .samples = {2, 3}},
      {.step = 1, .rows = {0, 2}, .samples = {2, 3}},
      {.rows = {0}, .samples = {6}},
      {.rows = {2}, .samples = {0}},
      {.rows = {0, 1}, .samples = {0}},
      {.rows = {0}, .samples = {0}, .absent = {6}},
      {.rows = {0}, .samples = {0}, .absent = std::vector<uint64_t>(257)}};
  EXPECT_TRUE(job.CheckRequest({.rows = {0},
                                .samples = {0},
                                .absent = std::vector<uint64_t>(256, 5)})
                  .ok());
  for (const RowRequest& request : wrong)
    EXPECT_TRUE(absl::IsInvalidArgument(job.CheckRequest(request)));
  EXPECT_TRUE(job.CheckRequest({.epoch = 7, .rows = {0}, .samples = {5}}).ok());
}

TEST_F(JobTest, AStreamReadsItsRecordsAgainWhateverItsIteratorsEnd) {
  const auto left = [&](LastBatch last_batch) {
    FakeJob made = Job();
    made.info.spec.last_batch = last_batch;
    const auto job = Create(*FinishFakeJob(std::move(made)));
    EXPECT_TRUE(job.ok()) << job.status();
    const auto reading = (*job)->BeginReading({.end_epoch = 1});
    reading->At(0, 0);
    return SampleCache::HorizonOf((*job)->sources()[0]->records().in_memory())
        ->UsesAfter((*job)->job().plan_hash, 0);
  };
  EXPECT_EQ(left(LastBatch::kDrop), 0);
  EXPECT_EQ(left(LastBatch::kStream), FormHorizon::kWithoutBound);
}

TEST_F(JobTest, AsksOfAStreamAreOfItsOneEpoch) {
  FakeJob made = Job();
  made.info.spec.last_batch = LastBatch::kStream;
  const auto runtime = Create(*FinishFakeJob(std::move(made)));
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  const JobRuntime& job = **runtime;
  EXPECT_TRUE(
      job.CheckRequest({.step = 4, .rows = {0, 1}, .samples = {2, 3}}).ok());
  for (const RowRequest& request : {RowRequest{.request_id = 9,
                                   .epoch = 1,
                                   .step = 4,
                                   .rows = {0, 1},
                                   .samples = {2, 3}},
                                    RowRequest{.request_id = 9,
                                    .epoch = ~uint64_t{0},
                                    .rows = {0},
                                    .samples = {5}}}) {
    const absl::Status status = job.CheckRequest(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(
        Message(status),
        HasSubstr(fmt::format("request 9: epoch {}: a stream", request.epoch)));
  }
}

}  // namespace
}  // namespace leat::worker
