// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/grpc_status.h"

#include <string>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

TEST(Status, EveryCodeSurvivesTheWire) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code),
                              code == 0 ? "" : "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status) << code;
  }
}

TEST(Status, BytesThatAreNotTextAreWrittenOut) {
  const auto clean = [](const std::string& text) {
    return ToGrpc(NotFound("{}", text)).error_message();
  };
  EXPECT_EQ(clean("caf\xc3\xa9.jpg"), "caf\xc3\xa9.jpg");
  EXPECT_EQ(clean("a\xff\xfe.jpg"), "a\\xff\\xfe.jpg");
  EXPECT_EQ(clean("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(clean("\xc3"), "\\xc3");
}

TEST(Status, LongMessagesAreCut) {
  EXPECT_LE(
      ToGrpc(NotFound("{}", std::string(1 << 20, 'x'))).error_message().size(),
      4100u);
}

}  // namespace
}  // namespace leat::rpc
