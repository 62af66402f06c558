// SPDX-License-Identifier: Apache-2.0
//
// The fault of an error decides what becomes of a row, one by one and in
// groups: only a bad sample may change what consumers get.
#include "core/cluster/fault.h"

#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/fake_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A dataset's own source, except for errors of some samples.
class FaultySource final : public FormatSource {
 public:
  explicit FaultySource(std::unique_ptr<Source> source)
      : source_(std::move(source)) {}
  uint64_t num_samples() const override { return source_->num_samples(); }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    ++reads;
    const auto it = faults.find(sample);
    if (it != faults.end()) return it->second;
    return source_->Read(sample);
  }
  const Digest& fingerprint() const override { return source_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return source_->Describe(sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return source_->Locate(sample);
  }
  std::map<uint64_t, absl::Status> faults;
  mutable int reads = 0;

 private:
  const std::unique_ptr<Source> source_;
};

// A row's first byte is its file's, the second its partner's, if `mixes`.
class LookingKernel final : public RowKernel {
 public:
  LookingKernel(bool staged, bool mixes) : staged_(staged), mixes_(mixes) {}
  absl::Status Run(
      const RowInput& input, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    return Look(input, outputs[0], mixes_);
  }
  bool staged(bool) const override { return staged_; }
  std::unique_ptr<KernelGroup> BeginGroup(
      const GroupOutputs& outputs) const override {
    return std::make_unique<Group>(outputs, mixes_);
  }

 private:
  static absl::Status Look(const RowInput& input, std::span<std::byte> to,
                           bool mixes) {
    to[0] = input.fields[0].bytes[0];
    if (to[0] == std::byte{'!'}) return DataLoss("it is bad");
    if (!mixes) return absl::OkStatus();
    return input.partner->With([&](const RowInput& other) -> absl::Status {
      to[1] = other.fields[0].bytes[0];
      return absl::OkStatus();
    });
  }
  class Group final : public KernelGroup {
   public:
    Group(const GroupOutputs& outputs, bool mixes)
        : outputs_(outputs), mixes_(mixes) {
      for (size_t row = 0; outputs.field_bytes.size() > 2 && row < outputs.rows;
           ++row)
        *outputs.At(2, row) = std::byte{0};  // until it is prepared
    }
    absl::Status Prepare(size_t row, const RowInput& input, StoredSample stored,
                         ThreadState*) override {
      RowInput own = input;
      own.fields = stored.fields;
      const std::span<std::byte> to(outputs_.At(0, row),
                                    outputs_.field_bytes[0]);
      const absl::Status status = Look(own, to, mixes_);
      if (outputs_.field_bytes.size() > 2)
        *outputs_.At(2, row) = std::byte{status.ok()};
      return status;
    }
    void Forget(size_t) override {}
    void Run(Done done) override {
      const std::vector<absl::Status> statuses(outputs_.rows);
      done(statuses, nullptr);
    }

   private:
    const GroupOutputs outputs_;
    const bool mixes_;
  };
  const bool staged_, mixes_;
};

// Samples a … f in one step, in order.
class JobFaultTest : public testing::TestWithParam<bool> {
 protected:
  JobFaultTest() {
    for (const char c : std::string("abcdef"))
      dir_.Write(std::string("k/") + c + ".jpg", std::string(1, c));
    context_ = {.kernels = {.compile = [this](const CheckedGraph&, DecoderClass)
                                -> absl::StatusOr<std::unique_ptr<RowKernel>> {
                  return std::make_unique<LookingKernel>(GetParam(), mixes_);
                }},
                .cache = &cache_,
                .bad_samples = &bad_,
                .ownership = &ownership_,
                .failures = &failures_};
  }
  void Open(BadSamplePolicy policy) {
    auto info = MakeFakeJob(dir_.path(), 6, policy);
    ASSERT_TRUE(info.ok()) << info.status();
    source_ = std::make_shared<FaultySource>(
        *OpenSource(info->info.spec.pipeline.nodes[0], info->blob, {}));
    auto job = JobRuntime::Create(info->info, {source_}, &context_);
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *job;
  }
  // Returns a row's first two bytes, or "(invalid)".
  absl::StatusOr<std::string> Row(uint32_t row,
                                  std::vector<uint64_t> absent = {}) {
    std::vector<uint64_t> offsets;
    size_t bytes = 0;
    for (const size_t each : job_->field_bytes()) {
      offsets.push_back(bytes);
      bytes += each;
    }
    std::vector<std::byte> memory(bytes, std::byte{'-'});
    const RowOf of{.row = row, .sample = row, .absent = absent};
    if (GetParam()) {
      const auto stage = job_->BeginGroup({.rows = 1,
                                           .base = memory.data(),
                                           .offsets = offsets,
                                           .field_bytes = job_->field_bytes()});
      RETURN_IF_ERROR(stage->Prepare(0, of, nullptr));
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
      RETURN_IF_ERROR(job_->Compute(of, nullptr, outputs));
    }
    if (offsets.size() > 2 && memory.back() == std::byte{0}) return "(invalid)";
    return std::string{static_cast<char>(memory[0]),
                       static_cast<char>(memory[1])};
  }
  void Says(uint64_t sample, absl::Status status, Fault fault) {
    source_->faults[sample] = WithFault(std::move(status), fault);
  }
  StorageFailures::Dataset Dataset() const {
    return {dir_.path(), job_->job().datasets[0].fingerprint};
  }
  uint64_t PartnerOf(uint32_t row) { return job_->plan().PartnerOf(0, 0, row); }

