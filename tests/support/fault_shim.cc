// SPDX-License-Identifier: Apache-2.0
//
// leat_fault_shim: loaded before the C library (LD_PRELOAD), it makes a
// process's files and listeners fail, limits its threads, and makes its wall
// clock jump, as a test asks (file_faults.py).
//
// LEAT_FAULT_SWITCH names a file that is mapped once, so that reading it costs
// no system call. It holds little-endian words of 32 bits:
//
//   0..7    the fault of each operation (Operation): 0: none; an errno;
//           kHang: it waits until the word changes; kShort: half of the
//           requested bytes; kCopy: synced data is copied to NAME.synced,
//           which is all that a disk keeps of it after a power loss
//   8..15   how often each fault happened
//   16..17  by how many nanoseconds the wall clock is ahead, signed
//   18..    the path below which files fail, ended by a zero byte
//
// A descriptor's path is read from /proc, and only while its operation fails.
// An operation that hangs takes no signal, like a call that waits for a dead
// server.
//
// The wall clock is that of clock_gettime, gettimeofday and time, and of waits
// until a time of it; a wait that has begun ends as if there were no jump.
// LEAT_FAULT_THREADS: the number of threads that may be started in all.
// LEAT_FAULT_PIXELS: libjpeg decodes like another release: the first byte of
// every row differs.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

enum Operation { kOpen, kRead, kSync, kAccept, kWrite, kList, kOperations = 8 };
constexpr uint32_t kHang = 10'000, kShort = 10'001, kCopy = 10'002;
constexpr size_t kPrefixAt = 2 * kOperations * sizeof(uint32_t) + 8;
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr size_t kSwitchBytes = 4096;

struct Switch {
  std::atomic<uint32_t> faults[kOperations];
  std::atomic<uint32_t> hits[kOperations];
  std::atomic<int64_t> ahead_ns;
  char prefix[kSwitchBytes - kPrefixAt];
};
static_assert(sizeof(Switch) == kSwitchBytes);

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Maps the switch. nullptr: there is none, and nothing fails.
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

// Returns what the operation does instead, after it has hung: 0: its normal
// work; an errno, or kShort.
template <class Where>
uint32_t Fault(Operation operation, Where where) {
  Switch* const all = TheSwitch();
  if (all == nullptr) return 0;
  std::atomic<uint32_t>& fault = all->faults[operation];
  if (fault == 0) return 0;
  if (operation != kAccept && !IsBelow(where)) return 0;
  sigset_t every, before;
  sigfillset(&every);
  if (fault == kHang) pthread_sigmask(SIG_SETMASK, &every, &before);
  const bool hung = ++all->hits[operation] != 0 && fault == kHang;
  while (fault == kHang) {
    const timespec while_it_hangs = {0, 10'000'000};
    nanosleep(&while_it_hangs, nullptr);
  }
  if (hung) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return fault;
}

timespec Moved(const timespec& time, int64_t by_ns) {
  const int64_t ns = time.tv_sec * kNsPerSecond + time.tv_nsec + by_ns;
  const int64_t rest = (ns % kNsPerSecond + kNsPerSecond) % kNsPerSecond;
  return {(ns - rest) / kNsPerSecond, rest};
}

int64_t AheadNs() {
  Switch* const all = TheSwitch();
  return all == nullptr ? 0 : all->ahead_ns.load();
}

bool IsWallClock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

// Returns the kernel's time at which the shifted clock shows `until`.
timespec OfKernel(clockid_t clock, const timespec* until) {
  return IsWallClock(clock) ? Moved(*until, -AheadNs()) : *until;
}

size_t Size(uint32_t fault, size_t bytes) {
  return fault == kShort && bytes > 1 ? bytes / 2 : bytes;
}

int Fail(uint32_t fault) {
  errno = static_cast<int>(fault);
  return -1;
}

bool IsError(uint32_t fault) {
  return fault != 0 && fault != kShort && fault != kCopy;
}

