// SPDX-License-Identifier: Apache-2.0
//
// Requests that supply their samples, through the rows service.
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/serving/rows_service_fixture.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

class RowsSuppliedTest : public RowsServiceTest {
 protected:
  RowsSuppliedTest() { external_ = true; }

  // Sample s: its last digit, `bytes` times, and the label -s.
  static v1::RowsRequest MakeSupplied(uint64_t id, uint64_t step, uint32_t rows,
                                      size_t bytes = 5) {
    v1::RowsRequest message = MakeRequest(id, step, rows);
    v1::RequestRows& request = *message.mutable_request();
    for (const uint64_t sample : request.samples()) {
      v1::SuppliedSample& supplied = *request.add_supplied();
      supplied.add_fields()->set_data(
          std::string(bytes, static_cast<char>('0' + sample % 10)));
      const int32_t label = -static_cast<int32_t>(sample);
      supplied.add_fields()->set_data(
          std::string(reinterpret_cast<const char*>(&label), 4));
    }
    return message;
  }
  // Reads `rows` rows of step 0, which are those that were supplied.
  void ExpectRows(Client& client, int rows) {
    v1::RowsResponse response;
    while (rows > 0 && client.call->Read(&response)) {
      ASSERT_FALSE(response.has_error()) << response.error().message();
      const auto n = static_cast<size_t>(response.rows_size());
      ASSERT_EQ(response.data().size(), n * kRowBytes);
      for (size_t i = 0; i < n; ++i) {
        const uint32_t row = response.rows(static_cast<int>(i));
        EXPECT_EQ(response.data()[i * kFakeImageBytes],
                  static_cast<char>('0' + row % 10));
        int32_t label = 0;
        std::memcpy(&label, &response.data()[n * kFakeImageBytes + 4 * i], 4);
        EXPECT_EQ(label, -static_cast<int32_t>(row));
      }
      rows -= static_cast<int>(n);
    }
    EXPECT_EQ(rows, 0);
  }
};

TEST_F(RowsSuppliedTest, RowsAreComputedFromWhatTheirRequestSupplies) {
  Start();
  auto client = Open();
  ASSERT_TRUE(client->call->Write(MakeSupplied(1, 0, kBatch)));
  ExpectRows(*client, kBatch);
  client->call->WritesDone();
  EXPECT_TRUE(Finish(*client).ok());
}

TEST_F(RowsSuppliedTest, ASampleOfAnotherTypeIsABadSample) {
  Start();
  auto client = Open();
  v1::RowsRequest request = MakeSupplied(1, 0, 8);
  request.mutable_request()
      ->mutable_supplied(3)
      ->mutable_fields(1)
      ->mutable_data()
      ->push_back('x');
  ASSERT_TRUE(client->call->Write(request));
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(response.error().message(),
              HasSubstr("sample 3: source \"photos\" sample 3: field 1: 5 "
                        "bytes, want int32"));
  client->context.TryCancel();
  Finish(*client);
}

TEST_F(RowsSuppliedTest, ABadSampleBecomesZerosIfThatIsThePolicy) {
  policy_ = BadSamplePolicy::kZero;
  Start();
  auto client = Open();
  v1::RowsRequest request = MakeSupplied(1, 0, 2);
  request.mutable_request()
      ->mutable_supplied(1)
      ->mutable_fields()
      ->RemoveLast();
  ASSERT_TRUE(client->call->Write(request));
  v1::RowsResponse response;
  ASSERT_TRUE(client->call->Read(&response));
  ASSERT_FALSE(response.has_error()) << response.error().message();
  const std::string valid = response.data().substr(2 * kRowBytes);
  EXPECT_EQ(valid, std::string("\1\0", 2));
  client->call->WritesDone();
  EXPECT_TRUE(Finish(*client).ok());
}

TEST_F(RowsSuppliedTest, WithoutSamplesOrWithTooManyTheStreamEnds) {
  Start();
  v1::RowsRequest many = MakeSupplied(1, 0, 8);
  *many.mutable_request()->add_supplied() = many.request().supplied(0);
  for (const v1::RowsRequest& request : {MakeRequest(1, 0, 8), many}) {
    auto client = Open();
    client->call->Write(request);
    const grpc::Status status = Finish(*client);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("want 8"));
  }
}

TEST_F(RowsSuppliedTest, SamplesOfAStoredJobEndTheStream) {
  external_ = false;
  Start();
  auto client = Open();
  client->call->Write(MakeSupplied(1, 0, 8));
  EXPECT_EQ(Finish(*client).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RowsSuppliedTest, AStreamThatSuppliesTooMuchEnds) {
  service_options_.max_supplied_bytes_per_stream = 10'000;
  gate_.Close();
  Start();
  auto client = Open();
  client->call->Write(MakeSupplied(1, 0, 8, 1000));
  gate_.WaitArrived();
  client->call->Write(MakeSupplied(2, 1, 8, 1000));
  const grpc::Status status = Finish(*client);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("the limit is 10000"));
}

TEST_F(RowsSuppliedTest, WhatWasComputedIsKeptNoLonger) {
  service_options_.max_supplied_bytes_per_stream = 10'000;
  Start();
  auto client = Open();
  for (uint64_t id = 0; id < 8; ++id) {
    ASSERT_TRUE(client->call->Write(MakeSupplied(id, 0, 8, 1000)));
    ExpectRows(*client, 8);
  }
  client->call->WritesDone();
  EXPECT_TRUE(Finish(*client).ok());
}

TEST_F(RowsSuppliedTest, OverTheWorkersBoundAsksAreForAnotherWorker) {
  service_options_.max_supplied_bytes_total = 10'000;
  gate_.Close();
  Start();
  auto one = Open();
  one->call->Write(MakeSupplied(1, 0, 8, 1000));
  gate_.WaitArrived();
  auto other = Open();
  other->call->Write(MakeSupplied(1, 0, 8, 1000));
  v1::RowsResponse response;
  ASSERT_TRUE(other->call->Read(&response));
  EXPECT_EQ(response.error().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(response.rows_size(), 8);
  gate_.Open();
  ExpectRows(*one, 8);
  one->call->WritesDone();
  EXPECT_TRUE(Finish(*one).ok());
  other->call->WritesDone();
  EXPECT_TRUE(Finish(*other).ok());
}

TEST(ExternalSource, IsItsArgumentsAndReadsNothing) {
  auto job = MakeExternalJob(1000, 8);
  ASSERT_TRUE(job.ok()) << job.status();
  const Node& reader = job->info.spec.pipeline.nodes[0];
  EXPECT_EQ(job->info.datasets[0].shards.num_samples(), 1000u);
  EXPECT_EQ(job->info.datasets[0].name, "photos");
  const auto source = OpenSource(reader, job->blob, {});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->fingerprint(), job->info.datasets[0].fingerprint);
  EXPECT_TRUE(absl::IsFailedPrecondition((*source)->Read(3).status()));
  EXPECT_TRUE(absl::IsDataLoss(OpenSource(reader, "x", {}).status()));
  auto other = MakeExternalJob(1001, 8);
  EXPECT_NE(other->info.datasets[0].fingerprint,
            job->info.datasets[0].fingerprint);
}

}  // namespace
}  // namespace leat::worker
