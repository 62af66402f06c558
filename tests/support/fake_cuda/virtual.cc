// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory management of the fake driver: an allocation is a memfd, so
// that an exported one is the same memory in another process.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/support/fake_cuda/state.h"

using leat::MutexLock;
using namespace leat::cuda;       // NOLINT: the types of every signature
using namespace leat::fake_cuda;  // NOLINT

namespace leat::fake_cuda {
namespace {

constexpr char kMemfdName[] = "leat-fake-cuda";

// The granularity of this process; two processes may have different ones.
size_t GranularityHere() {
  State& state = GetState();
  MutexLock lock(&state.mu);
  return state.settings["granularity"];
}

bool IsWhole(size_t bytes) {
  return bytes > 0 && bytes % GranularityHere() == 0;
}

// Ends one use of an allocation.
void Drop(State& state, uint64_t handle)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu) {
  Allocation& allocation = state.handles[handle];
  if (--allocation.users > 0) return;
  close(allocation.fd);
  if (!allocation.imported)
    state.used_bytes[allocation.device] -= allocation.bytes;
  state.handles.erase(handle);
}

// True if it is a memfd that a fake driver made.
bool IsOurs(int fd) {
  char link[64], target[64] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, target, sizeof target - 1) < 0) return false;
  return std::strstr(target, kMemfdName) != nullptr;
}

}  // namespace
}  // namespace leat::fake_cuda

extern "C" {

Result cuMemGetAllocationGranularity(size_t* bytes,
                                     const AllocationProperties* properties,
                                     Granularity) {
  FAKE_ENTER_UNSAFE();
  if (properties == nullptr ||
      properties->location.type != LocationType::kDevice)
    return Result::kInvalidValue;
  *bytes = GranularityHere();
  return Result::kSuccess;
}

Result cuMemCreate(AllocationHandle* handle, size_t bytes,
                   const AllocationProperties* properties, LongFlags flags) {
  FAKE_ENTER_UNSAFE();
  if (properties == nullptr || flags != 0 || !IsWhole(bytes) ||
      properties->type != AllocationType::kPinned ||
      properties->location.type != LocationType::kDevice)
    return Result::kInvalidValue;
  State& state = GetState();
  MutexLock lock(&state.mu);
  const int device = properties->location.id;
  if (device < 0 || static_cast<uint64_t>(device) >= state.settings["devices"])
    return Result::kInvalidDevice;
  if (!state.Take(device, bytes)) return Result::kOutOfMemory;
  const int fd = memfd_create(kMemfdName, MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    if (fd >= 0) close(fd);
    state.used_bytes[device] -= bytes;
    return Result::kOutOfMemory;
  }
  *handle = state.NewHandle();
  state.handles[*handle] = {.fd = fd,
                            .bytes = bytes,
                            .device = device,
                            .exported_as = properties->handle_types};
  ++state.counts["handles"];
  return Result::kSuccess;
}

Result cuMemRelease(AllocationHandle handle) {
  FAKE_ENTER_UNSAFE();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!state.handles.contains(handle))
    return state.Violate(__func__, "a handle that does not exist");
  --state.counts["handles"];
  Drop(state, handle);
  return Result::kSuccess;
}

Result cuMemExportToShareableHandle(void* out, AllocationHandle handle,
                                    HandleType type, LongFlags flags) {
  FAKE_ENTER_UNSAFE();
  State& state = GetState();
  MutexLock lock(&state.mu);
  if (!state.handles.contains(handle))
    return state.Violate(__func__, "a handle that does not exist");
  if (type != HandleType::kPosixFileDescriptor || flags != 0 ||
      state.handles[handle].exported_as != type)
    return Result::kInvalidValue;
  const int fd = fcntl(state.handles[handle].fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return Result::kInvalidValue;
  *static_cast<int*>(out) = fd;
  return Result::kSuccess;
}

Result cuMemImportFromShareableHandle(AllocationHandle* handle, void* os_handle,
                                      HandleType type) {
  FAKE_ENTER_UNSAFE_CONTEXT(device);
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  struct stat status;
  if (type != HandleType::kPosixFileDescriptor || !IsOurs(fd) ||
      fstat(fd, &status) != 0)
    return Result::kInvalidValue;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return Result::kInvalidValue;
  State& state = GetState();
  MutexLock lock(&state.mu);
  *handle = state.NewHandle();
  state.handles[*handle] = {.fd = own,
                            .bytes = static_cast<size_t>(status.st_size),
                            .device = device,
                            .imported = true,
                            .exported_as = type};
  ++state.counts["handles"];
  return Result::kSuccess;
}

Result cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties,
                                              AllocationHandle handle) {
  FAKE_ENTER_UNSAFE();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.handles.find(handle);
  if (found == state.handles.end())
    return state.Violate(__func__, "a handle that does not exist");
  *properties = {};
  properties->handle_types = found->second.exported_as;
  properties->location.id = found->second.device;
  return Result::kSuccess;
}

