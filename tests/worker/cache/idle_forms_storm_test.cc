// SPDX-License-Identifier: Apache-2.0
//
// Idle threads make forms while rows come and go, records change, the cache is
// full, and the worker drains or stops.
#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/cache/idle_forms_fixture.h"
#include "tests/worker/scheduler/fixture.h"

namespace leat::worker {
namespace {

constexpr uint64_t kRecords = 64;
constexpr size_t kFileBytes = 4000, kFormBytes = 20'000;
// Records, and forms of half of them.
constexpr uint64_t kLimit =
    kRecords * (kFileBytes + 300) + kRecords / 2 * kFormBytes;

std::atomic<uint64_t> off_priority{0};
// A descriptor of the process, and how often a maker had it.
const int descriptor = eventfd(0, EFD_CLOEXEC);
std::atomic<uint64_t> with_descriptor{0};

// Reads the file repeatedly, as long as a form would take.
class BusyMaker final : public FormMaker {
 public:
  absl::StatusOr<KeptForm> Make(const FormOrder& order,
                                const std::atomic<uint32_t>& give_up) override {
    off_priority += sched_getscheduler(0) != SCHED_IDLE;
    with_descriptor += fcntl(descriptor, F_GETFD) != -1;
    for (int row = 0; row < 20; ++row) {
      if (give_up != 0) return Cancelled("given up");
      for (const std::byte each : order.file) EXPECT_EQ(each, order.file[0]);
    }
    if (std::to_integer<int>(order.file[0]) % 16 == 3)
      return DataLoss("damaged");
    return FormThatIsNoForm(order.kind, kFormBytes);
  }
};

class IdleStorm : public ::testing::Test {
 protected:
  // Rows can pay for nothing.
  IdleStorm() {
    cache_.forms().account().Save(-std::chrono::hours(1));
    work_row_->on_compute = [this](uint64_t epoch, uint64_t sample) {
      Decode(sample % kRecords, epoch);
    };
  }

  // Decodes like a job's row.
  void Decode(uint64_t record, uint64_t epoch) {
    const auto sample = cache_.Get(kept_, {.number = record}, true, [&] {
      const auto file = std::make_shared<const std::vector<std::byte>>(
          kFileBytes, static_cast<std::byte>(record + 64 * ++reads_));
      StoredSample stored = StoredImage(*file, 1);
      stored.owner =
          std::make_shared<const std::pair<std::shared_ptr<const void>,
                                           std::shared_ptr<const void>>>(
              stored.owner, file);
      return absl::StatusOr<StoredSample>(std::move(stored));
    });
    SampleForms forms(&cache_, &kept_, record, {},
                      {.job = &job_, .epoch = epoch, .idle = &work_});
    const std::span<const std::byte> file = sample->fields[0].bytes;
    const FormWish wish = forms.Begin(file, DecodeClass::kFull);
    for (int i = 0; i < 5 && wish.use.form == nullptr; ++i)
      for (const std::byte each : file) EXPECT_EQ(each, file[0]);
    FormAnswer answer;
    if (wish.use.form != nullptr) answer.used = wish.use.kind;
    if (wish.make.pixels)
      answer.made.push_back(
          FormThatIsNoForm(JpegFormKind::kPixels, kFormBytes));
    forms.End(std::move(answer));
  }

