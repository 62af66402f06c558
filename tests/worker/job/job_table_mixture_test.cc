// SPDX-License-Identifier: Apache-2.0
//
// Tables with jobs of several sources.
#include <chrono>
#include <latch>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/cluster/fault.h"
#include "core/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/job/mixed_job.h"
#include "worker/job/job_table.h"
#include "worker/job/stop_signal.h"
#include "worker/job/storage_failures.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class MixtureTable : public MixtureTest {
 protected:
  absl::StatusOr<JobTable::Runtime> Get(const MixedJob& job) {
    fetcher_.Add(job);
    return Fetch(job.key());
  }
  absl::StatusOr<JobTable::Runtime> Fetch(const std::string& key) {
    absl::StatusOr<JobTable::Runtime> result = absl::UnknownError("");
    std::latch done(1);
    table_.Get(key, Epilogue::kWorker,
               [&](absl::StatusOr<JobTable::Runtime> runtime) {
                 result = std::move(runtime);
                 done.count_down();
               });
    done.wait();
    return result;
  }

  MixedFetcher fetcher_;
  JobTable table_{{.max_jobs = 2,
                   .threads = 1,
                   .load_timeout = std::chrono::milliseconds(200),
                   .first_backoff = std::chrono::milliseconds(1),
                   .max_backoff = std::chrono::milliseconds(4)},
                  &fetcher_,
                  &context_};
};

TEST_F(MixtureTable, KnowsTheTimeThatStorageTookForEachSource) {
  const auto runtime = Get(Job(Spec()));
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_THAT(table_.StorageTimes().at("mix"), ElementsAre(0, 0, 0));
  const RecordReader& books = (*runtime)->sources()[1]->records();
  ASSERT_TRUE(books.Read({.sample = 6}).ok());
  const std::vector<uint64_t> times = table_.StorageTimes().at("mix");
  EXPECT_GT(times[1], 0u);
  EXPECT_THAT(times, ElementsAre(0, times[1], 0));
  ASSERT_TRUE(books.Read({.sample = 6}).ok());
  EXPECT_EQ(table_.StorageTimes().at("mix")[1], times[1]) << "it is in memory";
}

TEST_F(MixtureTable, FindsTheSourcesThatReadADataset) {
  const MixedJob job = Job(Spec());
  const auto runtime = Get(job);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  const uint64_t first[] = {0, 6, 10};
  for (size_t i = 0; i < 3; ++i) {
    const SourceRuntime& own = *(*runtime)->sources()[i];
    EXPECT_EQ(own.first_sample(), first[i]);
    EXPECT_EQ(table_.FindReading(own.records().dataset_key()).get(), &own);
    const auto reading = table_.ReadingOf(job.info.datasets[i].id);
    ASSERT_THAT(reading, SizeIs(1)) << i;
    EXPECT_EQ(reading[0].get(), &own);
  }
  EXPECT_EQ(table_.FindReading(HashOf("another")), nullptr);
  EXPECT_TRUE(table_.ReadingOf("another").empty());
}

// A source that was found is valid as long as it is held.
TEST_F(MixtureTable, ASourceKeepsItsRuntime) {
  const MixedJob job = Job(Spec());
  ASSERT_TRUE(Get(job).ok());
  const JobTable::SourcePtr source =
      table_.ReadingOf(job.info.datasets[1].id).at(0);
  for (const uint64_t seed : {8, 9}) {
    JobSpec other = Spec();
    other.seed = seed;
    ASSERT_TRUE(Get(Job(other)).ok());
  }
  EXPECT_EQ(source->dataset().name, "books");
  EXPECT_TRUE(source->records().Read({.sample = 7}).ok());
}

TEST_F(MixtureTable, AJobOfOneOfItsDatasetsReadsTheSameIndex) {
  const auto held = Get(Job(Spec()));
  ASSERT_TRUE(held.ok());
  for (const uint64_t sample : {0, 6, 10})
    ASSERT_TRUE(Fields(**held, {.sample = sample}).ok());
  ASSERT_EQ(fetcher_.indexes(), 3);
  JobSpec plain = Spec();
  plain.name = "plain";
  plain.pipeline = plain.sources[1].pipeline;
  plain.sources.clear();
  plain.shares.clear();
  const MixedJob job = Job(plain);
  const auto runtime = Get(job);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_EQ(fetcher_.indexes(), 3) << "it was open";
  // Both number its samples in their own way, and share what is kept of them.
  EXPECT_THAT(table_.ReadingOf(job.info.datasets[0].id), SizeIs(1));
  EXPECT_EQ(std::get<3>(DrawnOf((*Fields(**runtime, {.sample = 1}))[0])), 'B');
  const auto mixture = Fetch(Job(Spec()).key());
  EXPECT_EQ(std::get<3>(DrawnOf((*Fields(**mixture, {.sample = 7}))[0])), 'B');
  EXPECT_EQ(cache_.stats().records, 4u);
}

