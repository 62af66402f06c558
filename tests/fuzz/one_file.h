// SPDX-License-Identifier: Apache-2.0
//
// OneFile: storage's bytes from a fuzzer, in a file that lives in memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fmt/format.h"

namespace leat::worker {

class OneFile {
 public:
  OneFile(const uint8_t* data, size_t size)
      : fd_(memfd_create("fuzz", MFD_CLOEXEC)),
        path_(fmt::format("/proc/self/fd/{}", fd_)) {
    if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size))
      abort();
  }
  ~OneFile() { close(fd_); }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const int fd_;
  const std::string path_;
};

}  // namespace leat::worker
