// SPDX-License-Identifier: Apache-2.0
//
// Rows that use their partners: which, and what happens if one is bad.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/fake_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

// A row's own first byte, followed by its partner's. A file "-" wants no
// partner; "!" is bad. Reads the partner first, which does not matter.
absl::Status Mix(const RowInput& input,
                 std::span<const std::span<std::byte>> outputs) {
  const auto first = [](const RowInput& of) -> absl::StatusOr<std::byte> {
    const std::byte byte = of.fields[0].bytes[0];
    if (byte == std::byte{'!'}) return DataLoss("it is bad");
    return byte;
  };
  ASSIGN_OR_RETURN(outputs[0][0], first(input));
  outputs[0][1] = std::byte{'-'};
  if (outputs[0][0] == std::byte{'-'}) return absl::OkStatus();
  const absl::StatusOr<RowInput> look = input.partner->Input();
  EXPECT_TRUE(look.ok()) << look.status();
  const std::byte looked = look->fields[0].bytes[0];
  return input.partner->With([&](const RowInput& other) -> absl::Status {
    EXPECT_EQ(other.step, input.step);
    EXPECT_EQ(other.step_epoch, input.step_epoch);
    if (other.sample == look->sample) {
      EXPECT_EQ(other.fields[0].bytes[0], looked);
    } else {
      EXPECT_EQ(looked, std::byte{'!'}) << "a substitute";
    }
    ASSIGN_OR_RETURN(outputs[0][1], first(other));
    return absl::OkStatus();
  });
}

class MixKernel final : public RowKernel {
 public:
  explicit MixKernel(bool staged) : staged_(staged) {}
  absl::Status Run(
      const RowInput& input, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    return Mix(input, outputs);
  }
  bool staged(bool) const override { return staged_; }
  std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const override {
    return std::make_unique<Group>(outputs);
  }

 private:
  class Group final : public KernelGroup {
   public:
    explicit Group(const GroupOutputs& outputs) : outputs_(outputs) {}
    absl::Status Prepare(size_t row, const RowInput& input, StoredSample stored,
                         ThreadState*) override {
      RowInput own = input;
      own.fields = stored.fields;
      const std::span<std::byte> fields[] = {
          {outputs_.At(0, row), outputs_.field_bytes[0]}};
      const absl::Status status = Mix(own, fields);
      if (outputs_.field_bytes.size() > 2)
        *outputs_.At(2, row) = std::byte{status.ok()};
      if (!status.ok()) std::ranges::fill(fields[0], std::byte{});
      return status;
    }
    void Forget(size_t) override {}
    void Run(Done done) override {
      const std::vector<absl::Status> statuses(outputs_.rows);
      done(statuses, nullptr);
    }

   private:
    const GroupOutputs outputs_;
  };
  const bool staged_;
};

// Samples a … f in two steps of three rows, in order; one by one and in groups.
class JobPartnerTest : public testing::TestWithParam<bool> {
 protected:
  JobPartnerTest() {
    for (const char c : std::string("abcdef")) Write(c, std::string(1, c));
    context_ = {.kernels = {.compile = [](const CheckedGraph&, DecoderClass)
                                -> absl::StatusOr<std::unique_ptr<RowKernel>> {
                  return std::make_unique<MixKernel>(GetParam());
                }},
                .cache = &cache_,
                .bad_samples = &bad_,
                .ownership = &ownership_};
  }
  void Write(char name, const std::string& text) {
    dir_.Write(std::string("k/") + name + ".jpg", text);
  }
  void Open(BadSamplePolicy policy = BadSamplePolicy::kFail,
            LastBatch last_batch = LastBatch::kDrop) {
    auto info = MakeFakeJob(dir_.path(), 3, policy);
    ASSERT_TRUE(info.ok()) << info.status();
    info->info.spec.last_batch = last_batch;
    info = FinishFakeJob(*std::move(info));
    ASSERT_TRUE(info.ok()) << info.status();
    auto source = OpenSource(info->info.spec.pipeline.nodes[0], info->blob, {});
    auto job = JobRuntime::Create(info->info, {*std::move(source)}, &context_);
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *job;
  }
  // Returns the bytes of a row and its partner; "(invalid)".
  absl::StatusOr<std::string> Row(const RowOf& row) {
    std::vector<uint64_t> offsets;
    size_t bytes = 0;
    for (const size_t each : job_->field_bytes()) {
      offsets.push_back(bytes);
      bytes += each;
    }
    std::vector<std::byte> memory(bytes, std::byte{77});
    if (GetParam()) {
      const auto stage = job_->BeginGroup({.rows = 1,
                                           .base = memory.data(),
                                           .offsets = offsets,
                                           .field_bytes = job_->field_bytes()});
      RETURN_IF_ERROR(stage->Prepare(0, row, nullptr));
      absl::Status status = absl::UnknownError("");
      stage->Finish([&](const std::vector<absl::Status>& rows) {
        status = absl::OkStatus();
        for (const absl::Status& each : rows) status.Update(each);
      });
      RETURN_IF_ERROR(status);
    } else {
      std::vector<std::span<std::byte>> outputs;
      for (size_t f = 0; f < offsets.size(); ++f)
        outputs.emplace_back(memory.data() + offsets[f],
                             job_->field_bytes()[f]);
      RETURN_IF_ERROR(job_->Compute(row, nullptr, outputs));
    }
    if (offsets.size() > 2 && memory.back() == std::byte{0}) {
      EXPECT_EQ(memory[0], std::byte{0});
      return "(invalid)";
    }
    return std::string{static_cast<char>(memory[0]),
                       static_cast<char>(memory[1])};
  }
  absl::StatusOr<std::string> Row(uint64_t step, uint32_t row) {
    return Row({.step = step, .row = row, .sample = 3 * step + row});
  }
  // Returns the row whose partner is `row` of `step`.
  uint32_t WhoseIs(uint64_t step, uint32_t row) {
    uint32_t other = 0;
    while (job_->plan().PartnerOf(0, step, other) != row) ++other;
    return other;
  }

