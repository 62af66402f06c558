// SPDX-License-Identifier: Apache-2.0
//
// The rows service behind a real server on a Unix socket, with a fake kernel.
#include "worker/serving/rows_service.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/auth.h"
#include "rpc/call/channel.h"
#include "rpc/call/raw_frame.h"
#include "rpc/server/server.h"
#include "tests/worker/serving/rows_service_fixture.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

TEST_F(RowsServiceTest, AGeneratedClientGetsEveryRowOnce) {
  Start();
  auto client = Open();
  for (uint64_t step = 0; step < kFiles / kBatch; ++step)
    ASSERT_TRUE(client->call->Write(MakeRequest(step, step)));
  std::map<std::pair<uint64_t, uint32_t>, int> seen;
  size_t rows = 0;
  v1::RowsResponse response;
  while (rows < kFiles && client->call->Read(&response)) {
    ASSERT_FALSE(response.has_error()) << response.error().message();
    const auto n = static_cast<size_t>(response.rows_size());
    ASSERT_EQ(response.payload_bytes(), n * kRowBytes);
    ASSERT_EQ(response.data().size(), n * kRowBytes);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t row = response.rows(static_cast<int>(i));
      ++seen[{response.request_id(), row}];
      const char expected =
          "0123456789"[(response.request_id() * kBatch + row) % 10];
      EXPECT_EQ(response.data()[i * kFakeImageBytes], expected);
    }
    rows += n;
  }
  EXPECT_EQ(seen.size(), kFiles);
  client->call->WritesDone();
  EXPECT_TRUE(Finish(*client).ok());
  EXPECT_EQ(rows_->counters().bytes_sent, kFiles * kRowBytes);
}

// Returns a request of a consumer that requests checksums.
v1::RowsRequest Checked(v1::RowsRequest request) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(rpc::EncodeChecked(request).Dump(&slices).ok());
  EXPECT_EQ(slices.size(), 1u);
  EXPECT_TRUE(request.ParseFromArray(slices[0].begin(),
                                     static_cast<int>(slices[0].size())));
  return request;
}

TEST_F(RowsServiceTest, AStreamIsAUseOfItsDatasetWhileItIsOpen) {
  Start();
  const Digest key = DatasetKeyOf(job_.info.datasets[0].fingerprint,
                                  job_.info.spec.pipeline.nodes[0]);
  EXPECT_FALSE(uses_.Of(key).lives);
  auto client = Open();
  ASSERT_TRUE(client->call->Write(MakeRequest(1, 0)));
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(uses_.Of(key).ended, MonotonicTime::max());
  client->call->WritesDone();
  EXPECT_TRUE(Finish(*client).ok());
  ASSERT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
  EXPECT_TRUE(uses_.Of(key).lives) << "it rests";
  EXPECT_LT(uses_.Of(key).ended, MonotonicTime::max());
}

TEST_F(RowsServiceTest, AnIteratorSaysWhereItEnds) {
  Start();
  const auto dataset =
      cache_.Open(DatasetKeyOf(job_.info.datasets[0].fingerprint,
                               job_.info.spec.pipeline.nodes[0]),
                  "", "");
  const auto& horizon = SampleCache::HorizonOf(dataset);
  auto client = Connect();
  v1::RowsRequest request;
  v1::OpenRows& open = *request.mutable_open();
  open.set_plan_hash(job_.key());
  open.set_end_epoch(2);
  open.set_rows(kBatch / 4);
  ASSERT_TRUE(client->call->Write(request));
  ASSERT_TRUE(client->call->Write(MakeRequest(1, 0)));
  v1::RowsResponse response;
  while (response.rows().empty()) ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(horizon->UsesAfter(job_.info.plan_hash, 0), 0.25);
  // A client of an older release reports no end.
  auto older = Open();
  ASSERT_TRUE(older->call->Write(MakeRequest(1, 0)));
  ASSERT_TRUE(older->call->Read(&response));
  EXPECT_EQ(horizon->UsesAfter(job_.info.plan_hash, 0),
            FormHorizon::kWithoutBound);
  for (Client* const each : {client.get(), older.get()}) {
    each->call->WritesDone();
    EXPECT_TRUE(Finish(*each).ok());
  }
  ASSERT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
  EXPECT_EQ(horizon->UsesLeft(), 0);
}

