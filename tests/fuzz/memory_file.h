// SPDX-License-Identifier: Apache-2.0
//
// Files in memory: MemoryFile for functions that take a StorageFile, NamedFile
// for those that take a path.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "fmt/format.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// The bytes are in memory of exactly their size.
class MemoryFile : public StorageFile {
 public:
  explicit MemoryFile(std::string_view bytes)
      : bytes_(bytes.begin(), bytes.end()) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  const std::string& identity() const override { return name_; }
  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    if (offset > size() || into.size() > size() - offset) abort();
    if (!into.empty())
      std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return absl::OkStatus();
  }
  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges)
      RETURN_IF_ERROR(ReadAt(range.offset, range.into));
    return absl::OkStatus();
  }

 private:
  const std::vector<char> bytes_;
  const std::string name_ = "memory";
};

// A path of a file with these bytes. With a `number`, path and time are always
// the same, so an index of it stays valid.
class NamedFile {
 public:
  static constexpr const char* kFolder = "/proc/self/fd";

  explicit NamedFile(std::string_view bytes, int number = -1)
      : fd_(Make(number)), path_(fmt::format("{}/{}", kFolder, fd_)) {
    constexpr timespec kTimes[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    if (write(fd_, bytes.data(), bytes.size()) !=
            static_cast<ssize_t>(bytes.size()) ||
        futimens(fd_, kTimes) != 0)
      abort();
  }
  ~NamedFile() { close(fd_); }
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static int Make(int number) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0) abort();
    if (number < 0) return fd;
    if (dup2(fd, number) != number) abort();
    close(fd);
    return number;
  }
  const int fd_;
  const std::string path_;
};

}  // namespace leat::worker