  // Reads the rows of an epoch, in requests of a few, by two jobs in turns.
  void ReadEpoch(uint64_t epoch) {
    for (uint64_t first = 0; first < kRecords;) {
      const auto rows = static_cast<uint32_t>(
          std::min<uint64_t>(kRecords - first, 1 + random_() % 8));
      const size_t of = random_() % streams_.size();
      ASSERT_TRUE(scheduler_
                      ->Ask(streams_[of],
                            MakeRequest(++requests_, epoch, first, first, rows))
                      .ok());
      if (random_() % 8 == 0) {
        const absl::Status another_jobs = scheduler_->Ask(
            streams_[1 - of], MakeRequest(++requests_, 0, 0, 0, 2));
        ASSERT_TRUE(another_jobs.ok());
      }
      ASSERT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
      first += rows;
    }
    sink_->Take();
    reading_.At(epoch, 0);
  }
  void PushOut() {
    cache_.SetOwned("photos", {false});
    const auto other = cache_.Open(HashOf("other"), "other", "other", 4);
    for (uint64_t record = 0; record < 4; ++record)
      cache_.Put(other, {.number = record}, StoredImage(large_, 1));
    cache_.SetOwned("photos", {true});
    cache_.SetOwned("other", {false});
  }

  const std::vector<std::byte> large_ = std::vector<std::byte>(kLimit / 5);
  IdleWork work_;
  SampleCache cache_{kLimit, nullptr, Clock::Real(), {.pixels = true}};
  const SampleCache::DatasetPtr kept_ =
      cache_.Open(HashOf("photos"), "photos", "photos", kRecords);
  const Digest job_ = HashOf("job");
  FormHorizon::Reading reading_{SampleCache::HorizonOf(kept_), {.job = job_}};
  IdleForms idle_{
      {.makers = 2, .make_maker = [] { return std::make_unique<BusyMaker>(); }},
      &cache_,
      &work_,
      Clock::Real(),
      Clock::Real()};
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  BufferPool pool_{16 << 20, wake_};
  const std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  const std::shared_ptr<FakeWork> work_row_ = std::make_shared<FakeWork>("a"),
                                  other_row_ = std::make_shared<FakeWork>("b");
  std::unique_ptr<Scheduler> scheduler_ = std::make_unique<Scheduler>(
      SchedulerOptions{.threads = 2, .idle = &work_}, &pool_, wake_,
      Clock::Real());
  std::vector<Scheduler::StreamId> streams_ = {
      *scheduler_->OpenStream(work_row_, sink_),
      *scheduler_->OpenStream(other_row_, sink_)};
  std::minstd_rand random_{7};
  std::atomic<int> reads_{0};
  uint64_t requests_ = 0;
};

// ctest bounds the test's time.
TEST_F(IdleStorm, FormsAreMadeBetweenRowsUntilTheWorkerDrains) {
  ASSERT_TRUE(idle_.started().ok());
  sink_->KeepNothing();
  uint64_t epoch = 0;
  for (; epoch < 15; ++epoch) {
    ReadEpoch(epoch);
    if (epoch % 5 == 4) PushOut();
    EXPECT_LE(cache_.stats().bytes, kLimit);
  }
  // No rows are requested: the lacking forms are made, while there is room.
  ReadEpoch(epoch++);
  while (idle_.stats().made == 0) {
    if (work_.size() == 0) ReadEpoch(epoch++);
    std::this_thread::yield();
  }
  EXPECT_LE(cache_.stats().bytes, kLimit);
  ReadEpoch(epoch++);
  work_.Shut();
  ReadEpoch(epoch++);
  scheduler_->Stop();
  idle_.Stop();
  EXPECT_EQ(off_priority, 0u);
  ASSERT_NE(fcntl(descriptor, F_GETFD), -1);
  EXPECT_EQ(with_descriptor, 0u);
  const IdleForms::Stats stats = idle_.stats();
  EXPECT_GE(stats.took, Duration(0));
}

TEST_F(IdleStorm, AWorkerStopsWhileFormsAreMade) {
  sink_->KeepNothing();
  for (uint64_t epoch = 0; epoch < 4; ++epoch) ReadEpoch(epoch);
  if (random_() % 2 == 0) std::this_thread::yield();
  idle_.Stop();
  const uint64_t made = idle_.stats().made;
  ReadEpoch(4);
  scheduler_->Stop();
  idle_.Stop();
  EXPECT_EQ(idle_.stats().made, made);
}

}  // namespace
}  // namespace leat::worker
