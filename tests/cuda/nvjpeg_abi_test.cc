// SPDX-License-Identifier: Apache-2.0
//
// Leat's declarations of nvJPEG match those of nvjpeg.h. Built only if that
// header is installed; compiling is the test.
#include <nvjpeg.h>

#include <cstddef>

#include "cuda/nvjpeg.h"
#include "gtest/gtest.h"
#include "tests/cuda/abi.h"

SAME(Nvjpeg, GetProperty, nvjpegGetProperty);
SAME(Nvjpeg, CreateExV2, nvjpegCreateExV2);
SAME(Nvjpeg, Destroy, nvjpegDestroy);
SAME(Nvjpeg, GetHardwareDecoderInfo, nvjpegGetHardwareDecoderInfo);
SAME(Nvjpeg, JpegStateCreate, nvjpegJpegStateCreate);
SAME(Nvjpeg, JpegStateDestroy, nvjpegJpegStateDestroy);
SAME(Nvjpeg, Decode, nvjpegDecode);
SAME(Nvjpeg, DecodeBatchedInitialize, nvjpegDecodeBatchedInitialize);
SAME(Nvjpeg, DecodeBatchedPreAllocate, nvjpegDecodeBatchedPreAllocate);
SAME(Nvjpeg, DecodeBatchedSupported, nvjpegDecodeBatchedSupported);
SAME(Nvjpeg, DecodeBatchedSupportedEx, nvjpegDecodeBatchedSupportedEx);
SAME(Nvjpeg, DecodeBatched, nvjpegDecodeBatched);
SAME(Nvjpeg, DecodeBatchedEx, nvjpegDecodeBatchedEx);
SAME(Nvjpeg, JpegStreamCreate, nvjpegJpegStreamCreate);
SAME(Nvjpeg, JpegStreamDestroy, nvjpegJpegStreamDestroy);
SAME(Nvjpeg, JpegStreamParse, nvjpegJpegStreamParse);
SAME(Nvjpeg, JpegStreamParseHeader, nvjpegJpegStreamParseHeader);
SAME(Nvjpeg, JpegStreamGetChromaSubsampling,
     nvjpegJpegStreamGetChromaSubsampling);
SAME(Nvjpeg, DecodeParamsCreate, nvjpegDecodeParamsCreate);
SAME(Nvjpeg, DecodeParamsDestroy, nvjpegDecodeParamsDestroy);
SAME(Nvjpeg, DecodeParamsSetOutputFormat, nvjpegDecodeParamsSetOutputFormat);
SAME(Nvjpeg, DecodeParamsSetROI, nvjpegDecodeParamsSetROI);
SAME(Nvjpeg, DecodeParamsSetScaleFactor, nvjpegDecodeParamsSetScaleFactor);
SAME(Nvjpeg, DecodeParamsSetExifOrientation,
     nvjpegDecodeParamsSetExifOrientation);
SAME(Nvjpeg, DecoderCreate, nvjpegDecoderCreate);
SAME(Nvjpeg, DecoderDestroy, nvjpegDecoderDestroy);
SAME(Nvjpeg, DecoderJpegSupported, nvjpegDecoderJpegSupported);
SAME(Nvjpeg, DecoderStateCreate, nvjpegDecoderStateCreate);
SAME(Nvjpeg, DecodeJpegHost, nvjpegDecodeJpegHost);
SAME(Nvjpeg, DecodeJpegTransferToDevice, nvjpegDecodeJpegTransferToDevice);
SAME(Nvjpeg, DecodeJpegDevice, nvjpegDecodeJpegDevice);
SAME(Nvjpeg, BufferPinnedCreateV2, nvjpegBufferPinnedCreateV2);
SAME(Nvjpeg, BufferPinnedDestroy, nvjpegBufferPinnedDestroy);
SAME(Nvjpeg, BufferDeviceCreateV2, nvjpegBufferDeviceCreateV2);
SAME(Nvjpeg, BufferDeviceDestroy, nvjpegBufferDeviceDestroy);
SAME(Nvjpeg, StateAttachPinnedBuffer, nvjpegStateAttachPinnedBuffer);
SAME(Nvjpeg, StateAttachDeviceBuffer, nvjpegStateAttachDeviceBuffer);

static_assert(sizeof(leat::cuda::NvjpegImage) == sizeof(nvjpegImage_t));
static_assert(offsetof(leat::cuda::NvjpegImage, pitch) ==
              offsetof(nvjpegImage_t, pitch));
static_assert(sizeof(leat::cuda::NvjpegDeviceAllocator) ==
              sizeof(nvjpegDevAllocatorV2_t));
static_assert(sizeof(leat::cuda::NvjpegPinnedAllocator) ==
              sizeof(nvjpegPinnedAllocatorV2_t));

