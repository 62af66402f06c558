// SPDX-License-Identifier: Apache-2.0
//
// Runs with ASAN_OPTIONS by which no more than 1 MiB can be allocated at once;
// elsewhere the test of a lack of memory is skipped.
#include <cstdlib>
#include <random>
#include <vector>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"

namespace leat::worker {
namespace {

using testing::Apply;
using testing::Array;

bool CanAllocate(size_t bytes) {
  void* volatile memory = malloc(bytes);
  free(memory);
  return memory != nullptr;
}

// The file is larger than the image, which has no more than 1 MiB.
TEST(JpegDistortion, ALackOfMemoryIsAnErrorOfTheRow) {
  if (CanAllocate(size_t{2} << 20)) GTEST_SKIP() << "memory is not limited";
  const int64_t side = 1020;
  std::mt19937 random(1);
  std::vector<uint8_t> pixels(side * side);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random());
  const auto result =
      Apply("jpeg_compression_distortion", {{"quality", Value(100.0)}},
            {Array::Of<uint8_t>({side, side, 1}, pixels)});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FaultOf(result.status()), Fault::kWorker);
  EXPECT_THAT(std::string(Message(result.status())),
              ::testing::HasSubstr("no memory for 2097152 bytes"));
}

}  // namespace
}  // namespace leat::worker
