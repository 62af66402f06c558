// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/kernels/fused.h"

#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/compare.h"
#include "worker/gpu/kernels/jpeg.h"

namespace leat::worker {
namespace {

TEST(FusedKernel, ComputesWhatTheCpuDoes) {
  HostRunner host;
  CompareRandom(host, 1, 400, 12);
}

TEST(FusedKernel, ComputesWhatTheCpuDoesAgain) {
  HostRunner host;
  CompareRandom(host, 77'000, 400, 12);
}

class FusedKernelOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, FusedKernelOf, AllTestData(), TestDataName);

TEST_P(FusedKernelOf, PhotosComputesWhatTheCpuDoes) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample", 12);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  HostRunner host;
  ComparePhotos(host, photos);
}

TEST(FusedKernel, ResamplesByAnyScale) {
  HostRunner host;
  CompareScales(host);
}

TEST(FusedKernel, CastsToEveryTypeAtAnyAddress) {
  HostRunner host;
  CompareTypes(host);
}

TEST(FusedKernel, IsLaunchedWithAThreadForEveryStrip) {
  for (uint32_t width : {1u, 5u, 127u, 128u, 129u, 5000u})
    for (uint32_t height : {1u, 3u, 4u, 5u, 224u}) {
      const uint64_t strips = FusedStrips(width, height);
      EXPECT_EQ(strips, uint64_t{width} * ((height + 3) / 4));
      const LaunchConfig config = FusedLaunch(static_cast<uint32_t>(strips), 9);
      const uint64_t threads = uint64_t{config.grid_x} * config.block_x;
      EXPECT_GE(threads, strips);
      EXPECT_LT(threads, strips + config.block_x);
      EXPECT_EQ(config.grid_y, 9u);
    }
}

TEST(HostLauncher, KnowsItsKernels) {
  EXPECT_TRUE(IsHostKernel(kFusedKernel1));
  EXPECT_TRUE(IsHostKernel(kFusedKernel3));
  EXPECT_FALSE(IsHostKernel("leat_fused_2"));
  EXPECT_FALSE(LaunchOnHost("", {}, nullptr));
}

// A GPU also ends at such accesses, and poisons its context.
TEST(HostLauncher, EndsAtAnAddressThatIsNotAligned) {
#ifdef LEAT_CHECKS_ALIGNMENT
  alignas(64) static std::byte memory[512] = {};  // an image of no pixels
  uint64_t address = DeviceAddress::Of(memory).number() + 1;
  void* parameters[] = {&address};
  EXPECT_DEATH(
      LaunchOnHost(kJpegKernels[0], {.grid_x = 1, .grid_y = 1, .block_x = 1},
                   parameters),
      "misaligned address");
#else
  GTEST_SKIP() << "this build does not check alignment";
#endif
}

}  // namespace
}  // namespace leat::worker
