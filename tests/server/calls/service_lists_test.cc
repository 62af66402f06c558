// SPDX-License-Identifier: Apache-2.0
//
// The daemon's reports about itself, and the data that it gets about datasets.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;
using testing::Not;

TEST_F(ServiceTest, HelloSaysWhoAnswers) {
  v1::HelloResponse hello;
  const grpc::Status status =
      client_->coordinator().Hello(client_->Context().get(), {}, &hello);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(hello.cluster(), "leat");
  EXPECT_EQ(hello.version(), client_->Status().version());
  EXPECT_EQ(hello.sequence(), 0u);
}

TEST_F(ServiceTest, ListsComeInPages) {
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < 7; ++i) {
    workers.push_back(
        std::make_unique<FakeWorker>(client_.get(), fmt::format("w{}", i)));
    workers.back()->Next();
  }
  v1::ListWorkersRequest request;
  request.set_page_size(3);
  std::vector<std::string> names;
  for (int page = 0; page < 10; ++page) {
    v1::ListWorkersResponse response;
    ASSERT_TRUE(client_->admin()
                    .ListWorkers(client_->Context().get(), request, &response)
                    .ok());
    EXPECT_LE(response.workers_size(), 3);
    for (const v1::WorkerInfo& worker : response.workers())
      names.push_back(worker.name());
    request.set_page_token(response.next_page_token());
    if (response.next_page_token().empty()) break;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"w0", "w1", "w2", "w3", "w4", "w5",
                                             "w6"}));
  request.set_page_token(std::string(5000, 'x'));
  v1::ListWorkersResponse response;
  EXPECT_EQ(client_->admin()
                .ListWorkers(client_->Context().get(), request, &response)
                .error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, AnUploadThatIsRefusedIsToldToWhoWaitsForIt) {
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(SpecOf("j", "/d"), &created); });
  const v1::IndexDataset asked = worker.Asked();
  EXPECT_EQ(asked.max_index_bytes(), 64ull << 30);
  EXPECT_EQ(asked.index_block_bytes(), 4u << 20);
  v1::UploadIndexRequest request;
  request.mutable_header()->set_dataset_id(asked.dataset_id());
  request.mutable_header()->set_request_id(asked.request_id());
  request.mutable_header()->set_fingerprint("short");
  EXPECT_EQ(worker.Upload(request).error_code(), StatusCode::INVALID_ARGUMENT);
  const grpc::Status status = creating.get();
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("fingerprint: 5 bytes, want 32"));
}

