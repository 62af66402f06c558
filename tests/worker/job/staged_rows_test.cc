// SPDX-License-Identifier: Apache-2.0
//
// Rows in groups follow the same policy for bad samples as rows one by one.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/fake_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

// Files that begin with '!' fail in Prepare, those with '?' in Run, those with
// '#' break the device. For those with '~' the group has no answer in the first
// Run; prepared again, they follow the rest of the file.
class FakeGroup final : public KernelGroup {
 public:
  FakeGroup(const GroupOutputs& outputs, int* runs)
      : outputs_(outputs), rows_(outputs.rows), runs_(runs) {}
  absl::Status Prepare(size_t row, const RowInput&, StoredSample stored,
                       ThreadState*) override {
    rows_[row].reset();
    char first = static_cast<char>(stored.fields[0].bytes[0]);
    if (first == '~' && again_.contains(row))
      first = static_cast<char>(stored.fields[0].bytes[1]);
    if (first == '!') return DataLoss("it is bad");
    rows_[row] = first;
    return absl::OkStatus();
  }
  void Forget(size_t row) override { done_.insert(row); }
  void Run(Done done) override {
    ++*runs_;
    std::vector<absl::Status> statuses(rows_.size());
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (done_.contains(row)) continue;
      const char value = rows_[row].value_or(0);
      if (value == '#') {
        statuses.assign(rows_.size(), Unavailable("the device is gone"));
        break;
      }
      if (value == '?') {
        statuses[row] = DataLoss("it is bad inside");
        rows_[row].reset();
        continue;
      }
      if (value == '~') {
        statuses[row] = Aborted("the group cannot say");
        again_.insert(row);
        rows_[row].reset();
        continue;
      }
      done_.insert(row);
      std::memset(outputs_.At(0, row), value, outputs_.field_bytes[0]);
      if (outputs_.field_bytes.size() > 2)
        *outputs_.At(2, row) = std::byte{rows_[row].has_value()};
    }
    done(statuses, nullptr);
  }

 private:
  const GroupOutputs outputs_;
  std::vector<std::optional<char>> rows_;
  std::set<size_t> done_, again_;
  int* const runs_;
};

class StagedKernel final : public RowKernel {
 public:
  explicit StagedKernel(int* runs) : runs_(runs) {}
  absl::Status Run(const RowInput& input, ThreadState*,
                   std::span<const std::span<std::byte>>) const override {
    return Internal("not one by one");
  }
  bool staged(bool) const override { return true; }
  std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const override {
    return std::make_unique<FakeGroup>(outputs, runs_);
  }

 private:
  int* const runs_;
};

class StagedRowsTest : public ::testing::Test {
 protected:
  StagedRowsTest() {
    for (const char c : std::string("abcdef")) Write(c, std::string(1, c));
    context_ = {.kernels = {.compile = [this](const CheckedGraph&, DecoderClass)
                                -> absl::StatusOr<std::unique_ptr<RowKernel>> {
                  return std::make_unique<StagedKernel>(&runs_);
                }},
                .bad_samples = &bad_,
                .ownership = &ownership_};
  }
  void Write(char name, const std::string& text) {
    dir_.Write(std::string("k/") + name + ".jpg", text);
  }
  void Open(BadSamplePolicy policy) {
    auto info = MakeFakeJob(dir_.path(), 6, policy);
    ASSERT_TRUE(info.ok()) << info.status();
    auto source = OpenSource(info->info.spec.pipeline.nodes[0], info->blob, {});
    // Files are rewritten between cases, which the cache cannot know.
    job_.reset();
    context_.cache = &cache_.emplace(1 << 20);
    auto job = JobRuntime::Create(info->info, {*std::move(source)}, &context_);
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *job;
  }
  // Returns the first bytes of the rows of samples 0 to 5, or the error.
  absl::StatusOr<std::string> Rows() {
    std::vector<uint64_t> offsets;
    size_t bytes = 0;
    for (const size_t each : job_->field_bytes()) {
      offsets.push_back(bytes);
      bytes += 6 * each;
    }
    std::vector<std::byte> memory(bytes, std::byte{77});
    const auto stage = job_->BeginGroup({.rows = 6,
                                         .base = memory.data(),
                                         .offsets = offsets,
                                         .field_bytes = job_->field_bytes()});
    for (uint32_t row = 0; row < 6; ++row)
      RETURN_IF_ERROR(
          stage->Prepare(row, {.row = row, .sample = row}, nullptr));
    std::optional<absl::Status> status;
    stage->Finish([&](const std::vector<absl::Status>& rows) {
      status.emplace();
      for (const absl::Status& row : rows) status->Update(row);
      by_row_ = rows;
    });
    if (!status) return Internal("not done");
    RETURN_IF_ERROR(*status);
    std::string rows;
    for (size_t row = 0; row < 6; ++row)
      rows += static_cast<char>(memory[row * kFakeImageBytes]);
    valid_.clear();
    if (offsets.size() > 2)
      for (size_t row = 0; row < 6; ++row)
        valid_ += memory[offsets[2] + row] == std::byte{1} ? '1' : '0';
    return rows;
  }
  char Substitute(uint64_t sample, const std::string& bad) {
    const std::string names = "abcdef";
    for (uint32_t attempt = 0;; ++attempt) {
      const char name = names[job_->plan().Substitute(0, sample, attempt)];
      if (bad.find(name) == std::string::npos) return name;
    }
  }

