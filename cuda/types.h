// SPDX-License-Identifier: Apache-2.0
//
// The types and constants of the CUDA driver API that Leat uses, declared again
// here: no toolkit is needed. Sizes and values are the driver's binary
// interface; tests/cuda compares them with cuda.h where one is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::cuda {

using DevicePtr = unsigned long long;  // NOLINT(google-runtime-int): the ABI's
using Device = int;                    // an ordinal
using Flags = unsigned int;
using LongFlags = unsigned long long;         // NOLINT(google-runtime-int)
using AllocationHandle = unsigned long long;  // NOLINT(google-runtime-int)
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using HostFunction = void (*)(void* user_data);

// CUresult. Other values also occur.
enum class Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kUnsupportedPtxVersion = 222,
  kContained = 226,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kMpsRpcFailure = 806,
  kMpsClientTerminated = 810,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

enum class DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kMemoryBusWidthBits = 37,
  kL2CacheBytes = 38,
  kMemoryClockKhz = 36,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kVirtualMemorySupported = 102,
  kPosixFileDescriptorSupported = 103,
};

enum class FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedBytes = 1,
  kConstBytes = 2,
  kLocalBytes = 3,
  kRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
};

// The state and mode of a stream whose work becomes a graph instead of running.
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

inline constexpr Flags kContextBlockingSync = 0x04;
inline constexpr Flags kHostAllocPortable = 0x01;
inline constexpr Flags kHostRegisterPortable = 0x01;
inline constexpr Flags kStreamNonBlocking = 0x01;
inline constexpr Flags kEventDefault = 0x00;
inline constexpr Flags kEventBlockingSync = 0x01;
inline constexpr Flags kEventDisableTiming = 0x02;

struct Uuid {
  unsigned char bytes[16];
};

// Virtual memory management.
enum class AllocationType : int { kPinned = 1 };
enum class HandleType : int { kNone = 0, kPosixFileDescriptor = 1 };
enum class LocationType : int { kDevice = 1 };
enum class Granularity : int { kMinimum = 0, kRecommended = 1 };
enum class Access : int { kNone = 0, kRead = 1, kReadWrite = 3 };

struct Location {
  LocationType type = LocationType::kDevice;
  int id = 0;
};

struct AllocationProperties {
  AllocationType type = AllocationType::kPinned;
  HandleType handle_types = HandleType::kNone;
  Location location;
  void* win32_metadata = nullptr;
  unsigned char compression = 0;
  unsigned char rdma_capable = 0;
  uint16_t usage = 0;
  unsigned char reserved[4] = {};
};

struct AccessDescription {
  Location location;
  Access flags = Access::kReadWrite;
};

// Returns a DevicePtr as a pointer, which the host must not dereference.
inline void* AsPointer(uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's addresses are numbers.
  return reinterpret_cast<void*>(address);
}

}  // namespace leat::cuda
