// SPDX-License-Identifier: Apache-2.0
//
// A whole worker that its coordinator never answers.
#include "worker/worker.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/worker.grpc.pb.h"
#include "rpc/call/auth.h"
#include "rpc/call/channel.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Config AloneConfig() {
  Config config;
  config.listen = fmt::format("unix-abstract:leat-worker-test-{}", getpid());
  config.coordinator = config.listen + "-nobody";
  config.threads = 1;
  config.read_threads = 0;
  config.cache_bytes = 1 << 20;
  config.has_cache_bytes = true;
  config.transport = "grpc";
  config.SetDefaults();
  EXPECT_EQ(config.Validate(), absl::OkStatus());
  return config;
}

// A thread's time is either work or waiting: a stage's times add up.
TEST(Worker, TellsItsStagesInTheirOrder) {
  auto worker = Worker::Start(AloneConfig(), {});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const v1::WorkerStats first = (*worker)->CollectStats();
  std::vector<v1::Stage> stages;
  for (const v1::StageStats& stage : first.stages())
    stages.push_back(stage.stage());
  EXPECT_EQ(stages, (std::vector<v1::Stage>{v1::STAGE_LIST, v1::STAGE_OPEN,
                                            v1::STAGE_READ, v1::STAGE_DECODE,
                                            v1::STAGE_AUGMENT, v1::STAGE_GROUP,
                                            v1::STAGE_SEND}));
  const v1::StageStats& decode = first.stages(3);
  EXPECT_EQ(decode.places(), 1u);
  EXPECT_EQ(decode.busy_ns_total(), 0u);
  EXPECT_EQ(decode.input_ns_total() + decode.output_ns_total(), 0u);
  const v1::WorkerStats second = (*worker)->CollectStats();
  EXPECT_GT(second.stages(3).idle_ns_total(), decode.idle_ns_total());
  EXPECT_TRUE((*worker)->Drain());
}

TEST(Worker, WarnsThatItReadsNothing) {
  const auto logged = [](std::optional<std::vector<std::string>> allow) {
    Config config = AloneConfig();
    config.storage.allow = std::move(allow);
    ::testing::internal::CaptureStderr();
    auto worker = Worker::Start(config, {});
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (worker.ok()) {
      EXPECT_TRUE((*worker)->Drain());
    }
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged(std::vector<std::string>{}),
              AllOf(HasSubstr("worker.reads_nothing"),
                    HasSubstr("--allow PREFIX names")));
  EXPECT_THAT(logged({{"/data"}}), Not(HasSubstr("reads_nothing")));
  EXPECT_THAT(logged(std::nullopt), Not(HasSubstr("reads_nothing")));
}

TEST(Worker, CountsStreamsThatWereDamagedOnTheirWay) {
  auto worker = Worker::Start(AloneConfig(), {});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ((*worker)->CollectStats().damaged_streams_total(), 0u);

  const auto stub =
      v1::WorkerService::NewStub(rpc::MakeChannel((*worker)->address(), {}));
  for (uint64_t damaged = 1; damaged <= 2; ++damaged) {
    grpc::ClientContext context;
    rpc::AddMetadata({}, &context);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    const auto call = stub->Rows(&context);
    v1::RowsRequest request;  // which declares a checksum, and has none
    request.mutable_open()->set_plan_hash(std::string(32, 'x'));
    request.mutable_open()->set_checksums(true);
    call->Write(request);
    v1::RowsResponse response;
    EXPECT_FALSE(call->Read(&response));
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_EQ((*worker)->CollectStats().damaged_streams_total(), damaged);
  }
  EXPECT_TRUE((*worker)->Drain());
}

}  // namespace
}  // namespace leat::worker