TEST_F(MixtureTable, TwoSourcesOfOneDatasetShareItsIndexAndItsRecords) {
  JobSpec spec = Spec();
  spec.sources[2].pipeline = spec.sources[0].pipeline;
  const MixedJob job = Job(spec);
  const auto runtime = Get(job);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_THAT(table_.ReadingOf(job.info.datasets[0].id), SizeIs(1));
  const Drawn one = DrawnOf((*Fields(**runtime, {.sample = 2}))[0]);
  const Drawn two = DrawnOf((*Fields(**runtime, {.sample = 12}))[0]);
  EXPECT_EQ(std::get<3>(one), 'c');
  EXPECT_EQ(std::get<3>(two), 'c');
  EXPECT_NE(std::get<0>(one), std::get<0>(two)) << "each has its own draws";
  EXPECT_EQ(cache_.stats().records, 1u);
  ASSERT_TRUE(Fields(**runtime, {.sample = 6}).ok());
  EXPECT_EQ(fetcher_.indexes(), 2);
}

TEST_F(MixtureTable, ASourceWithoutAnIndexFailsItsOwnRowsUntilItComes) {
  const MixedJob job = Job(Spec());
  fetcher_.Add(job);
  fetcher_.Forget(job.info.datasets[1]);
  const auto runtime = Fetch(job.key());
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_TRUE(Fields(**runtime, {.sample = 0}).ok());
  EXPECT_TRUE(Fields(**runtime, {.sample = 10}).ok());
  const absl::Status status = Fields(**runtime, {.sample = 7}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kTransient);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("dataset books"));
  fetcher_.Add(job);
  StopSignal never;  // the pauses between two tries are 4 ms at most
  for (int i = 0; i < 1000 && !Fields(**runtime, {.sample = 7}).ok(); ++i)
    never.Pause(std::chrono::milliseconds(4));
  EXPECT_TRUE(Fields(**runtime, {.sample = 7}).ok());
}

// The index of LMDB's readers is opened together with their files.
TEST_F(MixtureTable,
       ASourceThatCannotBeOpenedFailsItsOwnRowsByThisWorkersFault) {
  MixedJob job = Job(Spec());
  job.info.spec.sources[1].pipeline.nodes[0] = {
      .op = "readers.caffe",
      .args = {{"path", std::vector<std::string>{"/nowhere/data"}}}};
  job.info.datasets[1].types = {{ValueType::Kind::kEncoded, DType::kUint8, {}},
                                {ValueType::Kind::kTensor, DType::kInt32, {}}};
  stored::v1::LmdbIndex index;
  index.add_types()->set_encoded(true);
  index.add_types()->set_dtype(static_cast<uint32_t>(DType::kInt32));
  stored::v1::RecordFile& file = *index.add_files()->mutable_file();
  file.set_uri("/nowhere/data/data.mdb");
  file.set_bytes(10);
  file.set_identity("size=10 mtime_ns=1");
  job.blobs[1] = index.SerializeAsString();
  job.info.plan_hash = PlanHash(job.info.spec, job.info.datasets);
  StorageFailures failures;
  context_.failures = &failures;
  fetcher_.Add(job);
  JobTable table({.threads = 1}, &fetcher_, &context_);
  absl::StatusOr<JobTable::Runtime> runtime = absl::UnknownError("");
  std::latch done(1);
  table.Get(job.key(), Epilogue::kWorker,
            [&](absl::StatusOr<JobTable::Runtime> loaded) {
              runtime = std::move(loaded);
              done.count_down();
            });
  done.wait();
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_TRUE(Fields(**runtime, {.sample = 0}).ok());
  EXPECT_TRUE(Fields(**runtime, {.sample = 10}).ok());
  const absl::Status status = Fields(**runtime, {.sample = 7}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kWorker);
  EXPECT_EQ(SampleOf(status), 7u);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("dataset books"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("/nowhere/data"));
  EXPECT_EQ(bad_.Take().size(), 0u) << "no sample is bad";
}

TEST_F(MixtureTable, SourcesAreOpenedTogetherAheadOfTheirRows) {
  fetcher_.SendWhole(/*damaged=*/false);
  const auto result = Get(Job(Spec()));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE((*result)->reads_ahead()) << "all are open, and none waits";
  for (const uint64_t sample : {0, 6, 10})
    EXPECT_TRUE(Fields(**result, {.sample = sample}).ok());
  EXPECT_THAT(fetcher_.requests(), ElementsAre(3));
  EXPECT_EQ(fetcher_.blocks(), 0) << "the indexes came whole";
}

TEST_F(MixtureTable, IndexesThatAreCutOffOrDamagedAreFetchedAgain) {
  fetcher_.AnswerAtMost(2);
  fetcher_.SendWhole(/*damaged=*/true);
  const auto result = Get(Job(Spec()));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const uint64_t sample : {0, 6, 10})
    EXPECT_TRUE(Fields(**result, {.sample = sample}).ok());
  EXPECT_THAT(fetcher_.requests(), ElementsAre(3, 1));
  EXPECT_EQ(fetcher_.blocks(), 3) << "none is used as it came";
}

TEST_F(MixtureTable, AJobOfOtherSharesThanItsPlanHashIsRefused) {
  MixedJob job = Job(Spec());
  job.info.spec.shares[0].weights[1] = 3;
  const absl::Status status = Get(job).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(Message(status)), HasSubstr("plan hash"));
}

}  // namespace
}  // namespace leat::worker
