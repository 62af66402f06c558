// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that makes storage fail as a mount does, and threads
// scarce, in a process that knows nothing of it.
//
//   LEAT_SHIM_PREFIX   what is done to paths that begin so fails
//   LEAT_SHIM_CONTROL  a file that says how, looked at by each call: EIO,
//                      ENOENT or ESTALE; HANG: the call never returns, as one
//                      that waits for a dead NFS server; FSYNC: only fsync
//                      fails, with EIO; empty or missing: not at all
//   LEAT_SHIM_THREADS  so many threads may be started in all
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <class F>
F Real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

[[noreturn]] void Hang() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (true) pause();
}

// The errno that such a call, or an fsync, fails with now; 0: it does not.
int Fault(bool sync) {
  const char* const control = std::getenv("LEAT_SHIM_CONTROL");
  if (control == nullptr) return 0;
  const long fd = syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[16] = {};
  const long got = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (got <= 0) return 0;
  if (std::strncmp(text, "FSYNC", 5) == 0) return sync ? EIO : 0;
  if (std::strncmp(text, "HANG", 4) == 0) Hang();
  if (std::strncmp(text, "EIO", 3) == 0) return EIO;
  if (std::strncmp(text, "ENOENT", 6) == 0) return ENOENT;
  if (std::strncmp(text, "ESTALE", 6) == 0) return ESTALE;
  return 0;
}

// Whether a call on this path is to fail; sets errno.
bool Fails(const char* path, bool sync = false) {
  const char* const prefix = std::getenv("LEAT_SHIM_PREFIX");
  if (prefix == nullptr || path == nullptr ||
      std::strncmp(path, prefix, std::strlen(prefix)) != 0)
    return false;
  const int error = Fault(sync);
  if (error == 0) return false;
  errno = error;
  return true;
}

bool Fails(int fd, bool sync = false) {
  char link[32], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  return Fails(path, sync);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0
                          ? static_cast<mode_t>(va_arg(args, int))
                          : 0;
  va_end(args);
  if (Fails(path)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int __open_2(const char* path, int flags) { return open(path, flags); }

ssize_t pread(int fd, void* into, size_t size, off_t at) {
  if (Fails(fd)) return -1;
  return syscall(SYS_pread64, fd, into, size, at);
}

ssize_t __pread_chk(int fd, void* into, size_t size, off_t at, size_t) {
  return pread(fd, into, size, at);
}

int fsync(int fd) {
  if (Fails(fd, /*sync=*/true)) return -1;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  if (Fails(fd, /*sync=*/true)) return -1;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

DIR* opendir(const char* path) {
  if (Fails(path)) return nullptr;
  static const auto real = Real<DIR* (*)(const char*)>("opendir");
  return real(path);
}

int stat(const char* path, struct stat* about) {
  if (Fails(path)) return -1;
  static const auto real = Real<int (*)(const char*, struct stat*)>("stat");
  return real(path, about);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*body)(void*), void* argument) {
  static std::atomic<int> started{0};
  const char* const limit = std::getenv("LEAT_SHIM_THREADS");
  if (limit != nullptr && started++ >= std::atoi(limit)) return EAGAIN;
  static const auto real =
      Real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          "pthread_create");
  return real(thread, attributes, body, argument);
}

}  // extern "C"