TEST_F(RowsServiceTest, ChecksumsAreSentToWhoAsksForThem) {
  Start();
  for (const bool requests : {false, true}) {
    auto client = Connect();
    v1::RowsRequest open;
    open.mutable_open()->set_plan_hash(job_.key());
    open.mutable_open()->set_checksums(requests);
    client->call->Write(requests ? Checked(open) : open);
    v1::RowsRequest request = MakeRequest(1, 0);
    client->call->Write(requests ? Checked(request) : request);
    v1::RowsResponse response;
    size_t rows = 0;
    while (rows < kBatch && client->call->Read(&response)) {
      EXPECT_EQ(response.has_crc32c(), requests);
      rows += static_cast<size_t>(response.rows_size());
    }
    EXPECT_EQ(rows, kBatch);
    client->call->WritesDone();
    EXPECT_TRUE(Finish(*client).ok());
  }
  EXPECT_EQ(rows_->counters().damaged_streams, 0u);
}

TEST_F(RowsServiceTest, WhoSendsANonceGetsAProofThatItIsTheWorker) {
  const auto key = *rpc::WorkerKey::Make();
  service_options_.key = key;
  Start();
  EXPECT_EQ(Open()->opened.proof(), "");
  v1::RowsRequest request;
  v1::OpenRows& open = *request.mutable_open();
  open.set_plan_hash(job_.key());
  open.set_consumer("test");
  open.set_nonce(*rpc::MakeNonce());
  auto client = Connect();
  ASSERT_TRUE(client->call->Write(request));
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  const absl::Status proved =
      rpc::CheckProof(key->public_key(), open, response.opened().proof());
  EXPECT_TRUE(proved.ok()) << proved;
  auto wrong = Connect();
  open.set_nonce("short");
  ASSERT_TRUE(wrong->call->Write(request));
  EXPECT_EQ(Finish(*wrong).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RowsServiceTest, ARequestThatWasChangedOnItsWayEndsItsStream) {
  Start();
  v1::RowsRequest open;
  open.mutable_open()->set_plan_hash(job_.key());
  open.mutable_open()->set_checksums(true);
  open = Checked(open);
  v1::RowsRequest changed = Checked(MakeRequest(1, 0, 1));
  changed.mutable_request()->set_samples(
      0,
      5);  // any sample is valid in such a request
  v1::RowsRequest unchecked_open = open;
  unchecked_open.clear_crc32c();
  const std::vector<std::vector<v1::RowsRequest>> bad = {
      {open, changed}, {open, MakeRequest(1, 0, 1)}, {unchecked_open}};
  for (const auto& requests : bad) {
    auto client = Connect();
    for (const v1::RowsRequest& request : requests)
      client->call->Write(request);
    EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::DATA_LOSS);
  }
  EXPECT_EQ(rows_->counters().damaged_streams, bad.size());
}

TEST_F(RowsServiceTest, AFailedRowIsAnErrorThatNamesTheFile) {
  dir_.Write("k/00003.jpg", "!");
  Start();
  auto client = Open();
  ASSERT_TRUE(client->call->Write(MakeRequest(1, 0, 8)));
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kDataLoss));
  EXPECT_THAT(response.error().message(), HasSubstr("00003.jpg"));
  EXPECT_EQ(response.error().fault(), v1::FAULT_SAMPLE);
  EXPECT_EQ(response.rows_size(), 8);
  client->context.TryCancel();
  Finish(*client);
}

TEST_F(RowsServiceTest, ARowOfAMissingFileSaysWhichUntilItIsKnownToBeAbsent) {
  Start();
  std::filesystem::remove(dir_.path() + "/k/00003.jpg");
  auto client = Open();
  v1::RowsRequest request = MakeRequest(1, 0, 8);
  ASSERT_TRUE(client->call->Write(request));
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(response.error().fault(), v1::FAULT_OBJECT);
  EXPECT_EQ(response.error().sample(), 3u);
  request.mutable_request()->set_request_id(2);
  request.mutable_request()->add_absent(3);
  ASSERT_TRUE(client->call->Write(request));
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(response.request_id(), 2u);
  EXPECT_EQ(response.error().fault(), v1::FAULT_SAMPLE)
      << "on_bad_sample: fail";
  // Another file, for the same request.
  std::filesystem::remove_all(dir_.path() + "/k");
  request.mutable_request()->set_request_id(3);
  for (uint32_t row = 0; row < 8; ++row) {
    request.mutable_request()->set_samples(static_cast<int>(row), kBatch + row);
  }
  request.mutable_request()->set_step(1);
  ASSERT_TRUE(client->call->Write(request));
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(response.error().fault(), v1::FAULT_WORKER);
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  client->context.TryCancel();
  Finish(*client);
}

