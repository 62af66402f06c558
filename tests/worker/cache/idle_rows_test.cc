// SPDX-License-Identifier: Apache-2.0
//
// Rows equal those of a job that keeps nothing, whatever forms idle threads
// make of the same records meanwhile, and whatever the account has.
#include <random>

#include "tests/support/jpeg_maker.h"
#include "tests/worker/cache/disk_forms_fixture.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "worker/cache/idle_forms.h"
#include "worker/compute/thread_clock.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::MakeJpeg;

std::vector<std::string> Photos() {
  std::vector<std::string> files;
  uint32_t seed = 0;
  for (const int h : {1, 2})
    for (const int v : {1, 2})
      for (int i = 0; i < 6; ++i)
        files.push_back(MakeJpeg({.width = 150 + 8 * i,
                                  .height = 170 - 7 * i,
                                  .h = h,
                                  .v = v,
                                  .seed = ++seed}));
  for (int i = 0; i < 4; ++i)
    files.push_back(MakeJpeg(
        {.width = 130 + i, .height = 90, .progressive = true, .seed = ++seed}));
  files.push_back(MakeJpeg(
      {.width = 131, .height = 77, .color = JpegColor::kGray, .h = 1, .v = 1}));
  files.push_back(MakeJpeg(
      {.width = 99, .height = 101, .color = JpegColor::kYcck, .h = 1, .v = 1}));
  files.push_back(MakeJpeg({.width = 90, .height = 70, .restart_interval = 3}));
  JpegDamager damager(files[0], ++seed);
  for (std::string& copy : damager.Copies(6)) files.push_back(std::move(copy));
  return files;
}

class IdleRowsTest : public DiskFormsTest {
 protected:
  // Reads epochs in a random order of rows, with times between them in which
  // forms are made, with this room.
  void CheckEpochs(uint64_t limit, FormKinds kinds, uint32_t seed,
                   uint64_t* made, uint64_t* used) {
    std::mt19937 random(seed);
    SampleCache memory(limit, &uses_, Clock::Real(), kinds,
                       &ThreadClock::Real());
    IdleWork work;
    idle_ = &work;
    const auto job = Job(&memory, nullptr);
    const auto use = job->BeginUse();
    const auto reading = job->BeginReading({});
    IdleForms threads({.makers = 2, .make_maker = JpegFormMakers({})}, &memory,
                      &work, Clock::Real(), ThreadClock::Real());
    IdleForms here({.makers = 0}, &memory, &work, Clock::Real(),
                   ThreadClock::Real());
    const auto maker = JpegFormMakers({})();
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      // In debt, or with something to spend.
      const Duration has = epoch % 2 == 0
                               ? Duration(-std::chrono::hours(1))
                               : std::chrono::milliseconds(random() % 20);
      memory.forms().account().Save(has - memory.forms().account().balance());
      for (uint64_t row = 0; row < 2 * records_; ++row) {
        const uint64_t sample = random() % records_;
        work.SetOwing(true);
        ASSERT_EQ(Compute(*job, epoch, sample), Compute(*plain_, epoch, sample))
            << "epoch " << epoch << " sample " << sample << " seed " << seed;
        work.SetOwing(false);
        for (uint32_t i = random() % 4; i > 0; --i) here.MakeOne(maker.get());
        EXPECT_LE(memory.stats().bytes, limit);
      }
    }
    threads.Stop();
    *made += here.stats().made + threads.stats().made;
    *used += DecodesByForms(memory);
    idle_ = nullptr;
  }
};

TEST_F(IdleRowsTest, RowsAreThoseOfAJobWithoutThem) {
  WriteImages(Photos());
  plain_ = Job(&nothing_, nullptr);
  uint64_t made = 0, used = 0;
  const FormKinds all = {
      .seek_index = true, .coefficients = true, .pixels = true};
  CheckEpochs(16 << 20, all, 1, &made, &used);
  CheckEpochs(1 << 20, all, 2, &made, &used);
  CheckEpochs(1 << 20, {.pixels = true}, 3, &made, &used);
  CheckEpochs(8 << 20, kBothForms, 4, &made, &used);
  CheckEpochs(300 << 10, {.seek_index = true}, 5, &made, &used);
  EXPECT_GT(made, 60u);
  EXPECT_GT(used, 200u);
}

// Scales are 1/4 to 1, and pixels are kept at 1/4.
TEST_F(IdleRowsTest, ReducedRowsAreThoseOfAJobWithoutThem) {
  WriteImages(Photos(), "auto");
  plain_ = Job(&nothing_, nullptr);
  uint64_t made = 0, used = 0;
  const FormKinds all = {
      .seek_index = true, .coefficients = true, .pixels = true};
  CheckEpochs(16 << 20, all, 1, &made, &used);
  CheckEpochs(300 << 10, all, 2, &made, &used);
  CheckEpochs(1 << 20, {.pixels = true}, 3, &made, &used);
  EXPECT_GT(made, 25u);
  EXPECT_GT(used, 200u);
}

}  // namespace
}  // namespace leat::worker
