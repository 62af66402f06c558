// SPDX-License-Identifier: Apache-2.0
//
// Driver is the CUDA driver (libcuda.so.1) as a table of function pointers,
// loaded at run time, so that one binary starts with and without a GPU.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<const cuda::Driver> driver,
//                    cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment()));
//   RETURN_IF_ERROR(cuda::Check(*driver, driver->Init(0), "cuInit"));
//
// Only the driver API is used, no CUDA runtime. Functions are as in cuda.h; a
// member's name is the symbol's without "cu" and version. Loading calls no
// function of the library. A loaded library stays loaded until the process
// ends: drivers have their own threads and exit handlers.
//
// Thread safety: the table is constant; the functions are thread-safe, and each
// thread has its own current context.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/library.h"
#include "cuda/types.h"

namespace leat::cuda {

struct Driver {
  std::string path;  // of the library

  Result (*Init)(Flags);
  Result (*DriverGetVersion)(int* version);  // 13000 is 13.0
  Result (*GetErrorName)(Result, const char** name);
  Result (*GetErrorString)(Result, const char** text);

  Result (*DeviceGetCount)(int* count);
  Result (*DeviceGet)(Device*, int ordinal);
  Result (*DeviceGetName)(char* name, int bytes, Device);
  Result (*DeviceGetUuid)(Uuid*, Device);
  Result (*DeviceGetAttribute)(int* value, DeviceAttribute, Device);
  Result (*DeviceTotalMem)(size_t* bytes, Device);
  Result (*DeviceGetPCIBusId)(char* id, int bytes, Device);

  Result (*DevicePrimaryCtxRetain)(Context*, Device);
  Result (*DevicePrimaryCtxSetFlags)(Device, Flags);
  Result (*DevicePrimaryCtxRelease)(Device);
  Result (*CtxSetCurrent)(Context);
  Result (*CtxGetCurrent)(Context*);
  Result (*CtxPushCurrent)(Context);
  Result (*CtxPopCurrent)(Context*);
  Result (*CtxSynchronize)();

  Result (*MemAlloc)(DevicePtr*, size_t bytes);
  Result (*MemFree)(DevicePtr);
  Result (*MemHostAlloc)(void**, size_t bytes, Flags);
  Result (*MemFreeHost)(void*);
  Result (*MemHostRegister)(void*, size_t bytes, Flags);
  Result (*MemHostUnregister)(void*);
  Result (*MemGetInfo)(size_t* free, size_t* total);

  Result (*MemcpyHtoDAsync)(DevicePtr to, const void* from, size_t, Stream);
  Result (*MemcpyDtoHAsync)(void* to, DevicePtr from, size_t, Stream);
  Result (*MemcpyDtoDAsync)(DevicePtr to, DevicePtr from, size_t, Stream);
  Result (*MemsetD8Async)(DevicePtr, unsigned char value, size_t, Stream);

  Result (*StreamCreate)(Stream*, Flags);
  Result (*StreamDestroy)(Stream);
  Result (*StreamSynchronize)(Stream);
  Result (*StreamWaitEvent)(Stream, Event, Flags);
  Result (*StreamQuery)(Stream);
  Result (*EventCreate)(Event*, Flags);
  Result (*EventDestroy)(Event);
  Result (*EventRecord)(Event, Stream);
  Result (*EventQuery)(Event);
  Result (*EventSynchronize)(Event);
  Result (*EventElapsedTime)(float* milliseconds, Event start, Event end);

  Result (*ModuleLoadData)(Module*, const void* image);
  Result (*ModuleUnload)(Module);
  Result (*ModuleGetFunction)(Function*, Module, const char* name);
  Result (*FuncGetAttribute)(int* value, FunctionAttribute, Function);
  Result (*OccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, Function,
                                                      int block_threads,
                                                      size_t shared_bytes);
  Result (*LaunchKernel)(Function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y,
                         unsigned block_z, unsigned shared_bytes, Stream,
                         void** parameters, void** extra);
  Result (*LaunchHostFunc)(Stream, HostFunction, void* user_data);

  // Virtual memory management, from CUDA 10.2: nullptr in an older driver.
  // Check HasVirtualMemory().
  Result (*MemGetAllocationGranularity)(size_t*, const AllocationProperties*,
                                        Granularity);
  Result (*MemCreate)(AllocationHandle*, size_t, const AllocationProperties*,
                      LongFlags);
  Result (*MemRelease)(AllocationHandle);
  Result (*MemAddressReserve)(DevicePtr*, size_t bytes, size_t alignment,
                              DevicePtr hint, LongFlags);
  Result (*MemAddressFree)(DevicePtr, size_t bytes);
  Result (*MemMap)(DevicePtr, size_t bytes, size_t offset, AllocationHandle,
                   LongFlags);
  Result (*MemUnmap)(DevicePtr, size_t bytes);
  Result (*MemSetAccess)(DevicePtr, size_t bytes, const AccessDescription*,
                         size_t count);
  Result (*MemExportToShareableHandle)(void* handle, AllocationHandle,
                                       HandleType, LongFlags);
  Result (*MemImportFromShareableHandle)(AllocationHandle*, void* handle,
                                         HandleType);
  Result (*MemGetAllocationPropertiesFromHandle)(AllocationProperties*,
                                                 AllocationHandle);

  // Streams that are captured into graphs, from CUDA 10.0, and modes of
  // capture, from 10.1: nullptr in an older driver.
  Result (*StreamIsCapturing)(Stream, CaptureStatus*);
  Result (*ThreadExchangeStreamCaptureMode)(CaptureMode*);

  bool HasVirtualMemory() const;
};

// During its lifetime this thread may call the driver although another thread
// of the process captures a stream into a graph. Without it many calls (of
// memory, events, waits) fail with kCaptureUnsupported and invalidate that
// capture. The destructor restores the thread's previous mode. A driver before
// 10.1 has no modes: then the class does nothing.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  std::optional<CaptureMode> before_;
};

// Loads the driver: only LEAT_CUDA_LIBRARY if set, otherwise libcuda.so.1 from
// the system's usual places and those of containers and WSL.
// kNotFound: no library; names the candidates and why each did not load.
// kFailedPrecondition: a library lacks a symbol; names both.
absl::StatusOr<std::shared_ptr<const Driver>> LoadDriver(
    const LibrarySearch& search);

// OK for kSuccess; otherwise a status with the operation and the error's name,
// text and number. kResourceExhausted: out of memory. kUnavailable: the error
// poisons the context. kInternal: others.
absl::Status Check(const Driver& driver, Result result, std::string_view what);

// Returns the number of the error from which Check made a status.
std::optional<Result> ResultOf(const absl::Status& status);

// Returns whether every later call in the context fails after `result`: the
// process must end before the GPU can be used again. An invalid handle or
// context is a mistake of this program, and affects only that call.
bool PoisonsContext(Result result);
bool PoisonsContext(const absl::Status& status);

}  // namespace leat::cuda
