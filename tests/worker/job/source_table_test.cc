// SPDX-License-Identifier: Apache-2.0
#include "worker/job/source_table.h"

#include <memory>
#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/mixed_job.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

class SourceTableTest : public MixtureTest {
 protected:
  SourceTableTest() { fetcher_.Add(job_); }
  ~SourceTableTest() override { table_->Stop(); }
  const DatasetInfo& dataset(size_t i) const { return job_.info.datasets[i]; }
  const Node& reader(size_t i) const {
    return PipelineOf(job_.info.spec, i).nodes[0];
  }

  std::shared_ptr<const LaterSource> Later(const DatasetInfo& dataset,
                                           const Node& reader) {
    const SourceTable::Wanted wanted = {&dataset, &reader};
    return table_->OpenLater({&wanted, 1})[0];
  }

  const MixedJob job_ = Job(Spec());
  MixedFetcher fetcher_;
  // Without threads: only rows open sources.
  const std::shared_ptr<SourceTable> table_ = std::make_shared<SourceTable>(
      SourceTable::Options{.opens = 0}, &fetcher_,
      std::make_shared<IndexCache>(IndexCacheOptions{}, &fetcher_));
};

TEST_F(SourceTableTest, ASourceIsOpenedByItsFirstRowAndOnce) {
  const auto one = Later(dataset(0), reader(0));
  const auto again = Later(dataset(0), reader(0));
  const auto other = Later(dataset(1), reader(1));
  EXPECT_EQ(fetcher_.indexes(), 0);
  EXPECT_TRUE(one->Read(0).ok());
  EXPECT_EQ(fetcher_.indexes(), 1);
  EXPECT_TRUE(again->Read(1).ok());
  const auto now = table_->Open(dataset(0), reader(0));
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_TRUE((*now)->Read(2).ok());
  EXPECT_EQ(fetcher_.indexes(), 1);
  EXPECT_TRUE(other->Read(0).ok());
  EXPECT_EQ(fetcher_.indexes(), 2);
}

TEST_F(SourceTableTest, ADatasetThatIsOpenedNowIsOpenForOthers) {
  auto now = table_->Open(dataset(2), reader(2));
  ASSERT_TRUE(now.ok()) << now.status();
  const auto later = Later(dataset(2), reader(2));
  EXPECT_EQ(later->RecordOf(2), 2u);
  EXPECT_EQ(fetcher_.indexes(), 1);
}

TEST_F(SourceTableTest, ASourceThatNoJobHoldsIsForgotten) {
  ASSERT_TRUE(table_->Open(dataset(0), reader(0)).ok());
  ASSERT_TRUE(table_->Open(dataset(0), reader(0)).ok());
  EXPECT_EQ(fetcher_.indexes(), 2);
}

TEST_F(SourceTableTest, AnErrorOfOpeningNowIsAsItWas) {
  fetcher_.Forget(dataset(1));
  const absl::Status status = table_->Open(dataset(1), reader(1)).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("no index of dataset"));
}

TEST_F(SourceTableTest, RecordsAreCountedBeforeADatasetIsOpened) {
  JobSpec spec = Spec();
  spec.sources[0].pipeline.nodes[0].args["repeat"] = int64_t{3};
  const MixedJob job = Job(spec);
  fetcher_.Add(job);
  const auto source =
      Later(job.info.datasets[0], PipelineOf(job.info.spec, 0).nodes[0]);
  EXPECT_EQ(source->num_samples(), 18u);
  EXPECT_EQ(source->num_records(), 6u);
  EXPECT_EQ(*source->FindRecord(17), 5u);
}

// The table's threads wait for nothing but sources.
TEST_F(SourceTableTest, ASourceMayOutliveTheTable) {
  auto table = std::make_shared<SourceTable>(
      SourceTable::Options{.opens = 2}, &fetcher_,
      std::make_shared<IndexCache>(IndexCacheOptions{}, &fetcher_));
  const SourceTable::Wanted wanted = {&dataset(0), &reader(0)};
  const auto source = table->OpenLater({&wanted, 1})[0];
  table->Stop();
  table.reset();
  EXPECT_TRUE(source->Read(0).ok());
}

}  // namespace
}  // namespace leat::worker
