// SPDX-License-Identifier: Apache-2.0
#include "worker/job/job_table.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/worker/job/job_fixture.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

// Keeps the blocks that a listing puts.
class PutBlocks final : public IndexSink {
 public:
  absl::Status Add(std::string bytes, uint64_t samples) override {
    const Digest name = HashOf(bytes);
    blocks.push_back(
        {.sha256 = name, .bytes = bytes.size(), .samples = samples});
    kept[name] = std::move(bytes);
    return absl::OkStatus();
  }
  std::vector<IndexBlock> blocks;
  std::map<Digest, std::string> kept;
};

class TableTest : public JobTest {
 protected:
  absl::StatusOr<JobTable::Runtime> Get(JobTable& table, const std::string& key,
                                        Epilogue epilogue = Epilogue::kWorker) {
    absl::StatusOr<JobTable::Runtime> result = absl::UnknownError("");
    std::latch done(1);
    table.Get(key, epilogue, [&](absl::StatusOr<JobTable::Runtime> runtime) {
      result = std::move(runtime);
      done.count_down();
    });
    done.wait();
    return result;
  }
  JobTableOptions Fast() {
    return {.max_jobs = 2,
            .max_waiting = 100,
            .threads = 2,
            .load_timeout = std::chrono::milliseconds(200),
            .first_backoff = std::chrono::milliseconds(1),
            .max_backoff = std::chrono::milliseconds(4)};
  }
};

TEST_F(TableTest, FetchesOnceHoweverManyAsk) {
  const FakeJob job = Job();
  fetcher_.Add(job);
  JobTable table(Fast(), &fetcher_, &context_);
  std::latch done(50);
  for (int i = 0; i < 50; ++i)
    table.Get(job.key(), Epilogue::kWorker,
              [&](absl::StatusOr<JobTable::Runtime> runtime) {
                EXPECT_TRUE(runtime.ok()) << runtime.status();
                done.count_down();
              });
  done.wait();
  EXPECT_EQ(fetcher_.fetches(), 1);
}

TEST_F(TableTest, WaitsForACoordinatorThatIsAway) {
  const FakeJob job = Job();
  fetcher_.Add(job);
  fetcher_.Fail(3, Unavailable("away"));
  JobTableOptions options = Fast();
  options.load_timeout = std::chrono::minutes(1);
  JobTable table(options, &fetcher_, &context_);
  EXPECT_TRUE(Get(table, job.key()).ok());
  EXPECT_EQ(fetcher_.fetches(), 4);
}

TEST_F(TableTest, GivesUpInTime) {
  fetcher_.Fail(1'000'000, Unavailable("away"));
  JobTable table(Fast(), &fetcher_, &context_);
  EXPECT_TRUE(absl::IsUnavailable(Get(table, Job().key()).status()));
}

TEST_F(TableTest, AnUnknownJobIsNotFoundAndNotRemembered) {
  const FakeJob job = Job();
  JobTable table(Fast(), &fetcher_, &context_);
  EXPECT_TRUE(absl::IsNotFound(Get(table, job.key()).status()));
  fetcher_.Add(job);
  EXPECT_TRUE(Get(table, job.key()).ok());
}

TEST_F(TableTest, TheLeastUsedJobIsForgotten) {
  const FakeJob a = Job(BadSamplePolicy::kFail, "a"),
                b = Job(BadSamplePolicy::kZero, "b"),
                c = Job(BadSamplePolicy::kReplace, "c");
  for (const FakeJob* job : {&a, &b, &c}) fetcher_.Add(*job);
  JobTable table(Fast(), &fetcher_, &context_);
  for (const FakeJob* job : {&a, &b, &a, &c, &a})
    EXPECT_TRUE(Get(table, job->key()).ok());
  EXPECT_EQ(fetcher_.fetches(), 3);
  EXPECT_TRUE(Get(table, b.key()).ok());
  EXPECT_EQ(fetcher_.fetches(), 4);
}

TEST_F(TableTest, AJobHasARuntimeForEachEpilogue) {
  dir_.Write("k/c.jpg", "!");
  const auto job = MakeFakeJob(dir_.path(), 2, BadSamplePolicy::kZero, "job",
                               /*normalized=*/true);
  ASSERT_TRUE(job.ok()) << job.status();
  fetcher_.Add(*job);
  JobTable table(Fast(), &fetcher_, &context_);
  const auto fields = Get(table, job->key(), Epilogue::kWorker);
  const auto heads = Get(table, job->key(), Epilogue::kDevice);
  ASSERT_TRUE(fields.ok() && heads.ok()) << heads.status();
  EXPECT_THAT((*fields)->field_bytes(),
              testing::ElementsAre(4 * kFakeImageBytes, 4, 1));
  EXPECT_THAT((*heads)->field_bytes(),
              testing::ElementsAre(kFakeImageBytes, 4, 1));
  // A bad sample is handled as usual.
  bool valid = true;
  EXPECT_EQ(*Row(**heads, 2, &valid), 0);
  EXPECT_FALSE(valid);
  EXPECT_EQ(*Row(**heads, 3, &valid), 'd');
  EXPECT_TRUE(valid);
  EXPECT_EQ(*Get(table, job->key(), Epilogue::kDevice), *heads);
  EXPECT_EQ(fetcher_.fetches(), 2);
}