TEST_F(ServiceTest, NobodyIsToldWhatAnAddressHides) {
  std::string root =
      (std::filesystem::temp_directory_path() / "leat-svc-XXXXXX");
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  config_.state_dir = root + "/state";
  Start();
  auto worker = std::make_unique<FakeWorker>(client_.get(), "a");
  const auto spec_of = [](const char* name, const char* more) {
    return SpecOf(name, fmt::format("http://u:secret-1@host/none{}", more));
  };
  std::string told;
  const auto tell = [&](const std::string& text) { told += text + "\n"; };
  v1::CreateJobResponse created;
  tell(client_->Create(spec_of("late", "?sig=secret-2"), &created, 1)
           .error_message());
  ASSERT_THAT(told, HasSubstr("still lists"));
  std::future<grpc::Status> creating = std::async([&] {
    return client_->Create(spec_of("failed", "?sig=secret-3"), &created);
  });
  v1::IndexDataset asked = worker->Asked();
  ASSERT_TRUE(worker->Upload(asked, "index").ok());
  asked = worker->Asked();
  EXPECT_THAT(asked.ShortDebugString(), HasSubstr("secret-3"));
  v1::UploadIndexRequest request;
  request.mutable_header()->set_dataset_id(asked.dataset_id());
  request.mutable_header()->set_request_id(asked.request_id());
  request.mutable_header()->set_fingerprint("short");
  EXPECT_FALSE(worker->Upload(request).ok());
  tell(creating.get().error_message());
  ASSERT_THAT(told, HasSubstr("is refused"));

  const auto look = [&] {
    v1::ListJobsResponse jobs;
    ASSERT_TRUE(
        client_->admin().ListJobs(client_->Context().get(), {}, &jobs).ok());
    ASSERT_EQ(jobs.jobs_size(), 1);
    EXPECT_TRUE(jobs.jobs(0).job().redacted());
    tell(jobs.DebugString());
    v1::ListDatasetsResponse datasets;
    ASSERT_TRUE(client_->admin()
                    .ListDatasets(client_->Context().get(), {}, &datasets)
                    .ok());
    tell(datasets.DebugString());
    tell(client_->Status().DebugString());
    v1::GetJobRequest by_name;
    by_name.set_name("j");
    v1::GetJobResponse job;
    ASSERT_TRUE(client_->coordinator()
                    .GetJob(client_->Context().get(), by_name, &job)
                    .ok());
    EXPECT_TRUE(rpc::FromProto(job.job()).ok());
    tell(job.DebugString());
    const auto context = client_->Context();
    const auto events = client_->admin().WatchEvents(context.get(), {});
    v1::WatchEventsResponse some;
    while (events->Read(&some)) tell(some.DebugString());
    // A worker that reads for the job gets the whole list.
    by_name.set_plan_hash(job.job().plan_hash());
    ASSERT_TRUE(client_->coordinator()
                    .GetJob(client_->Context().get(), by_name, &job)
                    .ok());
    EXPECT_THAT(job.DebugString(), HasSubstr("u:secret-1@host/none?sig="));
    const auto whole = rpc::FromProto(job.job());
    ASSERT_TRUE(whole.ok());
    EXPECT_FALSE(job.job().redacted());
  };
  ASSERT_TRUE(client_->Create(spec_of("j", "?sig=secret-2"), &created).ok());
  look();
  worker.reset();
  Start();
  ASSERT_TRUE(client_->Create(spec_of("j", "?sig=secret-2"), &created).ok());
  EXPECT_TRUE(created.attached());
  tell(
      client_->Create(spec_of("j", "?sig=secret-4"), &created).error_message());
  EXPECT_THAT(told, HasSubstr("query of an address"));
  look();
  EXPECT_THAT(told, HasSubstr("http://host/none"));
  EXPECT_THAT(told, Not(HasSubstr("secret-")));
  daemon_.reset();
  std::filesystem::remove_all(root);
}

TEST_F(ServiceTest, StatusLeavesOutWhatIsLarge) {
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(SpecOf("j", "/d"), &created); });
  ASSERT_TRUE(worker.Upload(worker.Asked(), "index").ok());
  ASSERT_TRUE(creating.get().ok());
  const v1::GetStatusResponse status = client_->Status();
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).job().spec().name(), "j");
  EXPECT_EQ(status.jobs(0).job().spec().pipeline().nodes_size(), 0);
  EXPECT_EQ(status.jobs(0).job().dataset().name(), "photos");
  EXPECT_GT(status.jobs(0).steps_per_epoch(), 0u);
  EXPECT_EQ(status.datasets(), 1u);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(
      client_->admin().ListJobs(client_->Context().get(), {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).job().spec().pipeline().nodes_size(), 3);
  EXPECT_EQ(jobs.next_page_token(), "");
}

