// SPDX-License-Identifier: Apache-2.0
#include "client/api/explain.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<v1::WorkerRef> Workers(int count) {
  std::vector<v1::WorkerRef> workers(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    workers[static_cast<size_t>(i)].set_name(fmt::format("w{}", i));
    workers[static_cast<size_t>(i)].set_address(fmt::format("host{}", i));
  }
  return workers;
}

// Holds the result if the workers answer so, and which workers were asked.
struct Asked {
  explicit Asked(std::vector<absl::Status> answers) {
    result = AskInTurn(
        Workers(static_cast<int>(answers.size())),
        [&](const std::string& address, bool last) {
          who.push_back(address + (last ? " (last)" : ""));
          return answers[who.size() - 1];
        },
        [](const std::string& address) {
          return address == "host0" ? address + " is closed: start it" : "";
        });
  }
  std::vector<std::string> who;
  absl::Status result;
};

TEST(Explain, AWorkerThatCannotAnswerIsFollowedByTheNext) {
  const Asked asked({Unavailable("draining"), Unimplemented("no such method"),
                     DeadlineExceeded("hangs"), absl::OkStatus(),
                     Internal("not asked")});
  EXPECT_TRUE(asked.result.ok()) << asked.result;
  EXPECT_THAT(asked.who, ElementsAre("host0", "host1", "host2", "host3"));
}

TEST(Explain, WhatEveryWorkerWouldSayIsFinal) {
  for (const absl::Status& status :
       {NotFound("no such job"), OutOfRange("step 9"),
        FailedPrecondition("in no storage")}) {
    const Asked asked({status, absl::OkStatus()});
    EXPECT_EQ(asked.result, status);
    EXPECT_THAT(asked.who, ElementsAre("host0"));
  }
}

TEST(Explain, WithoutAnAnswerEachWorkersReasonIsSaid) {
  const Asked asked({Unavailable("Socket closed"), Unimplemented("")});
  EXPECT_THAT(std::string(Message(asked.result)),
              Not(HasSubstr("Socket closed")));
  EXPECT_TRUE(absl::IsUnavailable(asked.result));
  EXPECT_THAT(std::string(Message(asked.result)),
              AllOf(HasSubstr("worker w0 at host0: host0 is closed: start it"),
                    HasSubstr("worker w1 at host1: it is of another version")));
  EXPECT_THAT(asked.who, ElementsAre("host0", "host1 (last)"));
  EXPECT_THAT(std::string(Message(Asked({}).result)),
              HasSubstr("no worker is ready"));
}

}  // namespace
}  // namespace leat::client
