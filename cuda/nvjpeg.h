// SPDX-License-Identifier: Apache-2.0
//
// Nvjpeg: NVIDIA's JPEG decoder (libnvjpeg) as a table of function pointers,
// loaded at run time from the system, a toolkit or a Python wheel. Types and
// values are declared anew, as in nvjpeg.h of CUDA 12 and 13.
//
// nvJPEG works in the calling thread's current context: make the device's
// primary context current before any call.
//
// Thread safety: a handle may be used by all threads; a state, a stream of
// bytes, parameters and buffers by one thread at a time.
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
using NvjpegStream = struct NvjpegStreamTag*;  // a parsed JPEG, no CUDA stream
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

// EXIF's orientations; only what is used of them.
enum class NvjpegOrientation : int { kUnknown = 0, kNormal = 1 };

inline constexpr Flags kNvjpegFlagsDefault = 0;
inline constexpr Flags kNvjpegHardwareNoPipeline = 1;
inline constexpr Flags kNvjpegInterpolatedUpsampling = 1 << 5;

inline constexpr int kNvjpegMaxComponents = 4;

struct NvjpegImage {
  unsigned char* channel[kNvjpegMaxComponents] = {};  // device memory
  size_t pitch[kNvjpegMaxComponents] = {};
};

// Allocators that are told the stream they serve. 0: success. nvJPEG calls them
// on the thread that calls it.
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
  // Both allocators are complete and outlive the handle: NVIDIA's documents
  // say of the V2 calls that they cannot be null.
  NvjpegResult (*CreateExV2)(NvjpegBackend, NvjpegDeviceAllocator*,
                             NvjpegPinnedAllocator*, Flags, NvjpegHandle*);
  NvjpegResult (*Destroy)(NvjpegHandle);
  // Optional (from 11.9): null in an older library.
  NvjpegResult (*GetHardwareDecoderInfo)(NvjpegHandle, unsigned* engines,
                                         unsigned* cores_per_engine);
  NvjpegResult (*GetImageInfo)(NvjpegHandle, const unsigned char* data,
                               size_t bytes, int* components,
                               NvjpegSubsampling*, int* widths, int* heights);

  NvjpegResult (*JpegStateCreate)(NvjpegHandle, NvjpegState*);
  NvjpegResult (*JpegStateDestroy)(NvjpegState);
  NvjpegResult (*Decode)(NvjpegHandle, NvjpegState, const unsigned char* data,
                         size_t bytes, NvjpegFormat, NvjpegImage*, Stream);

  // Batched.
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
  // Optional (from 11.9). One NvjpegParams an image.
  NvjpegResult (*DecodeBatchedEx)(NvjpegHandle, NvjpegState,
                                  const unsigned char* const* data,
                                  const size_t* bytes, NvjpegImage*,
                                  NvjpegParams*, Stream);

  // A JPEG's headers.
  NvjpegResult (*JpegStreamCreate)(NvjpegHandle, NvjpegStream*);
  NvjpegResult (*JpegStreamDestroy)(NvjpegStream);
  NvjpegResult (*JpegStreamParse)(NvjpegHandle, const unsigned char* data,
                                  size_t bytes, int save_metadata,
                                  int save_stream, NvjpegStream);
  NvjpegResult (*JpegStreamParseHeader)(NvjpegHandle, const unsigned char* data,
                                        size_t bytes, NvjpegStream);

  NvjpegResult (*DecodeParamsCreate)(NvjpegHandle, NvjpegParams*);
  NvjpegResult (*DecodeParamsDestroy)(NvjpegParams);
  NvjpegResult (*DecodeParamsSetOutputFormat)(NvjpegParams, NvjpegFormat);
  NvjpegResult (*DecodeParamsSetROI)(NvjpegParams, int x, int y, int width,
                                     int height);
  NvjpegResult (*DecodeParamsSetAllowCMYK)(NvjpegParams, int allow);
  // Optional (from 11.9).
  NvjpegResult (*DecodeParamsSetScaleFactor)(NvjpegParams, NvjpegScale);
  // Optional: null in an older library. Parameters have an orientation of
  // nvJPEG's choice until it is set: with another one than kNormal it turns the
  // pixels.
  NvjpegResult (*DecodeParamsSetExifOrientation)(NvjpegParams,
                                                 NvjpegOrientation);

  // Decoupled: one image, in phases.
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

// Loads nvJPEG: LEAT_NVJPEG_LIBRARY alone if set, else libnvjpeg.so.13, .12 or
// plain where the system finds it, in the toolkit's folders, and from the
// wheels nvidia-nvjpeg, nvidia-nvjpeg-cu12 and torchvision.
// kNotFound: no library. kFailedPrecondition: a library without a symbol.
absl::StatusOr<std::shared_ptr<const Nvjpeg>> LoadNvjpeg(
    const LibrarySearch& search);

// Loads the library through which nvJPEG drives the JPEG engines, libnvcuvid:
// from the folder of the driver (`driver_path`: as it was loaded), or wherever
// the loader finds it. nvJPEG opens it by its plain name, which the loader may
// not know, where the driver is in a folder of its own; but a library of that
// name which is loaded already is found. To be called before a handle of
// kHardware is made. kNotFound: says what was tried, and why it did not load.
absl::Status LoadVideoLibrary(std::string_view driver_path);

// OK for kSuccess, else a status that says what was being done and the error's
// name. kResourceExhausted: an allocator failed. kDataLoss: the image is bad.
// kUnimplemented: the image or the way is not supported. kInternal: others;
// what they did to the context is found out by asking the driver.
absl::Status Check(NvjpegResult result, std::string_view what);

}  // namespace leat::cuda