Result cuMemAddressReserve(DevicePtr* at, size_t bytes, size_t alignment,
                           DevicePtr, LongFlags flags) {
  FAKE_ENTER_UNSAFE();
  if (!IsWhole(bytes) || flags != 0 || (alignment & (alignment - 1)) != 0)
    return Result::kInvalidValue;
  void* const memory = mmap(nullptr, bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Result::kOutOfMemory;
  State& state = GetState();
  MutexLock lock(&state.mu);
  *at = reinterpret_cast<uintptr_t>(memory);
  state.reserved[*at] = {.bytes = bytes};
  ++state.counts["reservations"];
  return Result::kSuccess;
}

Result cuMemAddressFree(DevicePtr at, size_t bytes) {
  FAKE_ENTER_UNSAFE();
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.reserved.find(at);
  if (found == state.reserved.end() || found->second.bytes != bytes)
    return state.Violate(__func__, "a range that was not reserved");
  const auto mapping = state.mappings.lower_bound(at);
  if (mapping != state.mappings.end() && mapping->first < at + bytes)
    return state.Violate(__func__, "a range in which memory is mapped");
  state.reserved.erase(found);
  --state.counts["reservations"];
  munmap(reinterpret_cast<void*>(at), bytes);
  return Result::kSuccess;
}

Result cuMemMap(DevicePtr at, size_t bytes, size_t offset,
                AllocationHandle handle, LongFlags flags) {
  FAKE_ENTER_UNSAFE();
  if (!IsWhole(bytes)) return Result::kInvalidValue;
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.handles.find(handle);
  if (found == state.handles.end())
    return state.Violate(__func__, "a handle that does not exist");
  if (!Holds(state.reserved, at, bytes) || state.mappings.contains(at))
    return state.Violate(__func__, "a range that is not reserved, or in use");
  if (offset != 0 || flags != 0 || bytes != found->second.bytes)
    return Result::kInvalidValue;
  if (mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
           MAP_SHARED | MAP_FIXED, found->second.fd, 0) == MAP_FAILED)
    return Result::kOutOfMemory;
  ++found->second.users;
  state.mappings[at] = {.bytes = bytes, .allocation = handle};
  state.mapped[at] = {.bytes = bytes, .accessible = false};
  ++state.counts["mappings"];
  return Result::kSuccess;
}

Result cuMemSetAccess(DevicePtr at, size_t bytes,
                      const AccessDescription* access, size_t count) {
  FAKE_ENTER_UNSAFE();
  if (!IsWhole(bytes)) return Result::kInvalidValue;
  State& state = GetState();
  MutexLock lock(&state.mu);
  const auto found = state.mapped.find(at);
  if (found == state.mapped.end() || found->second.bytes != bytes)
    return state.Violate(__func__, "a range that is not mapped");
  if (count != 1 || access->location.type != LocationType::kDevice)
    return Result::kInvalidValue;
  int protection = PROT_NONE;
  if (access->flags == Access::kRead) protection = PROT_READ;
  if (access->flags == Access::kReadWrite) protection = PROT_READ | PROT_WRITE;
  if (mprotect(reinterpret_cast<void*>(at), bytes, protection) != 0)
    return Result::kInvalidValue;
  found->second.accessible = protection != PROT_NONE;
  return Result::kSuccess;
}

Result cuMemUnmap(DevicePtr at, size_t bytes) {
  FAKE_ENTER_UNSAFE();
  State& state = GetState();
  const bool used = StreamTraffic().Touches({at, bytes});
  MutexLock lock(&state.mu);
  // This does not wait for streams; a real driver does not wait for all of them
  // either.
  if (used)
    return state.Violate(__func__, "memory that queued work has still to use");
  const auto found = state.mappings.find(at);
  if (found == state.mappings.end() || found->second.bytes != bytes)
    return state.Violate(__func__, "a range that is not mapped");
  const uint64_t handle = found->second.allocation;
  state.mappings.erase(found);
  state.mapped.erase(at);
  --state.counts["mappings"];
  // A later write there ends the process with a fault.
  mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  Drop(state, handle);
  return Result::kSuccess;
}

}  // extern "C"
