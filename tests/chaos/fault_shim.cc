// SPDX-License-Identifier: Apache-2.0
//
// leat_fault_shim: loaded before the C library (LD_PRELOAD), it makes a
// process's files and listeners fail as a test says (faults.py, FileFaults).
//
// LEAT_FAULT_SWITCH names a file that is mapped once, so that a look at it
// costs no system call. Little-endian words of 32 bits:
//
//   0..7    what becomes of each operation (Operation): 0: nothing; an errno;
//           kHang: it waits until that changes; kShort: half of what was asked
//   8..15   how often that happened
//   16..    the path below which files fail, ended by a zero byte
//
// A descriptor's path is asked of /proc, and only while its operation fails.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

enum Operation { kOpen, kRead, kSync, kAccept, kWrite, kOperations = 8 };
constexpr uint32_t kHang = 10'000, kShort = 10'001;
constexpr size_t kPrefixAt = 2 * kOperations * sizeof(uint32_t);
constexpr size_t kSwitchBytes = 4096;

struct Switch {
  std::atomic<uint32_t> faults[kOperations];
  std::atomic<uint32_t> hits[kOperations];
  char prefix[kSwitchBytes - kPrefixAt];
};
static_assert(sizeof(Switch) == kSwitchBytes);

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Null: no switch, nothing fails.
Switch* Map() {
  const char* const path = getenv("LEAT_FAULT_SWITCH");
  if (path == nullptr) return nullptr;
  static auto* const real_open = Next<int(const char*, int, ...)>("open");
  const int fd = real_open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const memory =
      mmap(nullptr, kSwitchBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Switch*>(memory);
}

Switch* TheSwitch() {
  static Switch* const mapped = Map();
  return mapped;
}

bool IsBelow(const char* path) {
  const char* const prefix = TheSwitch()->prefix;
  return strncmp(path, prefix, strnlen(prefix, sizeof(Switch::prefix))) == 0;
}

bool IsBelow(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return false;
  path[size] = '\0';
  return IsBelow(path);
}

// What the operation does instead, once nothing hangs: 0: what it should; an
// errno, or kShort.
template <class Where>
uint32_t Fault(Operation operation, Where where) {
  Switch* const all = TheSwitch();
  if (all == nullptr) return 0;
  std::atomic<uint32_t>& fault = all->faults[operation];
  if (fault == 0) return 0;
  if (operation != kAccept && !IsBelow(where)) return 0;
  ++all->hits[operation];
  while (fault == kHang) {
    const timespec while_it_hangs = {0, 10'000'000};
    nanosleep(&while_it_hangs, nullptr);
  }
  return fault;
}

size_t Size(uint32_t fault, size_t bytes) {
  return fault == kShort && bytes > 1 ? bytes / 2 : bytes;
}

int Fail(uint32_t fault) {
  errno = static_cast<int>(fault);
  return -1;
}

bool IsError(uint32_t fault) { return fault != 0 && fault != kShort; }

mode_t Mode(int flags, va_list list) {
  return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0;
}

}  // namespace

extern "C" {

#define SHIM_OPEN(name)                                                \
  int name(const char* path, int flags, ...) {                         \
    static auto* const next = Next<int(const char*, int, ...)>(#name); \
    va_list list;                                                      \
    va_start(list, flags);                                             \
    const mode_t mode = Mode(flags, list);                             \
    va_end(list);                                                      \
    const uint32_t fault = Fault(kOpen, path);                         \
    return IsError(fault) ? Fail(fault) : next(path, flags, mode);     \
  }
SHIM_OPEN(open)
SHIM_OPEN(open64)

#define SHIM_OPENAT(name)                                                   \
  int name(int at, const char* path, int flags, ...) {                      \
    static auto* const next = Next<int(int, const char*, int, ...)>(#name); \
    va_list list;                                                           \
    va_start(list, flags);                                                  \
    const mode_t mode = Mode(flags, list);                                  \
    va_end(list);                                                           \
    const uint32_t fault = Fault(kOpen, path);                              \
    return IsError(fault) ? Fail(fault) : next(at, path, flags, mode);      \
  }
SHIM_OPENAT(openat)
SHIM_OPENAT(openat64)

ssize_t read(int fd, void* to, size_t bytes) {
  static auto* const next = Next<ssize_t(int, void*, size_t)>("read");
  const uint32_t fault = Fault(kRead, fd);
  return IsError(fault) ? Fail(fault) : next(fd, to, Size(fault, bytes));
}

#define SHIM_PREAD(name)                                                       \
  ssize_t name(int fd, void* to, size_t bytes, off_t at) {                     \
    static auto* const next = Next<ssize_t(int, void*, size_t, off_t)>(#name); \
    const uint32_t fault = Fault(kRead, fd);                                   \
    return IsError(fault) ? Fail(fault)                                        \
                          : next(fd, to, Size(fault, bytes), at);              \
  }
SHIM_PREAD(pread)
SHIM_PREAD(pread64)

#define SHIM_PWRITE(name)                                           \
  ssize_t name(int fd, const void* from, size_t bytes, off_t at) {  \
    static auto* const next =                                       \
        Next<ssize_t(int, const void*, size_t, off_t)>(#name);      \
    const uint32_t fault = Fault(kWrite, fd);                       \
    return IsError(fault) ? Fail(fault)                             \
                          : next(fd, from, Size(fault, bytes), at); \
  }
SHIM_PWRITE(pwrite)
SHIM_PWRITE(pwrite64)

#define SHIM_SYNC(name)                              \
  int name(int fd) {                                 \
    static auto* const next = Next<int(int)>(#name); \
    const uint32_t fault = Fault(kSync, fd);         \
    return IsError(fault) ? Fail(fault) : next(fd);  \
  }
SHIM_SYNC(fsync)
SHIM_SYNC(fdatasync)

int accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  static auto* const next =
      Next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  const uint32_t fault = Fault(kAccept, fd);
  return IsError(fault) ? Fail(fault) : next(fd, peer, size, flags);
}

}  // extern "C"
