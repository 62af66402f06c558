// SPDX-License-Identifier: Apache-2.0
//
// A worker explains samples and rows, over a real server.
#include "worker/serving/explain_service.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/explain.grpc.pb.h"
#include "rpc/call/channel.h"
#include "rpc/server/server.h"
#include "tests/worker/job/fake_job.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kRows = 8;

class ExplainServiceTest : public ::testing::Test {
 protected:
  ExplainServiceTest() {
    for (int i = 0; i < 30; ++i)
      dir_.Write(fmt::format("k/{:02}.jpg", i), std::string(i + 1, 'x'));
    const std::string address =
        fmt::format("unix-abstract:leat-explain-{}-{}", getpid(), ++number_);
    auto server =
        rpc::Server::Start({.address = address}, {}, {calls_.service()});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::ExplainService::NewStub(rpc::MakeChannel(address, {}));
  }

  // Flips, crops and mixes at random; the last batch is masked.
  FakeJob MixingJob() {
    auto made = MakeFakeJob(dir_.path(), kRows);
    EXPECT_TRUE(made.ok()) << made.status();
    FakeJob job = *std::move(made);
    JobSpec& spec = job.info.spec;
    spec.seed = 5;
    spec.order = Order::kGlobalShuffle;
    spec.last_batch = LastBatch::kMask;
    std::vector<Node>& nodes = spec.pipeline.nodes;
    nodes.resize(2);
    nodes.push_back({"random_resized_crop",
                     {{1, 0}},
                     {{"size", std::vector<int64_t>{4, 4}}}});
    nodes.push_back({"coin_flip", {}, {}});
    nodes.push_back({"flip", {{2, 0}}, {{"horizontal", NodeRef{3, 0}}}});
    nodes.push_back({"partner", {{4, 0}}, {}});
    nodes.push_back({"uniform", {}, {}});
    spec.pipeline.outputs = {
        {"image", {4, 0}}, {"other", {5, 0}}, {"share", {6, 0}}};
    return Added(std::move(job));
  }
  FakeJob Added(FakeJob job) {
    auto finished = FinishFakeJob(std::move(job));
    EXPECT_TRUE(finished.ok()) << finished.status();
    fetcher_.Add(*finished);
    return *finished;
  }

  grpc::Status Explain(const v1::ExplainRowsRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    explained_.Clear();
    return stub_->ExplainRows(&context, request, &explained_);
  }
  grpc::Status Locate(const std::string& plan_hash,
                      std::initializer_list<uint64_t> samples) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    v1::LocateSamplesRequest request;
    request.set_plan_hash(plan_hash);
    request.mutable_samples()->Add(samples.begin(), samples.end());
    located_.Clear();
    return stub_->LocateSamples(&context, request, &located_);
  }
  static v1::ExplainRowsRequest AllRows(const FakeJob& job, uint64_t step) {
    v1::ExplainRowsRequest request;
    request.set_plan_hash(job.key());
    request.set_step(step);
    for (uint32_t row = 0; row < kRows; ++row) request.add_rows(row);
    return request;
  }

  static inline std::atomic<int> number_{0};
  TempDir dir_;
  SampleCache cache_{1 << 20};
  BadSamples bad_;
  Ownership ownership_;
  const RuntimeContext context_{.kernels = FakeKernels(),
                                .cache = &cache_,
                                .bad_samples = &bad_,
                                .ownership = &ownership_};
  FakeFetcher fetcher_;
  JobTable jobs_{
      {.load_timeout = std::chrono::milliseconds(100)}, &fetcher_, &context_};
  std::atomic<bool> refuse_{false};
  ExplainCalls calls_{[this](std::string_view, const grpc::ServerContextBase&) {
                        return refuse_ ? Unauthenticated("the token is wrong")
                                       : absl::OkStatus();
                      },
                      &jobs_, ImageLimits{}};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::ExplainService::Stub> stub_;
  v1::ExplainRowsResponse explained_;
  v1::LocateSamplesResponse located_;
};