// For a reader that opens its files with the job (LMDB), a worker without the
// files must not decide that the job is impossible.
TEST_F(TableTest, ADatasetThatCannotBeOpenedHereIsUnavailable) {
  FakeJob job = Job();
  Node& reader = job.info.spec.pipeline.nodes[0];
  reader = {.op = "readers.caffe",
            .args = {{"path", std::vector<std::string>{"/nowhere/data"}}}};
  job.info.datasets[0].types = {{ValueType::Kind::kEncoded, DType::kUint8, {}},
                                {ValueType::Kind::kTensor, DType::kInt32, {}}};
  stored::v1::LmdbIndex index;
  index.add_types()->set_encoded(true);
  index.add_types()->set_dtype(static_cast<uint32_t>(DType::kInt32));
  stored::v1::RecordFile& file = *index.add_files()->mutable_file();
  file.set_uri("/nowhere/data/data.mdb");
  file.set_bytes(10);
  file.set_identity("size=10 mtime_ns=1");
  job.blob = index.SerializeAsString();
  fetcher_.Add(job);
  JobTable table(Fast(), &fetcher_, &context_);
  const absl::Status status = Get(table, job.key()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kWorker);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("/nowhere/data"));
  EXPECT_EQ(fetcher_.fetches(), 1) << "storage's own tries are over";
}

// Runtimes and what they keep belong to a plan hash. A runtime that was fetched
// before a job was replaced continues with its own files, beside the new one.
TEST_F(TableTest, AJobThatWasReplacedGivesItsOwnBytesAndTheNewOneOthers) {
  TempDir other;
  for (const char c : std::string("ABCDEF"))
    other.Write(std::string("k/") + static_cast<char>(c - 'A' + 'a') + ".jpg",
                std::string(1, c));
  const FakeJob before = Job();
  const auto after = MakeFakeJob(other.path(), 2, BadSamplePolicy::kFail);
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_EQ(before.info.spec.name, after->info.spec.name);
  ASSERT_NE(before.key(), after->key());
  fetcher_.Add(before);
  JobTable table(Fast(), &fetcher_, &context_);
  const auto old = Get(table, before.key());
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(*Row(**old, 0), 'a');

  fetcher_.AnswerWith(before.key(), std::nullopt);
  fetcher_.Add(*after);
  const auto now = Get(table, after->key());
  ASSERT_TRUE(now.ok()) << now.status();
  for (int round = 0; round < 2; ++round)  // from the files, from the cache
    for (uint64_t sample = 0; sample < 6; ++sample) {
      EXPECT_EQ(*Row(**old, sample), static_cast<char>('a' + sample));
      EXPECT_EQ(*Row(**now, sample), static_cast<char>('A' + sample));
    }
  EXPECT_EQ(cache_.stats().records, 12u);
  EXPECT_EQ(*Get(table, before.key()), *old) << "it needs nobody any more";
  EXPECT_EQ(fetcher_.fetches(), 2);
}

TEST_F(TableTest, AJobOfAnotherPlanThanWasAskedForIsRefused) {
  const FakeJob asked = Job(), given = Job(BadSamplePolicy::kZero);
  fetcher_.AnswerWith(asked.key(), given);
  JobTable table(Fast(), &fetcher_, &context_);
  const absl::Status status = Get(table, asked.key()).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("another plan hash"));
}

TEST_F(TableTest, AnIndexOfAnotherDatasetIsRefused) {
  FakeJob job = Job();
  stored::v1::ImageFolderIndex index;
  ASSERT_TRUE(index.ParseFromString(job.blob));
  index.mutable_classes(0)->mutable_files(0)->set_bytes(99);
  job.blob = index.SerializeAsString();
  fetcher_.Add(job);
  JobTable table(Fast(), &fetcher_, &context_);
  EXPECT_TRUE(absl::IsDataLoss(Get(table, job.key()).status()));
}

TEST_F(TableTest, AJobWithAnIndexInBlocksIsOpenedWithoutThem) {
  const FakeJob job = Job();
  fetcher_.Add(job);
  const auto opened = [&] {
    JobTable table(Fast(), &fetcher_, &context_);
    return Get(table, job.key()).status();
  };
  for (const uint64_t block_bytes : {1u, 1u << 20}) {
    PutBlocks put;
    SourceLimits limits;
    limits.block_bytes = block_bytes;
    const auto built =
        BuildIndexInto(job.info.spec.pipeline.nodes[0], limits, &put);
    ASSERT_TRUE(built.ok()) << built.status();
    const FetchedBlocks index{
        put.blocks,
        IndexIdentity(built->fingerprint, built->shards, put.blocks)};
    std::map<Digest, std::string> kept = put.kept;
    fetcher_.SetBlocks(index, kept);
    EXPECT_TRUE(opened().ok()) << opened();
    // If there are several, only the head is needed now.
    for (size_t i = 1; i < put.blocks.size(); ++i)
      kept.erase(put.blocks[i].sha256);
    fetcher_.SetBlocks(index, kept);
    EXPECT_EQ(opened().ok(), put.blocks.size() > 2);
    FetchedBlocks wrong = index;
    wrong.identity[0] ^= 1;
    fetcher_.SetBlocks(wrong, put.kept);
    EXPECT_TRUE(absl::IsDataLoss(opened()));
  }
}

TEST_F(TableTest, EndsWhileAFetchIsRetried) {
  fetcher_.Fail(1'000'000, Unavailable("away"));
  JobTableOptions options = Fast();
  options.load_timeout = std::chrono::hours(1);
  options.first_backoff = std::chrono::hours(1);
  std::atomic<int> answers{0};
  {
    JobTable table(options, &fetcher_, &context_);
    for (int i = 0; i < 3; ++i)
      table.Get(std::string(32, static_cast<char>(i)), Epilogue::kWorker,
                [&](absl::StatusOr<JobTable::Runtime> runtime) {
                  EXPECT_FALSE(runtime.ok());
                  ++answers;
                });
  }
  EXPECT_EQ(answers, 3);
}

}  // namespace
}  // namespace leat::worker
