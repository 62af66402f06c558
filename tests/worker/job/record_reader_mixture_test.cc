// SPDX-License-Identifier: Apache-2.0
//
// Records of several datasets of one job: what is read together, and storage of
// one of them that fails.
#include <filesystem>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/mixed_job.h"
#include "worker/job/record_reader.h"
#include "worker/job/storage_failures.h"

namespace leat::worker {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Reads all samples by one request, and refuses those that are not its own.
class TogetherSource final : public FormatSource {
 public:
  explicit TogetherSource(std::shared_ptr<const Source> source)
      : source_(std::move(source)) {}
  uint64_t num_samples() const override { return source_->num_samples(); }
  uint64_t RecordOf(uint64_t sample) const override {
    return source_->RecordOf(sample);
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    EXPECT_LT(sample, num_samples());
    return source_->Read(sample);
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override {
    together.assign(samples.begin(), samples.end());
    return source_->ReadMany(samples);
  }
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits&) const override {
    return samples.size();
  }
  const Digest& fingerprint() const override { return source_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return source_->Describe(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return source_->Locate(sample);
  }
  mutable std::vector<uint64_t> together;  // by the last ReadMany

 private:
  const std::shared_ptr<const Source> source_;
};

class MixedRecords : public MixtureTest {
 protected:
  // Opens the job over TogetherSources.
  void OpenTogether(const JobSpec& spec) {
    const MixedJob job = Job(spec);
    std::vector<std::shared_ptr<const Source>> sources;
    for (const auto& source : SourcesOf(job))
      sources.push_back(
          together_.emplace_back(std::make_shared<TogetherSource>(source)));
    auto runtime = JobRuntime::Create(job.info, std::move(sources), &context_);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    job_ = *runtime;
  }

  std::vector<std::shared_ptr<TogetherSource>> together_;
  std::shared_ptr<const JobRuntime> job_;
};

TEST_F(MixedRecords, ReadsTogetherWhatIsOfOneSource) {
  OpenTogether(Spec());
  ASSERT_NE(job_, nullptr);
  using Samples = std::vector<uint64_t>;
  EXPECT_EQ(job_->CountTogether(Samples{3, 4, 5, 6, 7}), 3u);
  EXPECT_EQ(job_->CountTogether(Samples{6, 7, 8}), 3u);
  EXPECT_EQ(job_->CountTogether(Samples{9, 10}), 1u);
  EXPECT_EQ(job_->CountTogether(Samples{12}), 1u);
  const std::vector<RowOf> rows = {{.sample = 7}, {.sample = 8}, {.sample = 9}};
  const std::vector<RowRecords> records = job_->ReadTogether(rows);
  EXPECT_THAT(together_[1]->together, ElementsAre(1, 2, 3));
  ASSERT_THAT(records, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i][0].sample, rows[i].sample);
    ASSERT_TRUE(records[i][0].stored.ok());
    EXPECT_EQ(static_cast<char>(records[i][0].stored->fields[0].bytes[0]),
              kMixedSamples[rows[i].sample]);
    RowOf row = rows[i];
    row.records = &records[i];
    EXPECT_EQ(std::get<3>(DrawnAt(*job_, row)), kMixedSamples[row.sample]);
  }
  EXPECT_THAT(together_[0]->together, IsEmpty());
}

// Storage of one source fails: the others are read, and probes of it read its
// own samples.
TEST_F(MixedRecords, AFailureOfOneSourcesStorageIsItsOwn) {
  FakeClock clock;
  StorageFailures failures(clock);
  context_.failures = &failures;
  context_.read_attempts = 1;
  OpenTogether(Spec());
  ASSERT_NE(job_, nullptr);
  const std::string code = dir_.path() + "/code";
  std::filesystem::rename(code, code + ".away");
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Fields(*job_, {.sample = 11}).status();
    EXPECT_EQ(FaultOf(status), Fault::kWorker) << status;
    clock.Advance(milliseconds(1100));
  }
  const auto lasting = failures.Lasting();
  ASSERT_THAT(lasting, SizeIs(1));
  EXPECT_EQ(lasting[0].root, code);
  EXPECT_THAT(lasting[0].fingerprints,
              ElementsAre(job_->job().datasets[2].fingerprint));
  for (const uint64_t sample : {0, 6})
    EXPECT_TRUE(Fields(*job_, {.sample = sample}).ok()) << sample;
  failures.Probe();
  EXPECT_THAT(failures.Lasting(), SizeIs(1));
  std::filesystem::rename(code + ".away", code);
  clock.Advance(milliseconds(1100));
  failures.Probe();
  EXPECT_THAT(failures.Lasting(), IsEmpty());
  EXPECT_TRUE(Fields(*job_, {.sample = 12}).ok());
}

}  // namespace
}  // namespace leat::worker
