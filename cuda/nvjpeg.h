// SPDX-License-Identifier: Apache-2.0
//
// Nvjpeg is NVIDIA's JPEG decoder (libnvjpeg) as a table of function pointers,
// loaded at run time from the system, a toolkit or a Python wheel. Types and
// values are declared again here, as in nvjpeg.h of CUDA 12 and 13.
//
// nvJPEG works in the calling thread's current context: make the device's
// primary context current before any call.
//
// Thread safety: all threads may use a handle; only one thread at a time may
// use a state, a stream of bytes, parameters or buffers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/library.h"
#include "cuda/types.h"

namespace leat::cuda {

using NvjpegHandle = struct NvjpegHandleTag*;
using NvjpegState = struct NvjpegStateTag*;
// A parsed JPEG, not a CUDA stream.
using NvjpegStream = struct NvjpegStreamTag*;
using NvjpegParams = struct NvjpegParamsTag*;
using NvjpegDecoder = struct NvjpegDecoderTag*;
using NvjpegPinnedBuffer = struct NvjpegPinnedBufferTag*;
using NvjpegDeviceBuffer = struct NvjpegDeviceBufferTag*;

// nvjpegStatus_t.
enum class NvjpegResult : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidParameter = 2,
  kBadJpeg = 3,
  kJpegNotSupported = 4,
  kAllocatorFailure = 5,
  kExecutionFailed = 6,
  kArchMismatch = 7,
  kInternalError = 8,
  kImplementationNotSupported = 9,
  kIncompleteBitstream = 10,
};

enum class NvjpegBackend : int {
  kDefault = 0,
  kHybrid = 1,
  kGpuHybrid = 2,
  kHardware = 3,
  kGpuHybridDevice = 4,
  kHardwareDevice = 5,
  kLossless = 6,
};

enum class NvjpegSubsampling : int {
  kUnknown = -1,
  k444 = 0,
  k422 = 1,
  k420 = 2,
  k440 = 3,
  k411 = 4,
  k410 = 5,
  kGray = 6,
  k410V = 7,
};

enum class NvjpegFormat : int {
  kUnchanged = 0,  // planes as stored
  kYuv = 1,        // planes
  kY = 2,          // luma, channel 0
  kRgb = 3,        // planes
  kBgr = 4,        // planes
  kRgbi = 5,       // interleaved, channel 0
  kBgri = 6,       // interleaved, channel 0
};

enum class NvjpegScale : int {
  kNone = 0,
  kHalf = 1,
  kQuarter = 2,
  kEighth = 3
};

// EXIF's orientations; only the values that Leat uses.
enum class NvjpegOrientation : int { kUnknown = 0, kNormal = 1 };

inline constexpr Flags kNvjpegFlagsDefault = 0;
inline constexpr Flags kNvjpegHardwareNoPipeline = 1;
inline constexpr Flags kNvjpegInterpolatedUpsampling = 1 << 5;

inline constexpr int kNvjpegMaxComponents = 4;

struct NvjpegImage {
  unsigned char* channel[kNvjpegMaxComponents] = {};  // device memory
  size_t pitch[kNvjpegMaxComponents] = {};
};

// Allocators that receive the stream they allocate for, and return 0 for
// success. nvJPEG calls them on its caller's thread.
struct NvjpegDeviceAllocator {
  int (*allocate)(void* context, void** memory, size_t bytes, Stream);
  int (*free)(void* context, void* memory, size_t bytes, Stream);
  void* context;
};
struct NvjpegPinnedAllocator {
  int (*allocate)(void* context, void** memory, size_t bytes, Stream);
  int (*free)(void* context, void* memory, size_t bytes, Stream);
  void* context;
};

struct Nvjpeg {
  std::string path;  // of the library
  int major = 0, minor = 0, patch = 0;

  // `property` 0, 1, 2: major, minor, patch.
  NvjpegResult (*GetProperty)(int property, int* value);
  // Both allocators are complete and outlive the handle: according to NVIDIA's
  // documentation the V2 calls do not accept nullptr.
  NvjpegResult (*CreateExV2)(NvjpegBackend, NvjpegDeviceAllocator*,
                             NvjpegPinnedAllocator*, Flags, NvjpegHandle*);
  NvjpegResult (*Destroy)(NvjpegHandle);
  // Optional (from 11.9): nullptr in an older library.
  NvjpegResult (*GetHardwareDecoderInfo)(NvjpegHandle, unsigned* engines,
                                         unsigned* cores_per_engine);

  NvjpegResult (*JpegStateCreate)(NvjpegHandle, NvjpegState*);
  NvjpegResult (*JpegStateDestroy)(NvjpegState);
  NvjpegResult (*Decode)(NvjpegHandle, NvjpegState, const unsigned char* data,
                         size_t bytes, NvjpegFormat, NvjpegImage*, Stream);