// Parts of 7 and 8 samples, which do not rotate, drift apart: step 3 is the
// first with rows of two passes, and later most steps have them.
TEST_F(ExplainServiceTest, RowsOfTwoPassesHaveTheOneDrawOfTheirStep) {
  auto made = MakeFakeJob(dir_.path(), kRows);
  ASSERT_TRUE(made.ok()) << made.status();
  JobSpec& spec = made->info.spec;
  spec.last_batch = LastBatch::kStream;
  spec.num_parts = 4;
  spec.pipeline.nodes.push_back({"beta", {}, {{"per", std::string("batch")}}});
  spec.pipeline.nodes.push_back({"beta", {}, {}});
  spec.pipeline.outputs.push_back({"shared", {3, 0}});
  spec.pipeline.outputs.push_back({"own", {4, 0}});
  const FakeJob job = Added(*std::move(made));
  std::set<double> all;
  int mixed = 0;
  for (uint64_t step = 0; step < 40; ++step) {
    ASSERT_TRUE(Explain(AllRows(job, step)).ok());
    std::set<uint64_t> passes;
    std::map<std::string, std::set<double>> drawn;
    for (const v1::ExplainedRow& row : explained_.rows()) {
      passes.insert(row.pass());
      for (const v1::Draw& draw : row.draws())
        drawn[draw.name()].insert(draw.values(0));
    }
    mixed += passes.size() > 1;
    EXPECT_EQ(drawn["shared"].size(), 1u) << step;
    EXPECT_EQ(drawn["own"].size(), kRows) << step;
    all.merge(drawn["shared"]);
  }
  EXPECT_GT(mixed, 20);
  EXPECT_EQ(all.size(), 40u);

  v1::ExplainRowsRequest request = AllRows(job, 3);
  request.set_epoch(1);
  const grpc::Status refused = Explain(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("job \"job\": epoch 1: a stream"));
}

TEST_F(ExplainServiceTest, ASampleIsLocatedBelowItsRoot) {
  const FakeJob job = MixingJob();
  const grpc::Status status = Locate(job.key(), {29, 3});
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(located_.records_size(), 2);
  const v1::StoredRecord& record = located_.records(1);
  EXPECT_EQ(record.sample(), 3u);
  EXPECT_EQ(record.root(), dir_.path());
  EXPECT_EQ(record.file(), "k/03.jpg");
  EXPECT_EQ(record.size(), 4u);
  EXPECT_FALSE(record.has_offset());
  EXPECT_FALSE(record.has_index());
  const ShardTable& shards = job.info.datasets[0].shards;
  EXPECT_EQ(record.shard(), shards.ShardOf(3));
  EXPECT_EQ(record.index_in_shard(), 3 - shards.range(record.shard()).begin);
}

TEST_F(ExplainServiceTest, RowsHoldThePlansSamplesAndNameTheirPartners) {
  const FakeJob job = MixingJob();
  const Plan plan(job.info.spec, job.info.datasets[0].shards);
  for (const uint64_t step : {uint64_t{0}, plan.steps_per_epoch() - 1}) {
    const grpc::Status status = Explain(AllRows(job, step));
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(explained_.rows_size(), int{kRows});
    bool padded = false;
    for (uint32_t row = 0; row < kRows; ++row) {
      const v1::ExplainedRow& got = explained_.rows(static_cast<int>(row));
      uint64_t sample = 0;
      plan.Samples(0, step, std::span(&row, 1), std::span(&sample, 1));
      EXPECT_EQ(got.row(), row);
      EXPECT_EQ(got.record().sample(), sample);
      EXPECT_EQ(got.record().file(), fmt::format("k/{:02}.jpg", sample));
      EXPECT_EQ(got.padding(), plan.IsPadding(0, step, row));
      padded = padded || got.padding();
      const uint32_t partner = plan.PartnerOf(0, step, row);
      EXPECT_EQ(got.partner_row(), partner);
      EXPECT_EQ(got.partner().sample(),
                explained_.rows(static_cast<int>(partner)).record().sample());
    }
    EXPECT_EQ(padded, step > 0) << "30 samples in rows of 8";
  }
}

