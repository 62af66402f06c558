// SPDX-License-Identifier: Apache-2.0
//
// Leat's declarations of the driver API match those of cuda.h. Built only if
// that header is installed; compiling is the test.
#include <cstddef>

#include "cuda/driver.h"
#include "gtest/gtest.h"
#include "tests/cuda/abi.h"

// Included after our header, whose names its macros would change.
#include <cuda.h>

SAME(Driver, Init, cuInit);
SAME(Driver, DriverGetVersion, cuDriverGetVersion);
SAME(Driver, GetErrorName, cuGetErrorName);
SAME(Driver, GetErrorString, cuGetErrorString);
SAME(Driver, DeviceGetCount, cuDeviceGetCount);
SAME(Driver, DeviceGet, cuDeviceGet);
SAME(Driver, DeviceGetName, cuDeviceGetName);
SAME(Driver, DeviceGetUuid, cuDeviceGetUuid);
SAME(Driver, DeviceGetAttribute, cuDeviceGetAttribute);
SAME(Driver, DeviceTotalMem, cuDeviceTotalMem_v2);
SAME(Driver, DeviceGetPCIBusId, cuDeviceGetPCIBusId);
SAME(Driver, DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
SAME(Driver, DevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);
SAME(Driver, DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
SAME(Driver, CtxSetCurrent, cuCtxSetCurrent);
SAME(Driver, CtxGetCurrent, cuCtxGetCurrent);
SAME(Driver, CtxPushCurrent, cuCtxPushCurrent_v2);
SAME(Driver, CtxPopCurrent, cuCtxPopCurrent_v2);
SAME(Driver, CtxSynchronize, cuCtxSynchronize);
SAME(Driver, MemAlloc, cuMemAlloc_v2);
SAME(Driver, MemFree, cuMemFree_v2);
SAME(Driver, MemHostAlloc, cuMemHostAlloc);
SAME(Driver, MemFreeHost, cuMemFreeHost);
SAME(Driver, MemHostRegister, cuMemHostRegister_v2);
SAME(Driver, MemHostUnregister, cuMemHostUnregister);
SAME(Driver, MemGetInfo, cuMemGetInfo_v2);
SAME(Driver, MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);
SAME(Driver, MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);
SAME(Driver, MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2);
SAME(Driver, MemsetD8Async, cuMemsetD8Async);
SAME(Driver, StreamCreate, cuStreamCreate);
SAME(Driver, StreamDestroy, cuStreamDestroy_v2);
SAME(Driver, StreamSynchronize, cuStreamSynchronize);
SAME(Driver, StreamWaitEvent, cuStreamWaitEvent);
SAME(Driver, StreamQuery, cuStreamQuery);
SAME(Driver, EventCreate, cuEventCreate);
SAME(Driver, EventDestroy, cuEventDestroy_v2);
SAME(Driver, EventRecord, cuEventRecord);
SAME(Driver, EventQuery, cuEventQuery);
SAME(Driver, EventSynchronize, cuEventSynchronize);
SAME(Driver, EventElapsedTime, cuEventElapsedTime);
SAME(Driver, ModuleLoadData, cuModuleLoadData);
SAME(Driver, ModuleUnload, cuModuleUnload);
SAME(Driver, ModuleGetFunction, cuModuleGetFunction);
SAME(Driver, FuncGetAttribute, cuFuncGetAttribute);
SAME(Driver, OccupancyMaxActiveBlocksPerMultiprocessor,
     cuOccupancyMaxActiveBlocksPerMultiprocessor);
SAME(Driver, LaunchKernel, cuLaunchKernel);
SAME(Driver, LaunchHostFunc, cuLaunchHostFunc);
SAME(Driver, MemGetAllocationGranularity, cuMemGetAllocationGranularity);
SAME(Driver, MemCreate, cuMemCreate);
SAME(Driver, MemRelease, cuMemRelease);
SAME(Driver, MemAddressReserve, cuMemAddressReserve);
SAME(Driver, MemAddressFree, cuMemAddressFree);
SAME(Driver, MemMap, cuMemMap);
SAME(Driver, MemUnmap, cuMemUnmap);
SAME(Driver, MemSetAccess, cuMemSetAccess);
SAME(Driver, MemExportToShareableHandle, cuMemExportToShareableHandle);
SAME(Driver, MemImportFromShareableHandle, cuMemImportFromShareableHandle);
SAME(Driver, MemGetAllocationPropertiesFromHandle,
     cuMemGetAllocationPropertiesFromHandle);
SAME(Driver, StreamIsCapturing, cuStreamIsCapturing);
SAME(Driver, ThreadExchangeStreamCaptureMode,
     cuThreadExchangeStreamCaptureMode);

using leat::cuda::AccessDescription;
using leat::cuda::AllocationProperties;
static_assert(sizeof(leat::cuda::Uuid) == sizeof(CUuuid));
static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(AllocationProperties, handle_types) ==
              offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(AllocationProperties, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, compression) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(offsetof(AccessDescription, flags) ==
              offsetof(CUmemAccessDesc, flags));

#define VALUE(ours, theirs) \
  static_assert(static_cast<int>(leat::cuda::ours) == static_cast<int>(theirs))

VALUE(Result::kSuccess, CUDA_SUCCESS);
VALUE(Result::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
VALUE(Result::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
VALUE(Result::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
VALUE(Result::kDeinitialized, CUDA_ERROR_DEINITIALIZED);
VALUE(Result::kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
VALUE(Result::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
VALUE(Result::kNoDevice, CUDA_ERROR_NO_DEVICE);
VALUE(Result::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
VALUE(Result::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
VALUE(Result::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
VALUE(Result::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
VALUE(Result::kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
VALUE(Result::kInvalidPtx, CUDA_ERROR_INVALID_PTX);
VALUE(Result::kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
VALUE(Result::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
VALUE(Result::kContained, CUDA_ERROR_CONTAINED);
VALUE(Result::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
VALUE(Result::kIllegalState, CUDA_ERROR_ILLEGAL_STATE);
VALUE(Result::kNotFound, CUDA_ERROR_NOT_FOUND);
VALUE(Result::kNotReady, CUDA_ERROR_NOT_READY);
VALUE(Result::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
VALUE(Result::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
VALUE(Result::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT);
VALUE(Result::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
VALUE(Result::kAssert, CUDA_ERROR_ASSERT);
VALUE(Result::kHostMemoryAlreadyRegistered,
      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
VALUE(Result::kHostMemoryNotRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
VALUE(Result::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
VALUE(Result::kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
VALUE(Result::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
VALUE(Result::kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
VALUE(Result::kInvalidPc, CUDA_ERROR_INVALID_PC);
VALUE(Result::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
VALUE(Result::kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK);
VALUE(Result::kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
VALUE(Result::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
VALUE(Result::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
VALUE(Result::kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
VALUE(Result::kMpsRpcFailure, CUDA_ERROR_MPS_RPC_FAILURE);
VALUE(Result::kMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
VALUE(Result::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
VALUE(Result::kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
VALUE(Result::kCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
VALUE(Result::kCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
VALUE(Result::kCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
VALUE(Result::kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
VALUE(Result::kCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
VALUE(Result::kUnknown, CUDA_ERROR_UNKNOWN);
VALUE(CaptureStatus::kNone, CU_STREAM_CAPTURE_STATUS_NONE);
VALUE(CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
VALUE(CaptureStatus::kInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
VALUE(CaptureMode::kGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
VALUE(CaptureMode::kThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
VALUE(CaptureMode::kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
VALUE(DeviceAttribute::kMultiprocessorCount,
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
VALUE(DeviceAttribute::kIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
VALUE(DeviceAttribute::kMemoryBusWidthBits,
      CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
VALUE(DeviceAttribute::kL2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
VALUE(DeviceAttribute::kMemoryClockKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
VALUE(DeviceAttribute::kComputeCapabilityMajor,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
VALUE(DeviceAttribute::kComputeCapabilityMinor,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
VALUE(DeviceAttribute::kVirtualMemorySupported,
      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
VALUE(DeviceAttribute::kPosixFileDescriptorSupported,
      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
VALUE(FunctionAttribute::kMaxThreadsPerBlock,
      CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
VALUE(FunctionAttribute::kSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
VALUE(FunctionAttribute::kConstBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
VALUE(FunctionAttribute::kLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
VALUE(FunctionAttribute::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
VALUE(FunctionAttribute::kPtxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
VALUE(FunctionAttribute::kBinaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
VALUE(kContextBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC);
VALUE(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
VALUE(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
VALUE(kEventDefault, CU_EVENT_DEFAULT);
VALUE(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
VALUE(AllocationType::kPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
VALUE(HandleType::kPosixFileDescriptor,
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
VALUE(LocationType::kDevice, CU_MEM_LOCATION_TYPE_DEVICE);
VALUE(Granularity::kRecommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
VALUE(Access::kRead, CU_MEM_ACCESS_FLAGS_PROT_READ);
VALUE(Access::kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

TEST(Driver, IsDeclaredAsInCudaH) { SUCCEED(); }
