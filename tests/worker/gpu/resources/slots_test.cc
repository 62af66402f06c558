// SPDX-License-Identifier: Apache-2.0
//
// Two workers on a GPU whose memory a trainer has taken, as JAX takes 75 % of it
// at its first use: each has room for its slots and computes rows, or says what
// it lacks.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/worker/gpu/device_bytes.h"
#include "tests/worker/gpu/fixture.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class GpuBesideTest : public GpuTest {
 protected:
  // The sizes are the defaults.
  GpuBesideTest() {
    config_ = {.devices = {.all = false, .indices = {0}}, .clock = &clock_};
  }
  void ExpectRows(GpuWorker& worker) {
    const std::vector<std::string> files(
        5, testing::MakeJpeg({.width = 300, .height = 200}));
    for (const DecoderClass decoder :
         {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
      GpuPipeline pipeline(CropGraph(32), worker, decoder);
      ExpectExact(pipeline, files);
    }
  }
};

TEST_F(GpuBesideTest, WorkersTakeWhatATrainerLeaves) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  // GPUs of 24, 8 and 4 GiB, and how many workers find room.
  const std::pair<uint64_t, int> cases[] = {{24, 2}, {8, 1}, {4, 0}};
  for (const auto& [size, room] : cases) {
    fake_->Set("memory", size * kGiB);
    fake_->Set("scale", 0);
    const DeviceBytes trainer(size * kGiB / 4 * 3);
    ASSERT_NE(trainer.data(), nullptr);
    auto first = GpuWorker::Open(config_, {}, wake_, OnFatal());
    auto second = GpuWorker::Open(config_, {}, wake_, nullptr);
    EXPECT_EQ(int{first.ok()} + int{second.ok()}, room) << size;
    for (const auto* worker : {&first, &second})
      if (!worker->ok())
        EXPECT_THAT(std::string(Message(worker->status())),
                    AllOf(HasSubstr("bytes are free (fewer --gpu-slots"),
                          HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
    if (first.ok()) {
      gpus_ = *std::move(first);
      ExpectRows(*gpus_);
    }
    if (second.ok()) ExpectRows(**second);
    EXPECT_TRUE(fatal_.ok()) << fatal_;
    gpus_.reset();
  }
}

}  // namespace
}  // namespace leat::worker