TEST_F(ExplainServiceTest, DrawsHaveTheNamesThatThePipelineGivesThem) {
  const FakeJob job = MixingJob();
  v1::ExplainRowsRequest request = AllRows(job, 1);
  ASSERT_TRUE(Explain(request).ok());
  const auto check = [&](const char* reason) {
    for (const v1::ExplainedRow& row : explained_.rows()) {
      ASSERT_EQ(row.draws_size(), 3);
      EXPECT_EQ(row.draws(0).op(), "random_resized_crop");
      EXPECT_EQ(row.draws(0).values_size(), 0);
      EXPECT_THAT(row.draws(0).unknown(), HasSubstr(reason));
      EXPECT_EQ(row.draws(1).name(), "flip.horizontal");
      ASSERT_EQ(row.draws(1).values_size(), 1);
      EXPECT_EQ(row.draws(2).op(), "uniform");
      EXPECT_EQ(row.draws(2).name(), "share");
      ASSERT_EQ(row.draws(2).values_size(), 1);
    }
  };
  check("was not read");
  request.set_read_records(true);  // of files that are not images
  ASSERT_TRUE(Explain(request).ok());
  check("JPEG");
  for (const v1::ExplainedRow& row : explained_.rows())
    EXPECT_THAT(row.ShortDebugString(), Not(HasSubstr("xxx")))
        << "no content is shown";
}

TEST_F(ExplainServiceTest, ARecordThatIsGoneMakesItsDrawsUnknown) {
  const FakeJob job = MixingJob();
  std::filesystem::remove_all(dir_.path() + "/k");
  v1::ExplainRowsRequest request = AllRows(job, 0);
  request.set_read_records(true);
  const grpc::Status status = Explain(request);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(explained_.rows(0).draws(0).unknown(), HasSubstr(".jpg"));
  EXPECT_EQ(explained_.rows(0).draws(1).values_size(), 1);
}

TEST_F(ExplainServiceTest, WhatIsWrongWithARequestIsSaid) {
  const FakeJob job = MixingJob();
  const auto refused = [&](const grpc::Status& status, grpc::StatusCode code,
                           const char* part) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(part));
  };
  refused(Locate(job.key(), {}), grpc::INVALID_ARGUMENT, "want 1 to 1024");
  refused(Locate(job.key(), {30}), grpc::OUT_OF_RANGE, "30 samples");
  refused(Locate("nothing", {0}), grpc::NOT_FOUND, "no such job");
  v1::ExplainRowsRequest request = AllRows(job, 4);
  refused(Explain(request), grpc::OUT_OF_RANGE, "4 steps");
  request.set_step(0);
  request.add_rows(kRows);
  refused(Explain(request), grpc::OUT_OF_RANGE, "row 8");
  request.mutable_rows()->RemoveLast();
  request.set_documents(129);
  refused(Explain(request), grpc::INVALID_ARGUMENT,
          "129 documents of each of 8 rows: want at most 128");
  request.set_documents(0);
  for (int i = 0; i < 64; ++i) request.add_rows(0);
  request.set_read_records(true);
  refused(Explain(request), grpc::INVALID_ARGUMENT, "want 1 to 64");
  auto external = MakeExternalJob(30, kRows);
  ASSERT_TRUE(external.ok()) << external.status();
  fetcher_.Add(*external);
  refused(Locate(external->key(), {0}), grpc::FAILED_PRECONDITION,
          "in no storage");
  refuse_ = true;
  refused(Locate(job.key(), {0}), grpc::UNAUTHENTICATED, "the token");
}

TEST_F(ExplainServiceTest, WhoAsksAWorkerThatStopsIsSentElsewhere) {
  const FakeJob job = MixingJob();
  ASSERT_TRUE(Locate(job.key(), {0}).ok());
  calls_.Stop();
  EXPECT_EQ(Locate(job.key(), {0}).error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace leat::worker