TEST_F(ServiceTest, ManyJobsOfManyClassesCostAConnectionNothing) {
  constexpr int kJobs = 600, kClasses = 1000;
  std::vector<std::string> classes;
  for (int i = 0; i < kClasses; ++i)
    classes.push_back(fmt::format("class-{:04}", i));
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse first;
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(SpecOf("j000", "/d"), &first); });
  ASSERT_TRUE(worker.Upload(worker.Asked(), "index", classes).ok());
  ASSERT_TRUE(creating.get().ok());
  ASSERT_EQ(first.job().dataset().classes_size(), kClasses);
  for (int i = 1; i < kJobs; ++i) {
    v1::CreateJobResponse created;
    ASSERT_TRUE(
        client_->Create(SpecOf(fmt::format("j{:03}", i), "/d"), &created).ok());
  }
  // The call of Connect. Takes the fastest of many, as the machine may be
  // loaded.
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 20; ++i) {
    v1::HelloResponse hello;
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(client_->coordinator()
                    .Hello(client_->Context().get(), {}, &hello)
                    .ok());
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
    EXPECT_LT(hello.ByteSizeLong(), 200u);
  }
  EXPECT_LT(fastest, milliseconds(20));
  // Calls for people return no classes either, or come in pages.
  const v1::GetStatusResponse status = client_->Status();
  EXPECT_EQ(status.jobs_size(), kJobs);
  EXPECT_LT(status.ByteSizeLong(), kJobs * 1000u);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(
      client_->admin().ListJobs(client_->Context().get(), {}, &jobs).ok());
  EXPECT_LE(jobs.jobs_size(), 100);
  EXPECT_NE(jobs.next_page_token(), "");
}

TEST_F(ServiceTest, WhatLimitsAJobIsAskedForAWhileOfUpToAnHour) {
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating =
      std::async([&] { return client_->Create(SpecOf("j", "/d"), &created); });
  ASSERT_TRUE(worker.Upload(worker.Asked(), "index").ok());
  ASSERT_TRUE(creating.get().ok());
  const auto ask = [&](const std::string& job, int64_t seconds,
                       v1::GetBottleneckResponse* response) {
    v1::GetBottleneckRequest request;
    request.set_job(job);
    if (seconds != 0) request.mutable_since()->set_seconds(seconds);
    return client_->admin()
        .GetBottleneck(client_->Context().get(), request, response)
        .error_code();
  };
  v1::GetBottleneckResponse answer;
  EXPECT_EQ(ask("j", 0, &answer), grpc::StatusCode::OK);
  EXPECT_EQ(answer.limit(), "unknown");
  EXPECT_EQ(answer.job(), "j");
  EXPECT_EQ(ask("j", 3600, &answer), grpc::StatusCode::OK);
  EXPECT_EQ(ask("j", 3601, &answer), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ask("j", -1, &answer), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ask("j", int64_t{1} << 62, &answer),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ask("k", 60, &answer), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, StorageFailuresOfAHeartbeatBecomeAFinding) {
  FakeWorker worker(client_.get(), "a");
  worker.Next();
  worker.BeatWithFailure("s3://photos", "403 Forbidden");
  std::string summary;
  for (int i = 0; i < 500 && summary.empty(); ++i) {
    const v1::GetStatusResponse status = client_->Status();
    for (const v1::Finding& finding : status.findings())
      if (finding.code() == "WORKER_STORAGE") summary = finding.summary();
    if (summary.empty()) std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_THAT(summary, HasSubstr("s3://photos: 403 Forbidden"));
}

TEST_F(ServiceTest, AnUploadThatNobodyAskedForIsRefused) {
  FakeWorker worker(client_.get(), "a");
  EXPECT_EQ(worker.Upload(FakeWorker::HeaderOf({}, {})).error_code(),
            StatusCode::NOT_FOUND);
  EXPECT_EQ(worker.Upload(v1::UploadIndexRequest()).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, AListingsFailureReachesTheCaller) {
  FakeWorker worker(client_.get(), "a");
  v1::CreateJobResponse created;
  std::future<grpc::Status> creating = std::async(
      [&] { return client_->Create(SpecOf("j", "/none"), &created); });
  const v1::IndexDataset asked = worker.Asked();
  v1::UploadIndexRequest failed;
  failed.mutable_failure()->set_dataset_id(asked.dataset_id());
  failed.mutable_failure()->set_request_id(asked.request_id());
  failed.mutable_failure()->set_code(5);
  failed.mutable_failure()->set_message("/none: no such directory");
  EXPECT_TRUE(worker.Upload(failed).ok());
  const grpc::Status status = creating.get();
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("/none: no such directory"));
}

}  // namespace
}  // namespace leat::server