// Replaces the copy atomically, before the sync is reported as done.
void CopySynced(int fd) {
  char link[64], path[4000], part[4096], whole[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  struct stat about;
  if (size < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return;
  path[size] = '\0';
  snprintf(part, sizeof part, "%s.synced-part", path);
  snprintf(whole, sizeof whole, "%s.synced", path);
  const int from = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  const int to =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, part,
                               O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  char bytes[1 << 16];
  for (long got = 0; (got = syscall(SYS_read, from, bytes, sizeof bytes)) > 0;)
    if (syscall(SYS_write, to, bytes, got) != got) abort();
  close(from);
  close(to);
  rename(part, whole);
}

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

// The compiler emits these calls where it checks sizes.
int __open_2(const char* path, int flags) { return open(path, flags); }
int __open64_2(const char* path, int flags) { return open64(path, flags); }

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

ssize_t __read_chk(int fd, void* to, size_t bytes, size_t) {
  return read(fd, to, bytes);
}
ssize_t __pread_chk(int fd, void* to, size_t bytes, off_t at, size_t) {
  return pread(fd, to, bytes, at);
}
ssize_t __pread64_chk(int fd, void* to, size_t bytes, off_t at, size_t) {
  return pread64(fd, to, bytes, at);
}

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
    if (fault == kCopy) CopySynced(fd);              \
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

DIR* opendir(const char* path) {
  static auto* const next = Next<DIR*(const char*)>("opendir");
  const uint32_t fault = Fault(kList, path);
  if (!IsError(fault)) return next(path);
  errno = static_cast<int>(fault);
  return nullptr;
}

int stat(const char* path, struct stat* about) {
  static auto* const next = Next<int(const char*, struct stat*)>("stat");
  const uint32_t fault = Fault(kList, path);
  return IsError(fault) ? Fail(fault) : next(path, about);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*body)(void*), void* argument) {
  static std::atomic<int> started{0};
  static const char* const limit = getenv("LEAT_FAULT_THREADS");
  if (limit != nullptr && started++ >= atoi(limit)) return EAGAIN;
  static auto* const next =
      Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          "pthread_create");
  return next(thread, attributes, body, argument);
}

unsigned jpeg_read_scanlines(void* decoder, unsigned char** rows,
                             unsigned most) {
  static auto* const next =
      Next<unsigned(void*, unsigned char**, unsigned)>("jpeg_read_scanlines");
  static const bool changed = getenv("LEAT_FAULT_PIXELS") != nullptr;
  const unsigned got = next(decoder, rows, most);
  if (changed)
    for (unsigned i = 0; i < got; ++i)
      rows[i][0] = static_cast<unsigned char>(rows[i][0] ^ 0x80);
  return got;
}

int clock_gettime(clockid_t clock, timespec* time) {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int failed = next(clock, time);
  if (failed == 0 && IsWallClock(clock)) *time = Moved(*time, AheadNs());
  return failed;
}

int gettimeofday(timeval* time, void*) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* time) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (time != nullptr) *time = now.tv_sec;
  return now.tv_sec;
}

// For waits of locks that are futexes themselves.
long syscall(long number, ...) {
  static auto* const next = Next<long(long, ...)>("syscall");
  long args[6];
  va_list list;
  va_start(list, number);
  for (long& arg : args) arg = va_arg(list, long);
  va_end(list);
  timespec at;
  if (number == SYS_futex && args[3] != 0 &&
      (args[1] & FUTEX_CLOCK_REALTIME) != 0) {
    at = OfKernel(CLOCK_REALTIME, reinterpret_cast<const timespec*>(args[3]));
    args[3] = reinterpret_cast<long>(&at);
  }
  return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>(
          "pthread_cond_clockwait");
  const timespec at = OfKernel(CLOCK_REALTIME, until);
  return next(condition, mutex, CLOCK_REALTIME, &at);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           clockid_t clock, const timespec* until) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>(
          "pthread_cond_clockwait");
  const timespec at = OfKernel(clock, until);
  return next(condition, mutex, clock, &at);
}

}  // extern "C"