#define VALUE(ours, theirs) \
  static_assert(static_cast<int>(leat::cuda::ours) == static_cast<int>(theirs))
VALUE(NvjpegResult::kSuccess, NVJPEG_STATUS_SUCCESS);
VALUE(NvjpegResult::kNotInitialized, NVJPEG_STATUS_NOT_INITIALIZED);
VALUE(NvjpegResult::kInvalidParameter, NVJPEG_STATUS_INVALID_PARAMETER);
VALUE(NvjpegResult::kBadJpeg, NVJPEG_STATUS_BAD_JPEG);
VALUE(NvjpegResult::kJpegNotSupported, NVJPEG_STATUS_JPEG_NOT_SUPPORTED);
VALUE(NvjpegResult::kAllocatorFailure, NVJPEG_STATUS_ALLOCATOR_FAILURE);
VALUE(NvjpegResult::kExecutionFailed, NVJPEG_STATUS_EXECUTION_FAILED);
VALUE(NvjpegResult::kArchMismatch, NVJPEG_STATUS_ARCH_MISMATCH);
VALUE(NvjpegResult::kInternalError, NVJPEG_STATUS_INTERNAL_ERROR);
VALUE(NvjpegResult::kImplementationNotSupported,
      NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED);
VALUE(NvjpegResult::kIncompleteBitstream, NVJPEG_STATUS_INCOMPLETE_BITSTREAM);
VALUE(NvjpegBackend::kDefault, NVJPEG_BACKEND_DEFAULT);
VALUE(NvjpegBackend::kHybrid, NVJPEG_BACKEND_HYBRID);
VALUE(NvjpegBackend::kGpuHybrid, NVJPEG_BACKEND_GPU_HYBRID);
VALUE(NvjpegBackend::kHardware, NVJPEG_BACKEND_HARDWARE);
VALUE(NvjpegBackend::kGpuHybridDevice, NVJPEG_BACKEND_GPU_HYBRID_DEVICE);
VALUE(NvjpegBackend::kHardwareDevice, NVJPEG_BACKEND_HARDWARE_DEVICE);
VALUE(NvjpegBackend::kLossless, NVJPEG_BACKEND_LOSSLESS_JPEG);
VALUE(NvjpegSubsampling::k444, NVJPEG_CSS_444);
VALUE(NvjpegSubsampling::k422, NVJPEG_CSS_422);
VALUE(NvjpegSubsampling::k420, NVJPEG_CSS_420);
VALUE(NvjpegSubsampling::k440, NVJPEG_CSS_440);
VALUE(NvjpegSubsampling::k411, NVJPEG_CSS_411);
VALUE(NvjpegSubsampling::k410, NVJPEG_CSS_410);
VALUE(NvjpegSubsampling::kGray, NVJPEG_CSS_GRAY);
VALUE(NvjpegSubsampling::k410V, NVJPEG_CSS_410V);
VALUE(NvjpegSubsampling::kUnknown, NVJPEG_CSS_UNKNOWN);
VALUE(NvjpegFormat::kUnchanged, NVJPEG_OUTPUT_UNCHANGED);
VALUE(NvjpegFormat::kYuv, NVJPEG_OUTPUT_YUV);
VALUE(NvjpegFormat::kY, NVJPEG_OUTPUT_Y);
VALUE(NvjpegFormat::kRgb, NVJPEG_OUTPUT_RGB);
VALUE(NvjpegFormat::kBgr, NVJPEG_OUTPUT_BGR);
VALUE(NvjpegFormat::kRgbi, NVJPEG_OUTPUT_RGBI);
VALUE(NvjpegFormat::kBgri, NVJPEG_OUTPUT_BGRI);
VALUE(NvjpegOrientation::kUnknown, NVJPEG_ORIENTATION_UNKNOWN);
VALUE(NvjpegOrientation::kNormal, NVJPEG_ORIENTATION_NORMAL);
VALUE(NvjpegScale::kNone, NVJPEG_SCALE_NONE);
VALUE(NvjpegScale::kHalf, NVJPEG_SCALE_1_BY_2);
VALUE(NvjpegScale::kQuarter, NVJPEG_SCALE_1_BY_4);
VALUE(NvjpegScale::kEighth, NVJPEG_SCALE_1_BY_8);
VALUE(kNvjpegHardwareNoPipeline, NVJPEG_FLAGS_HW_DECODE_NO_PIPELINE);
VALUE(kNvjpegInterpolatedUpsampling,
      (NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION));
VALUE(kNvjpegMaxComponents, NVJPEG_MAX_COMPONENT);

TEST(Nvjpeg, IsDeclaredAsInNvjpegH) { SUCCEED(); }
