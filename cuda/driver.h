// SPDX-License-Identifier: Apache-2.0
//
// Driver: the CUDA driver (libcuda.so.1) as a table of function pointers,
// loaded at run time, so that one binary starts with and without a GPU.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<const cuda::Driver> driver,
//                    cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment()));
//   RETURN_IF_ERROR(cuda::Check(*driver, driver->Init(0), "cuInit"));
//
// Only the driver API is used, no CUDA runtime. Functions are as in cuda.h; a
// member's name is the symbol's without "cu" and version. Loading calls nothing
// of the library. A library that was loaded stays loaded until the process
// ends: drivers have threads and exit handlers of their own.
//
// Thread safety: the table is constant; the functions are thread-safe, the
// current context is each thread's own.
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

  // Virtual memory management, from CUDA 10.2: null in an older driver. Ask
  // HasVirtualMemory().
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
  // capture, from 10.1: null in an older driver.
  Result (*StreamIsCapturing)(Stream, CaptureStatus*);
  Result (*ThreadExchangeStreamCaptureMode)(CaptureMode*);

  bool HasVirtualMemory() const;
};

// While one lives, this thread may call the driver although another thread of
// the process captures a stream into a graph. Without it many calls (of memory,
// events, waits) fail by kCaptureUnsupported and spoil that capture. The mode
// that the thread had comes back at the end. A driver before 10.1 has no modes:
// then nothing is done.
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

// Loads the driver: LEAT_CUDA_LIBRARY alone if set, else libcuda.so.1 where the
// system finds it and in the places of containers and WSL.
// kNotFound: no library; names what was tried and why it did not load.
// kFailedPrecondition: a library without a symbol; names both.
absl::StatusOr<std::shared_ptr<const Driver>> LoadDriver(
    const LibrarySearch& search);

// OK for kSuccess, else a status that says what was being done, and the error's
// name, text and number. kResourceExhausted: out of memory. kUnavailable: the
// error poisons the context. kInternal: others.
absl::Status Check(const Driver& driver, Result result, std::string_view what);

// The number of the error that Check made a status of.
std::optional<Result> ResultOf(const absl::Status& status);

// Whether nothing in the context can succeed after `result`: the process must
// end for the GPU to be used again. A handle or a context that a call does not
// know is our own mistake, which spoils that call only.
bool PoisonsContext(Result result);
bool PoisonsContext(const absl::Status& status);

}  // namespace leat::cuda