TEST_F(RowsServiceTest, AnUnknownJobEndsTheStream) {
  Start();
  auto client = Connect();
  v1::RowsRequest request;
  request.mutable_open()->set_plan_hash(std::string(32, 'x'));
  client->call->Write(request);
  client->call->Write(MakeRequest(1, 0));
  EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RowsServiceTest, ACoordinatorThatIsAwayMakesItUnavailable) {
  load_timeout_ = std::chrono::milliseconds(100);
  Start();
  fetcher_.Fail(1'000'000, Unavailable("no coordinator"));
  EXPECT_EQ(Finish(*Open()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RowsServiceTest, AWrongTokenIsRefused) {
  Start();
  grpc::ClientContext context;
  rpc::AddMetadata({.token = "wrong"}, &context);
  auto call = stub_->Rows(&context);
  v1::RowsResponse response;
  EXPECT_FALSE(call->Read(&response));
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(RowsServiceTest, TheTokenBeforeTheLastOneIsTakenUntilTheNext) {
  Start();
  const auto taken = [&](const std::string& token) {
    grpc::ClientContext context;
    rpc::AddMetadata({.token = token}, &context);
    auto call = stub_->Rows(&context);
    call->WritesDone();
    const bool by_call =
        call->Finish().error_code() != grpc::StatusCode::UNAUTHENTICATED;
    const absl::Status of_pages =
        rows_->access().AdmitToken("AdminService/GetStatus", token).status();
    EXPECT_EQ(absl::IsUnauthenticated(of_pages), !by_call) << of_pages;
    return by_call;
  };
  rows_->access().ReplaceOwn("second");
  EXPECT_TRUE(taken("second"));
  EXPECT_TRUE(taken("secret")) << "trainings that know only the old one";
  EXPECT_FALSE(taken("third"));
  EXPECT_FALSE(taken(""));
  rows_->access().ReplaceOwn("second");  // read again, and the same
  EXPECT_TRUE(taken("secret"));
  rows_->access().ReplaceOwn("third");
  EXPECT_TRUE(taken("third"));
  EXPECT_TRUE(taken("second"));
  EXPECT_FALSE(taken("secret"));
  // In the coordinator's format: then only its list counts.
  rows_->access().ReplaceOwn(*rpc::RandomTokenText());
  EXPECT_FALSE(taken("third"));
  rows_->access().ReplaceOwn("fourth");
  EXPECT_TRUE(taken("fourth"));
  EXPECT_FALSE(taken("third"));
}

TEST_F(RowsServiceTest, MalformedRequestsEndTheirStreamOnly) {
  Start();
  auto good = Open();
  std::vector<std::vector<v1::RowsRequest>> bad(11);
  v1::RowsRequest open;
  open.mutable_open()->set_plan_hash(job_.key());
  bad[0] = {v1::RowsRequest()};
  bad[1] = {MakeRequest(1, 0)};  // before open
  bad[2] = {open, open};
  bad[3] = {open, MakeRequest(1, kFiles)};  // no such step
  bad[4] = {open, MakeRequest(1, 0)};
  bad[4][1].mutable_request()->set_rows(3, kBatch);
  bad[5] = {open, MakeRequest(1, 0)};
  bad[5][1].mutable_request()->set_samples(3, 77);  // not the plan's
  bad[6] = {open, MakeRequest(1, 0)};
  bad[6][1].mutable_request()->add_samples(1);
  bad[7] = {open, MakeRequest(1, 0, 0)};
  bad[8] = {open};
  bad[8][0].mutable_open()->set_plan_hash("short");
  bad[9] = {open, MakeRequest(1, 0)};
  bad[9][1].mutable_request()->add_absent(kFiles);
  bad[10] = {open, MakeRequest(1, 0)};
  for (size_t i = 0; i <= kMaxAbsent; ++i)
    bad[10][1].mutable_request()->add_absent(1);
  for (size_t i = 0; i < bad.size(); ++i) {
    auto client = Connect();
    for (const v1::RowsRequest& request : bad[i]) client->call->Write(request);
    EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << "case " << i;
  }
  ASSERT_TRUE(good->call->Write(MakeRequest(1, 0, 8)));
  v1::RowsResponse response;
  EXPECT_TRUE(good->call->Read(&response));
  good->call->WritesDone();
  EXPECT_TRUE(Finish(*good).ok());
}

TEST_F(RowsServiceTest, TooManyRowsAreResourceExhausted) {
  options_.max_rows_per_stream = 100;
  gate_.Close();
  Start();
  auto client = Open();
  client->call->Write(MakeRequest(1, 0));
  gate_.WaitArrived();
  client->call->Write(MakeRequest(2, 1));
  EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RowsServiceTest, TooManyRowsBeforeTheJobIsThereToo) {
  service_options_.max_rows_per_stream = 100;
  Start();
  fetcher_.Fail(1'000'000, Unavailable("no coordinator"));
  auto client = Open();
  client->call->Write(MakeRequest(1, 0));
  client->call->Write(MakeRequest(2, 1));
  EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// Writes raw bytes as one message of the method; returns the call's status.
grpc::Status SendRaw(const std::shared_ptr<grpc::Channel>& channel,
                     const rpc::Security& security, const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  rpc::AddMetadata(security, &context);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, "/leat.v1.WorkerService/Rows", &queue);
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  next();
  grpc::Slice slice(bytes);
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  next();
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status;
}

TEST_F(RowsServiceTest, RandomBytesAreRefused) {
  Start();
  std::minstd_rand random(1);
  for (int i = 0; i < 100; ++i) {
    std::string bytes(1 + random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_EQ(SendRaw(channel_, security_, bytes).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(RowsServiceTest, ACancelledClientsBuffersComeBack) {
  Start();
  for (int round = 0; round < 20; ++round) {
    auto client = Open();
    for (uint64_t step = 0; step < 8; ++step)
      client->call->Write(MakeRequest(step, step));
    v1::RowsResponse response;
    for (int i = 0; i < round; ++i) client->call->Read(&response);
    client->context.TryCancel();
    Finish(*client);
  }
  EXPECT_TRUE(
      rows_->WaitNoStreams(Clock::Real().Now() + std::chrono::seconds(10)));
}

TEST_F(RowsServiceTest, ACancelledAskIsForgotten) {
  gate_.Close();
  Start();
  auto client = Open();
  client->call->Write(MakeRequest(1, 0));
  gate_.WaitArrived(2);  // both threads
  v1::RowsRequest cancel;
  cancel.mutable_cancel()->set_request_id(1);
  client->call->Write(cancel);
  client->call->Write(MakeRequest(2, 1, 1));
  while (scheduler_->stats().rows_queued != 1) std::this_thread::yield();
  gate_.Open();
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(response.request_id(), 2u);
  client->call->WritesDone();
  EXPECT_TRUE(Finish(*client).ok());
}

TEST_F(RowsServiceTest, DrainingFinishesWhatWasAsked) {
  gate_.Close();
  Start();
  auto client = Open();
  client->call->Write(MakeRequest(1, 0));
  gate_.WaitArrived();
  rows_->StartDraining();
  client->call->Write(MakeRequest(2, 1, 5));
  auto late = Connect();
  EXPECT_EQ(Finish(*late).error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));  // of the refused request
  EXPECT_EQ(response.request_id(), 2u);
  EXPECT_EQ(response.rows_size(), 5);
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_EQ(response.error().fault(), v1::FAULT_TRANSIENT);
  gate_.Open();
  EXPECT_TRUE(scheduler_->WaitIdle(MonotonicTime::max()));
  rows_->CloseStreams();
  size_t rows = 0;
  while (client->call->Read(&response))
    rows += static_cast<size_t>(response.rows_size());
  EXPECT_EQ(rows, kBatch);
  EXPECT_EQ(client->call->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(rows_->WaitNoStreams(MonotonicTime::max()));
}

}  // namespace
}  // namespace leat::worker