  TempDir dir_;
  SampleCache cache_{1 << 20};
  BadSamples bad_;
  Ownership ownership_;
  RuntimeContext context_;
  std::shared_ptr<const JobRuntime> job_;
};

TEST_P(JobPartnerTest, EveryRowFindsItsPlansPartner) {
  Open();
  for (uint64_t step = 0; step < 2; ++step)
    for (uint32_t row = 0; row < 3; ++row) {
      const uint64_t other = 3 * step + job_->plan().PartnerOf(0, step, row);
      EXPECT_EQ(*Row(step, row),
                (std::string{"abcdef"[3 * step + row], "abcdef"[other]}));
    }
}

// Row 1 of step 1 begins the second pass of a stream of four.
TEST_P(JobPartnerTest, RowsOfTwoPassesOfAStreamAreOfOneStep) {
  std::filesystem::remove(dir_.path() + "/k/e.jpg");
  std::filesystem::remove(dir_.path() + "/k/f.jpg");
  Open(BadSamplePolicy::kFail, LastBatch::kStream);
  EXPECT_EQ(job_->plan().PassOf(0, 1, 0), 0u);
  EXPECT_EQ(job_->plan().PassOf(0, 1, 1), 1u);
  for (uint32_t row = 0; row < 3; ++row) {
    const uint32_t other = job_->plan().PartnerOf(0, 1, row);
    EXPECT_EQ(*Row({.step = 1, .row = row, .sample = (3 + row) % 4}),
              (std::string{"dab"[row], "dab"[other]}));
  }
}

TEST_P(JobPartnerTest, ASampleThatIsLookedAtIsItsOwnPartner) {
  Open();
  EXPECT_EQ(*Row({.step = 0, .row = 0, .sample = 4}), "ee");
  EXPECT_EQ(*Row({.step = 99, .row = 0, .sample = 0}), "aa");
}

TEST_P(JobPartnerTest, FailNamesThePartner) {
  Write('b', "!");
  Open();
  const uint32_t row = WhoseIs(0, 1);
  const absl::Status status = Row(0, row).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(
      Message(status),
      fmt::format("sample {}: its partner, sample 1: {}/k/b.jpg: it is bad",
                  row, dir_.path()));
  const auto report = bad_.Take();
  EXPECT_EQ(report.at("job").size(), 1u);
  EXPECT_TRUE(report.at("job").contains(1));
}

TEST_P(JobPartnerTest, ReplaceTakesWhatThePartnersRowShows) {
  Write('b', "!");
  Open(BadSamplePolicy::kReplace);
  const auto shown = Row(0, 1);
  ASSERT_TRUE(shown.ok()) << shown.status();
  const auto mixed = Row(0, WhoseIs(0, 1));
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ((*mixed)[1], (*shown)[0]);
  // The bad row keeps the partner that it has by the plan.
  EXPECT_EQ((*shown)[1], "abc"[job_->plan().PartnerOf(0, 0, 1)]);
}

TEST_P(JobPartnerTest, ReplaceFindsTheOneGoodSample) {
  for (const char c : std::string("bcdef")) Write(c, "!");
  Open(BadSamplePolicy::kReplace);
  // a is among the substitutes of all.
  EXPECT_EQ(*Row(0, 0), "aa");
}

TEST_P(JobPartnerTest, ZeroMarksTheRowThatLooks) {
  Write('b', "!");
  Open(BadSamplePolicy::kZero);
  EXPECT_EQ(*Row(0, 1), "(invalid)");
  const uint32_t row = WhoseIs(0, 1);
  EXPECT_EQ(*Row(0, row), "(invalid)");
  const uint32_t third = 3 - 1 - row;
  EXPECT_EQ((*Row(0, third))[0], "abc"[third]);
  const auto report = bad_.Take();
  EXPECT_EQ(report.at("job").size(), 1u);
  EXPECT_TRUE(report.at("job").contains(1));
}

INSTANTIATE_TEST_SUITE_P(ByRowAndInGroups, JobPartnerTest, testing::Bool());

}  // namespace
}  // namespace leat::worker