  // Batched decoding.
  NvjpegResult (*DecodeBatchedInitialize)(NvjpegHandle, NvjpegState, int images,
                                          int max_cpu_threads, NvjpegFormat);
  NvjpegResult (*DecodeBatchedPreAllocate)(NvjpegHandle, NvjpegState,
                                           int images, int width, int height,
                                           NvjpegSubsampling, NvjpegFormat);
  NvjpegResult (*DecodeBatchedSupported)(NvjpegHandle, NvjpegStream,
                                         int* supported);  // 0: supported
  // Optional (from 11.9).
  NvjpegResult (*DecodeBatchedSupportedEx)(NvjpegHandle, NvjpegStream,
                                           NvjpegParams,
                                           int* supported);  // 0: supported
  NvjpegResult (*DecodeBatched)(NvjpegHandle, NvjpegState,
                                const unsigned char* const* data,
                                const size_t* bytes, NvjpegImage*, Stream);
  // Optional (from 11.9). One NvjpegParams per image.
  NvjpegResult (*DecodeBatchedEx)(NvjpegHandle, NvjpegState,
                                  const unsigned char* const* data,
                                  const size_t* bytes, NvjpegImage*,
                                  NvjpegParams*, Stream);

  // The headers of a JPEG.
  NvjpegResult (*JpegStreamCreate)(NvjpegHandle, NvjpegStream*);
  NvjpegResult (*JpegStreamDestroy)(NvjpegStream);
  NvjpegResult (*JpegStreamParse)(NvjpegHandle, const unsigned char* data,
                                  size_t bytes, int save_metadata,
                                  int save_stream, NvjpegStream);
  NvjpegResult (*JpegStreamParseHeader)(NvjpegHandle, const unsigned char* data,
                                        size_t bytes, NvjpegStream);
  // Answers for the image that was parsed last.
  NvjpegResult (*JpegStreamGetChromaSubsampling)(NvjpegStream,
                                                 NvjpegSubsampling*);

  NvjpegResult (*DecodeParamsCreate)(NvjpegHandle, NvjpegParams*);
  NvjpegResult (*DecodeParamsDestroy)(NvjpegParams);
  NvjpegResult (*DecodeParamsSetOutputFormat)(NvjpegParams, NvjpegFormat);
  NvjpegResult (*DecodeParamsSetROI)(NvjpegParams, int x, int y, int width,
                                     int height);
  // Optional (from 11.9).
  NvjpegResult (*DecodeParamsSetScaleFactor)(NvjpegParams, NvjpegScale);
  // Optional: nullptr in an older library. Until this is set, nvJPEG chooses
  // the orientation of parameters: with one other than kNormal it rotates or
  // mirrors the pixels.
  NvjpegResult (*DecodeParamsSetExifOrientation)(NvjpegParams,
                                                 NvjpegOrientation);

  // Decoupled decoding: one image, in phases.
  NvjpegResult (*DecoderCreate)(NvjpegHandle, NvjpegBackend, NvjpegDecoder*);
  NvjpegResult (*DecoderDestroy)(NvjpegDecoder);
  NvjpegResult (*DecoderJpegSupported)(NvjpegDecoder, NvjpegStream,
                                       NvjpegParams,
                                       int* supported);  // 0: supported
  NvjpegResult (*DecoderStateCreate)(NvjpegHandle, NvjpegDecoder, NvjpegState*);
  NvjpegResult (*DecodeJpegHost)(NvjpegHandle, NvjpegDecoder, NvjpegState,
                                 NvjpegParams, NvjpegStream);
  NvjpegResult (*DecodeJpegTransferToDevice)(NvjpegHandle, NvjpegDecoder,
                                             NvjpegState, NvjpegStream, Stream);
  NvjpegResult (*DecodeJpegDevice)(NvjpegHandle, NvjpegDecoder, NvjpegState,
                                   NvjpegImage*, Stream);
  NvjpegResult (*BufferPinnedCreateV2)(NvjpegHandle, NvjpegPinnedAllocator*,
                                       NvjpegPinnedBuffer*);
  NvjpegResult (*BufferPinnedDestroy)(NvjpegPinnedBuffer);
  NvjpegResult (*BufferDeviceCreateV2)(NvjpegHandle, NvjpegDeviceAllocator*,
                                       NvjpegDeviceBuffer*);
  NvjpegResult (*BufferDeviceDestroy)(NvjpegDeviceBuffer);
  NvjpegResult (*StateAttachPinnedBuffer)(NvjpegState, NvjpegPinnedBuffer);
  NvjpegResult (*StateAttachDeviceBuffer)(NvjpegState, NvjpegDeviceBuffer);
};

// Loads nvJPEG: only LEAT_NVJPEG_LIBRARY if set, otherwise libnvjpeg.so.13, .12
// or without a version from the system's usual places, the toolkit's folders,
// and the wheels nvidia-nvjpeg, nvidia-nvjpeg-cu12 and torchvision.
// kNotFound: no library. kFailedPrecondition: a library lacks a symbol.
absl::StatusOr<std::shared_ptr<const Nvjpeg>> LoadNvjpeg(
    const LibrarySearch& search);

// Loads libnvcuvid, the library through which nvJPEG drives the JPEG engines:
// from the folder of the driver (`driver_path`: the path from which it was
// loaded), or from wherever the loader finds it. nvJPEG opens it by its plain
// name, which the loader may not find if the driver is in a folder of its own;
// but the loader finds a library of that name that is already loaded. Call this
// before creating a handle of kHardware. kNotFound: names the candidates, and
// why each did not load.
absl::Status LoadVideoLibrary(std::string_view driver_path);

// OK for kSuccess; otherwise a status with the operation and the error's name.
// kResourceExhausted: an allocator failed. kDataLoss: the image is bad.
// kUnimplemented: the image or the backend is not supported. kInternal: others;
// call the driver to find out whether the context still works.
absl::Status Check(NvjpegResult result, std::string_view what);

}  // namespace leat::cuda
