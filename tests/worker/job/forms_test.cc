// SPDX-License-Identifier: Apache-2.0
//
// Rows of a job find the forms that decodes of the same records have left.
#include <memory>
#include <set>
#include <utility>

#include "gtest/gtest.h"
#include "tests/worker/job/job_fixture.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {
namespace {

// Takes 10 ms without a form, and 1 ms with one.
struct FormUser {
  void Decode(const RowInput& input) {
    ASSERT_NE(input.forms, nullptr);
    const FormWish wish =
        input.forms->Begin(input.fields[0].bytes, DecodeClass::kFull);
    FormAnswer answer;
    if (wish.use.form != nullptr) {
      answer.used = wish.use.kind;
      // It was made of these bytes.
      EXPECT_EQ(static_cast<const void*>(wish.use.form.get()),
                input.fields[0].bytes.data());
      used.insert(input.sample);
    } else if (wish.make.coefficients) {
      const auto* const form =
          reinterpret_cast<const JpegForm*>(input.fields[0].bytes.data());
      answer.made.push_back(
          {std::shared_ptr<const JpegForm>(std::make_shared<int>(), form),
           JpegFormKind::kCoefficients, 100});
    }
    clock.Advance(std::chrono::milliseconds(answer.used ? 1 : 10));
    input.forms->End(std::move(answer));
  }

  FakeClock clock;
  std::set<uint64_t> used;
};

class FormKernel final : public FakeKernel {
 public:
  explicit FormKernel(FormUser* user) : user_(*user) {}
  absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override {
    user_.Decode(input);
    return FakeKernel::Run(input, state, outputs);
  }

 private:
  FormUser& user_;
};

TEST_F(JobTest, RowsFindTheFormsOfTheirRecords) {
  FormUser user;
  SampleCache cache(1 << 20, nullptr, user.clock,
                    {.seek_index = false, .coefficients = true});
  context_.cache = &cache;
  context_.kernels.compile =
      [&](const CheckedGraph&,
          DecoderClass) -> absl::StatusOr<std::unique_ptr<RowKernel>> {
    return std::make_unique<FormKernel>(&user);
  };
  const auto job = Create(Job());
  ASSERT_TRUE(job.ok()) << job.status();
  for (uint64_t row = 0; row < 120; ++row)
    EXPECT_EQ(*Row(**job, row % 6), "abcdef"[row % 6]);
  EXPECT_EQ(user.used.size(), 6u);
  const SampleCache::Stats stats = cache.stats();
  ASSERT_EQ(stats.datasets.size(), 1u);
  ASSERT_EQ(stats.datasets[0].forms.size(), 1u);
  EXPECT_EQ(stats.datasets[0].forms[0].form, "coefficients");
  EXPECT_EQ(stats.datasets[0].forms[0].entries, 6u);
  EXPECT_EQ(stats.datasets[0].forms[0].saved_ms,
            9 * stats.datasets[0].forms[0].hits);
}

}  // namespace
}  // namespace leat::worker