  TempDir dir_;
  std::optional<SampleCache> cache_;
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext context_;
  std::shared_ptr<const JobRuntime> job_;
  int runs_ = 0;
  std::string valid_;
  std::vector<absl::Status> by_row_;  // the stage's result for each
};

TEST_F(StagedRowsTest, GoodRowsTakeOneRun) {
  Open(BadSamplePolicy::kFail);
  EXPECT_EQ(*Rows(), "abcdef");
  EXPECT_EQ(runs_, 1);
}

TEST_F(StagedRowsTest, ARowWithoutAnAnswerIsPreparedAgainFromTheSameSample) {
  Write('c', "~z");
  Open(BadSamplePolicy::kReplace);
  EXPECT_EQ(*Rows(), "abzdef");
  EXPECT_EQ(runs_, 2);
  EXPECT_TRUE(bad_.Take().empty());
  Write('c', "~!");
  Open(BadSamplePolicy::kFail);
  const absl::Status status = Rows().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("sample 2: "));
  Open(BadSamplePolicy::kReplace);
  EXPECT_EQ(*Rows(), std::string("ab") + Substitute(2, "c") + "def");
  EXPECT_EQ(bad_.Take().size(), 1u);
  Open(BadSamplePolicy::kZero);
  EXPECT_EQ(*Rows(), std::string("ab\0def", 6));
  EXPECT_EQ(valid_, "110111");
}

TEST_F(StagedRowsTest, FailNamesTheSampleWhereverItTurnsOutBad) {
  for (const char* text : {"!", "?"}) {
    Write('c', text);
    Open(BadSamplePolicy::kFail);
    const absl::Status status = Rows().status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("sample 2: "));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("k/c.jpg: it is bad"));
    EXPECT_EQ(bad_.Take().at("job").at(2).count, 1u);
    EXPECT_EQ(std::exchange(runs_, 0), *text == '!' ? 0 : 1);
  }
}

TEST_F(StagedRowsTest, ABadSampleFailsItsRowAlone) {
  Write('c', "?");
  Open(BadSamplePolicy::kFail);
  EXPECT_TRUE(absl::IsDataLoss(Rows().status()));
  ASSERT_EQ(by_row_.size(), 6u);
  for (size_t row = 0; row < 6; ++row)
    EXPECT_EQ(by_row_[row].ok(), row != 2) << row;
  EXPECT_EQ(runs_, 1);
}

TEST_F(StagedRowsTest, ReplaceTakesTheSameSubstituteWhereverItTurnsOutBad) {
  for (const char* text : {"!", "?"}) {
    Write('c', text);
    Write('e', text);
    Open(BadSamplePolicy::kReplace);
    std::string expected = "abcdef";
    expected[2] = Substitute(2, "ce");
    expected[4] = Substitute(4, "ce");
    const auto rows = Rows();
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, expected);
    // A bad sample within runs again, with its substitute.
    EXPECT_EQ(std::exchange(runs_, 0) > 1, *text == '?');
  }
}

TEST_F(StagedRowsTest, ReplaceEndsWhereEverySampleIsBad) {
  for (const char* text : {"!", "?"}) {
    for (const char c : std::string("abcdef")) Write(c, text);
    Open(BadSamplePolicy::kReplace);
    const absl::Status status = Rows().status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("16 substitutes"));
    EXPECT_EQ(std::exchange(runs_, 0) > 0, *text == '?');
  }
}

TEST_F(StagedRowsTest, ZeroMarksTheRowWhereverItTurnsOutBad) {
  for (const char* text : {"!", "?"}) {
    Write('c', text);
    Open(BadSamplePolicy::kZero);
    const auto rows = Rows();
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, std::string("ab\0def", 6));
    EXPECT_EQ(valid_, "110111");
    EXPECT_EQ(std::exchange(runs_, 0), *text == '!' ? 1 : 2);
  }
}

TEST_F(StagedRowsTest, ADevicesErrorIsNobodysBadSample) {
  Write('c', "#");
  Open(BadSamplePolicy::kZero);
  const absl::Status status = Rows().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(bad_.total(), 0u);
}

}  // namespace
}  // namespace leat::worker
