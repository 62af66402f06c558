// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <memory>

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

absl::StatusOr<std::unique_ptr<int>> Make(int value) {
  if (value < 0) return OutOfRange("value {}: want at least {}", value, 0);
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> first, Make(a));
  std::unique_ptr<int> second;
  ASSIGN_OR_RETURN(second, Make(b));
  return *first + *second;
}

absl::Status FirstError(const absl::Status& a, const absl::Status& b) {
  RETURN_IF_ERROR(a);
  RETURN_IF_ERROR(b);
  return absl::OkStatus();
}

TEST(Status, MakersFormatAndCarryTheirCode) {
  const absl::Status status = NotFound("job \"{}\" of {}", "a", 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(status), "job \"a\" of 3");
  EXPECT_EQ(DataLoss("x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unauthenticated("x").code(), absl::StatusCode::kUnauthenticated);
}

TEST(Status, AssignOrReturnMovesTheValueOrReturnsTheError) {
  EXPECT_EQ(*Sum(1, 2), 3);
  EXPECT_EQ(Message(Sum(-1, 2).status()), "value -1: want at least 0");
  EXPECT_EQ(Message(Sum(1, -2).status()), "value -2: want at least 0");
}

TEST(Status, ReturnIfErrorReturnsTheFirstError) {
  EXPECT_TRUE(FirstError(absl::OkStatus(), absl::OkStatus()).ok());
  EXPECT_EQ(Message(FirstError(Internal("a"), Internal("b"))), "a");
  EXPECT_EQ(Message(FirstError(absl::OkStatus(), Internal("b"))), "b");
}

TEST(Status, AnnotateKeepsCodeAndPayloads) {
  absl::Status status = Aborted("lost");
  status.SetPayload("leat.test", absl::Cord("payload"));
  const absl::Status annotated = Annotate(status, "job \"a\"");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Message(annotated), "job \"a\": lost");
  EXPECT_EQ(annotated.GetPayload("leat.test"), absl::Cord("payload"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

}  // namespace
}  // namespace leat
