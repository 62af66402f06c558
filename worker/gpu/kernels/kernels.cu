// SPDX-License-Identifier: Apache-2.0
//
// The kernels; their bodies are in fused.h, jpeg.h and stages.h.
#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/kernels/jpeg.h"
#include "worker/gpu/kernels/stages.h"

namespace {

template <int kChannels, bool kDali>
__device__ void Run(uint64_t block) {
  leat::worker::FusedThread<kChannels, kDali>(
      reinterpret_cast<const uint8_t*>(block),
      blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y);
}

template <leat::worker::StageKind kKind>
__device__ void RunStage(uint64_t rows) {
  leat::worker::StageThread<kKind>(rows, blockIdx.x * blockDim.x + threadIdx.x,
                                   blockIdx.y);
}

template <leat::worker::JpegKernel kKernel>
__device__ void RunJpeg(uint64_t images) {
  leat::worker::JpegThread<kKernel>(
      images, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y);
}

}  // namespace

// The second number of the bounds is how many blocks a multiprocessor holds: as
// many as leave each thread enough registers to spill none to memory
// (docs/measurements/gpu-kernels.md).
extern "C" {

__global__ void __launch_bounds__(leat::worker::kFusedBlock, 8)
    leat_fused_1(uint64_t block) {
  Run<1, false>(block);
}

__global__ void __launch_bounds__(leat::worker::kFusedBlock, 7)
    leat_fused_3(uint64_t block) {
  Run<3, false>(block);
}

__global__ void __launch_bounds__(leat::worker::kFusedBlock, 7)
    leat_fused_dali_1(uint64_t block) {
  Run<1, true>(block);
}

__global__ void __launch_bounds__(leat::worker::kFusedBlock, 6)
    leat_fused_dali_3(uint64_t block) {
  Run<3, true>(block);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_map(uint64_t rows) {
  RunStage<leat::worker::StageKind::kMap>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_pixels(uint64_t rows) {
  RunStage<leat::worker::StageKind::kPixels>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_resample(uint64_t rows) {
  RunStage<leat::worker::StageKind::kResample>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock, 12)
    leat_stage_warp(uint64_t rows) {
  RunStage<leat::worker::StageKind::kWarp>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_blur(uint64_t rows) {
  RunStage<leat::worker::StageKind::kBlur>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_noise(uint64_t rows) {
  RunStage<leat::worker::StageKind::kNoise>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_count(uint64_t rows) {
  RunStage<leat::worker::StageKind::kCount>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_byte_table(uint64_t rows) {
  RunStage<leat::worker::StageKind::kByteTable>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_byte_lookup(uint64_t rows) {
  RunStage<leat::worker::StageKind::kByteLookup>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock)
    leat_stage_sharpen(uint64_t rows) {
  RunStage<leat::worker::StageKind::kSharpen>(rows);
}

__global__ void __launch_bounds__(leat::worker::kStageBlock, 8)
    leat_stage_standard(uint64_t rows) {
  RunStage<leat::worker::StageKind::kStandard>(rows);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads)
    leat_jpeg_codes(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kCodes>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads, 12)
    leat_jpeg_guess(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kGuess>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads)
    leat_jpeg_over(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kOver>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads)
    leat_jpeg_back(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kBack>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads)
    leat_jpeg_sum(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kSum>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads, 16)
    leat_jpeg_write(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kWrite>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads)
    leat_jpeg_samples(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kSamples>(images);
}

__global__ void __launch_bounds__(leat::worker::kJpegThreads)
    leat_jpeg_pixels(uint64_t images) {
  RunJpeg<leat::worker::JpegKernel::kPixels>(images);
}

}  // extern "C"
