// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/compute/gpu_worker.h"

namespace leat::worker {
namespace {

absl::StatusOr<std::unique_ptr<GpuWorker>> Open(std::string_view devices) {
  GpuConfig config;
  config.devices = *ParseDevices(devices);
  return GpuWorker::Open(config, ImageLimits{}, std::make_shared<WakeSignal>(),
                         [](const absl::Status&) { FAIL(); });
}

TEST(WithoutGpuSupport, AllGpusAreNoneAndTheWorkerIsACpuWorker) {
  for (const std::string_view devices : {"all", "none"}) {
    const auto gpus = Open(devices);
    ASSERT_TRUE(gpus.ok()) << Message(gpus.status());
    EXPECT_TRUE((*gpus)->devices().empty());
    EXPECT_TRUE((*gpus)->stats().empty());
    EXPECT_EQ((*gpus)->importer(), nullptr);
    EXPECT_THAT((*gpus)->decoder_classes(),
                testing::ElementsAre(DecoderClass::kExact));
  }
}

TEST(WithoutGpuSupport, AGpuThatIsNamedIsAnErrorThatSaysWhy) {
  const auto gpus = Open("0");
  ASSERT_FALSE(gpus.ok());
  EXPECT_THAT(std::string(Message(gpus.status())),
              testing::AllOf(testing::HasSubstr("--devices"),
                             testing::HasSubstr("GPU")));
}

}  // namespace
}  // namespace leat::worker
