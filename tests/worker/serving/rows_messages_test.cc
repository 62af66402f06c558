// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/rows_messages.h"

#include <string>

#include "core/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

SuppliedBytes NoBytes() {
  return {.of_stream = std::make_shared<std::atomic<uint64_t>>(0),
          .of_all = std::make_shared<std::atomic<uint64_t>>(0)};
}

v1::RequestRows TwoRows() {
  v1::RequestRows request;
  request.set_request_id(7);
  for (uint32_t row = 0; row < 2; ++row) {
    request.add_rows(row);
    request.add_samples(10 + row);
  }
  return request;
}

v1::RequestRows TwoSuppliedRows(size_t bytes) {
  v1::RequestRows request = TwoRows();
  for (int i = 0; i < 2; ++i)
    request.add_supplied()->add_fields()->set_data(std::string(bytes, 'a'));
  return request;
}

TEST(RowsMessages, AnOpenHasAPlanHashAndAShortName) {
  v1::OpenRows open;
  open.set_plan_hash(std::string(sizeof(Digest), 'h'));
  open.set_consumer(std::string(256, 'c'));
  EXPECT_TRUE(CheckOpen(open).ok());
  open.set_consumer(std::string(257, 'c'));
  EXPECT_THAT(CheckOpen(open).message(), HasSubstr("257 bytes"));
  open.set_consumer("");
  open.set_plan_hash("short");
  EXPECT_THAT(CheckOpen(open).message(), HasSubstr("plan hash of 5 bytes"));
}

TEST(RowsMessages, ListsThatDoNotFitTogetherAreRefused) {
  const SuppliedBytes counts = NoBytes();
  const auto refusal = [&](const v1::RequestRows& request) {
    return std::string(ReadRequest(request, counts, 100).status().message());
  };
  v1::RequestRows request = TwoRows();
  request.add_samples(12);
  EXPECT_THAT(refusal(request), HasSubstr("2 rows, 3 samples"));
  request = TwoRows();
  request.add_slots(0);
  EXPECT_THAT(refusal(request), HasSubstr("1 slots in memory 0"));
  request.set_memory_id(5);
  EXPECT_THAT(refusal(request), HasSubstr("1 slots in memory 5"));
  request.add_slots(1);
  EXPECT_EQ(refusal(request), "");
  for (size_t i = 0; i <= kMaxAbsent; ++i) request.add_absent(i);
  EXPECT_THAT(refusal(request), HasSubstr("absent samples, want up to"));
}

TEST(RowsMessages, SuppliedSamplesPointIntoTheirMessageWhileTheyAreUsed) {
  const SuppliedBytes counts = NoBytes();
  auto request = ReadRequest(TwoSuppliedRows(100), counts, 1000);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->supplied.size(), 2u);
  EXPECT_EQ(request->supplied[1].fields[0].bytes.size(), 100u);
  EXPECT_GT(*counts.of_stream, 200u);
  EXPECT_EQ(*counts.of_all, *counts.of_stream);
  request->supplied.erase(request->supplied.begin());
  EXPECT_GT(*counts.of_all, 200u);  // the message is still in use
  request->supplied.clear();
  EXPECT_EQ(*counts.of_stream, 0u);
  EXPECT_EQ(*counts.of_all, 0u);
}

TEST(RowsMessages, AStreamKeepsNoMoreThanItsLimit) {
  const SuppliedBytes counts = NoBytes();
  const auto first = ReadRequest(TwoSuppliedRows(100), counts, 300);
  ASSERT_TRUE(first.ok()) << first.status();
  const uint64_t kept = *counts.of_stream;
  const auto second = ReadRequest(TwoSuppliedRows(100), counts, 300);
  EXPECT_TRUE(absl::IsResourceExhausted(second.status()));
  EXPECT_THAT(second.status().message(), HasSubstr("the limit is 300"));
  EXPECT_EQ(*counts.of_stream, kept);  // a refused message is not kept
}

TEST(RowsMessages, ARequestWithoutSamplesIsNotCounted) {
  const SuppliedBytes counts = NoBytes();
  const auto request = ReadRequest(TwoRows(), counts, 0);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->rows.size(), 2u);
  EXPECT_EQ(*counts.of_stream, 0u);
}

}  // namespace
}  // namespace leat::worker
