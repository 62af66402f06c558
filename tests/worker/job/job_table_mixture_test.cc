// SPDX-License-Identifier: Apache-2.0
//
// Tables with jobs of several sources.
#include <chrono>
#include <latch>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/mixed_job.h"
#include "worker/job/job_table.h"

namespace leat::worker {
namespace {

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

TEST_F(MixtureTable, FindsTheSourcesThatReadADataset) {
  const MixedJob job = Job(Spec());
  const auto runtime = Get(job);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_EQ(fetcher_.indexes(), 3);
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
  ASSERT_TRUE(Get(Job(Spec())).ok());
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
  EXPECT_EQ(cache_.stats().records, 1u);
}

TEST_F(MixtureTable, TwoSourcesOfOneDatasetShareItsIndexAndItsRecords) {
  JobSpec spec = Spec();
  spec.sources[2].pipeline = spec.sources[0].pipeline;
  const MixedJob job = Job(spec);
  const auto runtime = Get(job);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_EQ(fetcher_.indexes(), 2);
  EXPECT_THAT(table_.ReadingOf(job.info.datasets[0].id), SizeIs(1));
  const Drawn one = DrawnOf((*Fields(**runtime, {.sample = 2}))[0]);
  const Drawn two = DrawnOf((*Fields(**runtime, {.sample = 12}))[0]);
  EXPECT_EQ(std::get<3>(one), 'c');
  EXPECT_EQ(std::get<3>(two), 'c');
  EXPECT_NE(std::get<0>(one), std::get<0>(two)) << "each has its own draws";
  EXPECT_EQ(cache_.stats().records, 1u);
}

TEST_F(MixtureTable, ADatasetWhoseIndexIsNotThereIsNamed) {
  const MixedJob job = Job(Spec());
  fetcher_.Add(job);
  fetcher_.Forget(job.info.datasets[1]);
  const absl::Status status = Fetch(job.key()).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("source \"books\""));
}

// Lets requests for indexes go on when three of them are there.
class GatheringFetcher : public MixedFetcher {
 public:
  absl::StatusOr<FetchedBlocks> FetchBlocks(
      const DatasetInfo& dataset) override {
    const MonotonicTime deadline = Clock::Real().Now() + kWait;
    {
      MutexLock lock(&mu_);
      ++arrived_;
      arrived_changed_.NotifyAll();
      while (arrived_ < 3)
        if (!arrived_changed_.WaitUntil(&mu_, deadline))
          return NotFound("{} requests came at a time: want 3", arrived_);
    }
    return MixedFetcher::FetchBlocks(dataset);
  }

 private:
  static constexpr Duration kWait = std::chrono::seconds(20);
  Mutex mu_;
  CondVar arrived_changed_;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST_F(MixtureTable, SourcesAreOpenedAtATime) {
  const MixedJob job = Job(Spec());
  GatheringFetcher fetcher;
  fetcher.Add(job);
  JobTable table({.threads = 1, .opens = 3}, &fetcher, &context_);
  absl::StatusOr<JobTable::Runtime> result = absl::UnknownError("");
  std::latch done(1);
  table.Get(job.key(), Epilogue::kWorker,
            [&](absl::StatusOr<JobTable::Runtime> runtime) {
              result = std::move(runtime);
              done.count_down();
            });
  done.wait();
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(fetcher.indexes(), 3);
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
