// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_launcher.h"

#include <cstring>
#include <string_view>

#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/kernels/jpeg.h"
#include "worker/gpu/kernels/stages.h"

namespace leat::worker {
namespace {

template <int kChannels, bool kDali>
void RunFused(const LaunchConfig& config, void** params) {
  uint64_t address;
  memcpy(&address, params[0], sizeof address);
  const auto* block = AtAddress(address);
  for (uint32_t slice = 0; slice < config.grid_y; ++slice)
    for (uint32_t thread = 0; thread < config.grid_x * config.block_x; ++thread)
      FusedThread<kChannels, kDali>(block, thread, slice);
}

template <StageKind kKind>
void RunStage(const LaunchConfig& config, void** params) {
  uint64_t rows;
  memcpy(&rows, params[0], sizeof rows);
  for (uint32_t row = 0; row < config.grid_y; ++row)
    for (uint32_t thread = 0; thread < config.grid_x * config.block_x; ++thread)
      StageThread<kKind>(rows, thread, row);
}

template <JpegKernel kKernel>
void RunJpeg(const LaunchConfig& config, void** params) {
  uint64_t images;
  memcpy(&images, params[0], sizeof images);
  for (uint32_t image = 0; image < config.grid_y; ++image)
    for (uint32_t thread = 0; thread < config.grid_x * config.block_x; ++thread)
      JpegThread<kKernel>(images, thread, image);
}

constexpr const char* NameOf(StageKind kind) {
  return kStageKernels[static_cast<int>(kind)];
}

struct HostKernel {
  std::string_view name;
  void (*run)(const LaunchConfig& config, void** params);
};

constexpr HostKernel kKernels[] = {
    {kFusedKernel1, RunFused<1, false>},
    {kFusedKernel3, RunFused<3, false>},
    {kFusedKernels[2], RunFused<1, true>},
    {kFusedKernels[3], RunFused<3, true>},
    {NameOf(StageKind::kMap), RunStage<StageKind::kMap>},
    {NameOf(StageKind::kPixels), RunStage<StageKind::kPixels>},
    {NameOf(StageKind::kResample), RunStage<StageKind::kResample>},
    {NameOf(StageKind::kWarp), RunStage<StageKind::kWarp>},
    {NameOf(StageKind::kBlur), RunStage<StageKind::kBlur>},
    {NameOf(StageKind::kNoise), RunStage<StageKind::kNoise>},
    {NameOf(StageKind::kCount), RunStage<StageKind::kCount>},
    {NameOf(StageKind::kByteTable), RunStage<StageKind::kByteTable>},
    {NameOf(StageKind::kByteLookup), RunStage<StageKind::kByteLookup>},
    {NameOf(StageKind::kSharpen), RunStage<StageKind::kSharpen>},
    {NameOf(StageKind::kStandard), RunStage<StageKind::kStandard>},
    {kJpegKernels[0], RunJpeg<JpegKernel::kCodes>},
    {kJpegKernels[1], RunJpeg<JpegKernel::kGuess>},
    {kJpegKernels[2], RunJpeg<JpegKernel::kOver>},
    {kJpegKernels[3], RunJpeg<JpegKernel::kBack>},
    {kJpegKernels[4], RunJpeg<JpegKernel::kSum>},
    {kJpegKernels[5], RunJpeg<JpegKernel::kWrite>},
    {kJpegKernels[6], RunJpeg<JpegKernel::kSamples>},
    {kJpegKernels[7], RunJpeg<JpegKernel::kPixels>}};

const HostKernel* Find(std::string_view name) {
  for (const HostKernel& kernel : kKernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace

bool IsHostKernel(const char* kernel) { return Find(kernel) != nullptr; }

bool LaunchOnHost(const char* kernel, const LaunchConfig& config,
                  void** params) {
  const HostKernel* found = Find(kernel);
  if (found == nullptr) return false;
  found->run(config, params);
  return true;
}

}  // namespace leat::worker