  TempDir dir_;
  SampleCache cache_{0};
  BadSamples bad_;
  Ownership ownership_;
  FakeClock clock_;
  StorageFailures failures_{clock_};
  RuntimeContext context_;
  bool mixes_ = false;
  std::shared_ptr<FaultySource> source_;
  std::shared_ptr<const JobRuntime> job_;
};

constexpr BadSamplePolicy kPolicies[] = {
    BadSamplePolicy::kFail, BadSamplePolicy::kReplace, BadSamplePolicy::kZero};

// The code does not matter: a worker that lacks a mount also returns kNotFound.
TEST_P(JobFaultTest, AWorkersOwnFaultIsNobodysBadSample) {
  const std::pair<absl::Status, Fault> cases[] = {
      {NotFound("no mount"), Fault::kWorker},
      {DataLoss("x"), Fault::kTransient},
      {PermissionDenied("403"), Fault::kWorker},
      {FailedPrecondition("the clock"), Fault::kWorker},
      {Unavailable("EIO"), Fault::kWorker},
      {Unavailable("503"), Fault::kTransient}};
  size_t turn = 0;
  for (const auto& [status, fault] : cases) {
    Open(kPolicies[turn++ % std::size(kPolicies)]);
    for (uint64_t sample = 0; sample < 6; ++sample) Says(sample, status, fault);
    const absl::Status said = Row(2, {2}).status();
    EXPECT_TRUE(absl::IsUnavailable(said)) << said;
    EXPECT_EQ(FaultOf(said), fault) << said;
    EXPECT_EQ(SampleOf(said), 2u);
    EXPECT_THAT(std::string(Message(said)), HasSubstr("tried 3 times"));
    EXPECT_EQ(source_->reads, 3) << "no substitutes";
    failures_.Ended(Dataset(), absl::OkStatus(), source_, 0);
  }
  EXPECT_EQ(bad_.total(), 0u);
}

TEST_P(JobFaultTest, WhatIsNotThereIsBadOnlyIfTheRequestSaysSo) {
  for (const BadSamplePolicy policy : kPolicies) {
    Open(policy);
    Says(2, NotFound("gone"), Fault::kObject);
    for (const std::vector<uint64_t>& absent :
         {std::vector<uint64_t>{}, std::vector<uint64_t>{1, 3}}) {
      const absl::Status said = Row(2, absent).status();
      EXPECT_TRUE(absl::IsNotFound(said)) << said;
      EXPECT_EQ(FaultOf(said), Fault::kObject);
      EXPECT_EQ(SampleOf(said), 2u);
    }
    EXPECT_EQ(*Row(3, {2}), "d-");
  }
  EXPECT_EQ(bad_.total(), 0u);
}

TEST_P(JobFaultTest, WhatIsNotThereForOthersEitherFollowsThePolicy) {
  Open(BadSamplePolicy::kFail);
  Says(2, NotFound("gone"), Fault::kObject);
  const absl::Status said = Row(2, {2}).status();
  EXPECT_TRUE(absl::IsNotFound(said)) << said;
  EXPECT_EQ(FaultOf(said), Fault::kSample) << "final";
  Open(BadSamplePolicy::kZero);
  Says(2, NotFound("gone"), Fault::kObject);
  EXPECT_EQ(*Row(2, {0, 2}), "(invalid)");
  Open(BadSamplePolicy::kReplace);
  Says(2, NotFound("gone"), Fault::kObject);
  uint32_t attempt = 0;
  while (job_->plan().Substitute(0, 2, attempt) == 2) ++attempt;
  const uint64_t other = job_->plan().Substitute(0, 2, attempt);
  EXPECT_EQ((*Row(2, {2}))[0], "abcdef"[other]);
  EXPECT_EQ(bad_.Take().at("job").size(), 1u);
}

