// SPDX-License-Identifier: Apache-2.0
//
// A coordinator's metrics for Prometheus: every field of its reports, and the
// truth about its state.
#include "server/metrics.h"

#include <memory>
#include <string>
#include <utility>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/types.pb.h"
#include "tests/support/field_metrics.h"

namespace leat::server {
namespace {

using ::testing::HasSubstr;

TEST(CoordinatorMetrics, HaveEveryFieldThatIsReported) {
  for (const rpc::ReportedMessage& reported : ReportedMessages())
    // The workers' own pages have the rest.
    if (reported.message != v1::WorkerStats::descriptor()) {
      EXPECT_EQ(FieldTrouble(*reported.message, reported.fields), "");
    }
}

// Appends wait until they are released.
class SlowStore final : public MemoryStore {
 public:
  explicit SlowStore(FakeClock* clock) : clock_(clock) {}
  absl::Status Append(const Event& event) override {
    clock_->Advance(next_);
    if (!fails_) return MemoryStore::Append(event);
    return ResourceExhausted("the disk is full");
  }
  void Take(Duration time, bool fails) {
    next_ = time;
    fails_ = fails;
  }

 private:
  FakeClock* const clock_;
  Duration next_{};
  bool fails_ = false;
};

TEST(TimedStore, CountsWritesByTheirTime) {
  FakeClock clock;
  auto slow = std::make_unique<SlowStore>(&clock);
  SlowStore* const inner = slow.get();
  TimedStore store(std::move(slow), &clock);
  const auto append = [&](Duration time, bool fails) {
    inner->Take(time, fails);
    return store.Append({});
  };
  EXPECT_EQ(append(std::chrono::milliseconds(3), false), absl::OkStatus());
  EXPECT_EQ(append(std::chrono::milliseconds(4), false), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(append(std::chrono::seconds(9), true)));
  const TimedStore::Times times = store.times();
  EXPECT_EQ(times.counts[2], 2u);  // up to 5 ms
  EXPECT_EQ(times.counts.back(), 1u);
  EXPECT_EQ(times.failed, 1u);
  EXPECT_DOUBLE_EQ(times.seconds, 9.007);
  EXPECT_FALSE(times.writing_since.has_value());
  EXPECT_EQ(store.sequence(), 2u);
}

class MetricsOfTest : public ::testing::Test {
 protected:
  std::string Page(const MetricSources& sources) {
    return MetricsOf(coordinator_, sources, Now::Of(clock_));
  }

  FakeClock clock_;
  MemoryStore store_;
  Coordinator coordinator_{CoordinatorConfig{.cluster = "north"}, &store_, 1,
                           [] {}};
};

TEST_F(MetricsOfTest, SayHowTheStateIs) {
  ASSERT_EQ(coordinator_.Recover(), absl::OkStatus());
  MetricSources sources;
  sources.writes.counts = {1, 2};
  sources.writes.counts.back() = 1;
  sources.writes.failed = 3;
  const std::string good = Page(sources);
  for (const char* line :
       {"leat_build_info{cluster=\"north\",daemon=\"coordinator\",version=\"",
        "leat_state_writable 1\n", "leat_listener_up 1\n",
        "leat_coordinator_commit_seconds_bucket{le=\"0.001\"} 1\n",
        "leat_coordinator_commit_seconds_bucket{le=\"0.002\"} 3\n",
        "leat_coordinator_commit_seconds_bucket{le=\"+Inf\"} 4\n",
        "leat_coordinator_commits_failed_total 3\n",
        "# TYPE leat_cert_expiry_timestamp_seconds gauge\n# ", "leat_jobs 0\n"})
    EXPECT_THAT(good, HasSubstr(line));
  sources.state_writable = Unavailable("hangs");
  sources.daemon.answers = Unavailable("deaf");
  sources.daemon.certificate = {
      .end = WallTime(std::chrono::seconds(2'000'000'000)),
      .begin = WallTime(std::chrono::seconds(1'900'000'000))};
  const std::string bad = Page(sources);
  for (const char* line : {"leat_state_writable 0\n", "leat_listener_up 0\n",
                           "leat_cert_expiry_timestamp_seconds 2000000000\n",
                           "leat_cert_begin_timestamp_seconds 1900000000\n"})
    EXPECT_THAT(bad, HasSubstr(line));
}

TEST_F(MetricsOfTest, CountWorkersByStateAndFindings) {
  ASSERT_EQ(coordinator_.Recover(), absl::OkStatus());
  WorkerRegistration registration;
  registration.name = "w1";
  registration.address = "127.0.0.1:1";
  registration.threads = 3;
  registration.decoder_classes = {DecoderClass::kExact};
  const auto session =
      coordinator_.RegisterWorker(registration, Now::Of(clock_), [] {});
  ASSERT_TRUE(session.ok()) << session.status();
  v1::WorkerStats stats;
  stats.set_rows_per_s(12.5);
  ASSERT_EQ(coordinator_.Heartbeat(
                *session,
                {.capacity_rows_per_s = 20,
                 .stats = std::make_shared<const v1::WorkerStats>(stats)},
                {}, Now::Of(clock_)),
            absl::OkStatus());
  clock_.Advance(std::chrono::seconds(1));
  const std::string page = Page({});
  for (const char* line :
       {"leat_workers{state=\"ready\"} 1\n", "leat_workers{state=\"lost\"} 0\n",
        "leat_workers_threads 3\n", "leat_workers_rows_per_second 12.5\n",
        "leat_worker_lease_age_seconds 1\n"})
    EXPECT_THAT(page, HasSubstr(line));
}

}  // namespace
}  // namespace leat::server
