// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/service_address.h"

#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::HasSubstr;

TEST(ServiceAddress, WhatAServiceMayBeAt) {
  for (const char* address :
       {"127.0.0.1:7411", "host:1", "coordinator.leat.svc:65535", "[::1]:7411",
        "unix-abstract:leat-1-c", "unix:/run/leat", "dns:///host:7411"})
    EXPECT_TRUE(CheckServiceAddress("address", address).ok()) << address;
}

TEST(ServiceAddress, OthersAreRefusedWithWhatWasMeant) {
  const auto refusal = [](const std::string& address) {
    const absl::Status status = CheckServiceAddress("--coordinator", address);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    return std::string(Message(status));
  };
  EXPECT_EQ(refusal("localhost"),
            "--coordinator \"localhost\": want HOST:PORT, such as "
            "localhost:7411");
  EXPECT_THAT(refusal("http://localhost:7411"), HasSubstr("without http://"));
  EXPECT_THAT(refusal("https://h:7411"), HasSubstr("without https://"));
  EXPECT_THAT(refusal("::1:7411"), HasSubstr("in brackets: [::1]:7411"));
  EXPECT_THAT(refusal("[::1]"), HasSubstr("such as [::1]:7411"));
  for (const char* address : {"host:", "host:0", "host:65536", "host:port"})
    EXPECT_THAT(refusal(address), HasSubstr("a port of 1 to 65535"));
  for (const char* address : {"", ":7411"})
    EXPECT_THAT(refusal(address), HasSubstr("want HOST:PORT"));
}

}  // namespace
}  // namespace leat