// This worker has it.
TEST_P(JobFaultTest, AnAbsentSampleThatIsReadIsNotBad) {
  Open(BadSamplePolicy::kZero);
  EXPECT_EQ(*Row(2, {2}), "c-");
}

TEST_P(JobFaultTest, ASubstituteThatIsNotThereIsNamed) {
  dir_.Write("k/c.jpg", "!");
  Open(BadSamplePolicy::kReplace);
  for (uint64_t sample = 0; sample < 6; ++sample)
    if (sample != 2) Says(sample, NotFound("gone"), Fault::kObject);
  std::vector<uint64_t> absent;
  // Each answer names one more, until none is left to request.
  for (int i = 0; i < 5; ++i) {
    const absl::Status said = Row(2, absent).status();
    ASSERT_EQ(FaultOf(said), Fault::kObject) << said;
    ASSERT_NE(SampleOf(said), 2u);
    absent.push_back(*SampleOf(said));
    if (absent.size() == 5) break;
    const absl::Status again = Row(2, absent).status();
    if (FaultOf(again) == Fault::kSample) return;
  }
  EXPECT_EQ(FaultOf(Row(2, absent).status()), Fault::kSample);
}

TEST_P(JobFaultTest, ASubstitutesWorkerFaultIsNotPassedOver) {
  dir_.Write("k/c.jpg", "!");
  Open(BadSamplePolicy::kReplace);
  for (uint64_t sample = 0; sample < 6; ++sample)
    if (sample != 2) Says(sample, NotFound("no mount"), Fault::kWorker);
  const absl::Status said = Row(2).status();
  EXPECT_EQ(FaultOf(said), Fault::kWorker) << said;
  EXPECT_EQ(bad_.Take().at("job").size(), 1u) << "the row's own";
}

TEST_P(JobFaultTest, APartnersFaultIsTheRows) {
  mixes_ = true;
  for (const BadSamplePolicy policy : kPolicies) {
    Open(policy);
    const uint64_t partner = PartnerOf(2);
    ASSERT_NE(partner, 2u);
    Says(partner, NotFound("no mount"), Fault::kWorker);
    EXPECT_EQ(FaultOf(Row(2, {partner}).status()), Fault::kWorker);
    failures_.Ended(Dataset(), absl::OkStatus(), source_, 0);
    Says(partner, NotFound("gone"), Fault::kObject);
    const absl::Status said = Row(2).status();
    EXPECT_EQ(FaultOf(said), Fault::kObject) << said;
    EXPECT_EQ(SampleOf(said), partner);
    EXPECT_EQ(bad_.Take().size(), 0u);
    const auto row = Row(2, {partner});
    if (policy == BadSamplePolicy::kFail)
      EXPECT_EQ(FaultOf(row.status()), Fault::kSample) << row.status();
    else if (policy == BadSamplePolicy::kZero)
      EXPECT_EQ(*row, "(invalid)");
    else
      EXPECT_EQ((*row)[0], 'c');
    EXPECT_EQ(bad_.Take().at("job").count(partner), 1u);
  }
}

TEST_P(JobFaultTest, AFailingRootIsAnsweredAtOnce) {
  Open(BadSamplePolicy::kZero);
  for (uint64_t sample = 0; sample < 6; ++sample)
    Says(sample, Unavailable("EIO"), Fault::kWorker);
  EXPECT_FALSE(Row(0).ok());
  clock_.Advance(std::chrono::milliseconds(1100));
  EXPECT_FALSE(Row(1).ok());
  ASSERT_THAT(failures_.Lasting(), SizeIs(1));
  EXPECT_EQ(failures_.Lasting()[0].root, dir_.path());
  EXPECT_THAT(failures_.Lasting()[0].fingerprints,
              ElementsAre(Dataset().fingerprint));
  EXPECT_FALSE(Row(2).ok());  // the one that is let through
  source_->reads = 0;
  for (uint32_t row = 0; row < 6; ++row) {
    const absl::Status said = Row(row).status();
    EXPECT_EQ(FaultOf(said), Fault::kWorker) << said;
    EXPECT_EQ(SampleOf(said), row);
  }
  EXPECT_EQ(source_->reads, 0);
  // It works again: the next read that is let through ends it.
  source_->faults.clear();
  clock_.Advance(std::chrono::milliseconds(1000));
  EXPECT_EQ(*Row(0), "a-");
  EXPECT_EQ(*Row(1), "b-");
  EXPECT_THAT(failures_.Lasting(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(OneByOneAndInGroups, JobFaultTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "InGroups" : "OneByOne";
                         });

}  // namespace
}  // namespace leat::worker
