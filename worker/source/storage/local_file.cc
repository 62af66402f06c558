// SPDX-License-Identifier: Apache-2.0
//
// The descriptor stays with the file that was opened, so one that is renamed
// over it changes nothing. A file that is written in place is seen by its size
// or time, which every read looks at after its bytes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/status.h"
#include "worker/source/file_error.h"
#include "worker/source/storage/local.h"

namespace leat::worker {
namespace {

Identity IdentityOf(const struct stat& stat) {
  return LocalIdentity(static_cast<uint64_t>(stat.st_size), stat.st_mtim.tv_sec,
                       stat.st_mtim.tv_nsec);
}

absl::Status NotAFile(const struct stat& stat, const std::string& name) {
  return FailedPrecondition(
      "{}: {}, want a file", name,
      S_ISDIR(stat.st_mode) ? "a directory" : "not a regular file");
}

class LocalFile : public StoredFile {
 public:
  LocalFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~LocalFile() override { close(fd_); }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  absl::Status Init() {
    struct stat stat;
    if (fstat(fd_, &stat) != 0) return FileError(errno, "look at", name_);
    if (!S_ISREG(stat.st_mode)) return NotAFile(stat, name_);
    const Identity identity = IdentityOf(stat);
    size_ = identity.size;
    identity_ = identity.Text();
    mtime_ = stat.st_mtim;
    return absl::OkStatus();
  }

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  const std::string& identity() const override { return identity_; }

  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    RETURN_IF_ERROR(ReadBytes(offset, into));
    return CheckUnchanged(offset, into.size());
  }

  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& range : ranges) {
      RETURN_IF_ERROR(ReadBytes(range.offset, range.into));
    }
    if (ranges.empty()) return absl::OkStatus();
    return CheckUnchanged(ranges.front().offset, ranges.front().into.size());
  }

 private:
  absl::Status ReadBytes(uint64_t offset, std::span<std::byte> into) const {
    if (offset > size_ || into.size() > size_ - offset) {
      return OutOfRange("{}: want {} bytes at {}, the file has {}", name_,
                        into.size(), offset, size_);
    }
    for (size_t done = 0; done < into.size();) {
      const ssize_t got = pread(fd_, into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
      if (got < 0) {
        if (errno == EINTR) continue;
        return FileError(
            errno, fmt::format("read {} bytes at {} of", into.size(), offset),
            name_);
      }
      if (got == 0) {
        RETURN_IF_ERROR(CheckUnchanged(offset, into.size()));
        return DataLoss("{}: ends at {}, want {} bytes at {} of {}", name_,
                        offset + done, into.size(), offset, size_);
      }
      done += static_cast<size_t>(got);
    }
    return absl::OkStatus();
  }

  absl::Status CheckUnchanged(uint64_t offset, uint64_t wanted) const {
    struct stat now;
    if (fstat(fd_, &now) != 0) return FileError(errno, "look at", name_);
    if (static_cast<uint64_t>(now.st_size) == size_ &&
        now.st_mtim.tv_sec == mtime_.tv_sec &&
        now.st_mtim.tv_nsec == mtime_.tv_nsec) {
      return absl::OkStatus();
    }
    return FailedPrecondition(
        "{}: changed while in use (reading {} bytes at {}): was {}, is {}",
        name_, wanted, offset, identity_, IdentityOf(now).Text());
  }

  // Constant after Init.
  const int fd_;
  const std::string name_;
  uint64_t size_ = 0;
  std::string identity_;
  struct timespec mtime_ = {};
};

}  // namespace

absl::StatusOr<std::shared_ptr<const StoredFile>> OpenLocal(
    const std::string& path, const std::string& name) {
  // Non-blocking: a pipe without a writer must not hold us up.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FileError(errno, "open", name);
  auto file = std::make_shared<LocalFile>(fd, name);
  RETURN_IF_ERROR(file->Init());
  return file;
}

absl::StatusOr<StoredObject> StatLocal(const std::string& path,
                                       const std::string& name) {
  struct stat stat;
  if (::stat(path.c_str(), &stat) != 0) {
    return FileError(errno, "look at", name);
  }
  if (!S_ISREG(stat.st_mode)) return NotAFile(stat, name);
  const Identity identity = IdentityOf(stat);
  return StoredObject{name, identity.size, identity.Text()};
}

bool IsOnNetwork(const std::string& path) {
  // statfs(2): NFS, SMB1, CIFS, SMB2, FUSE, Ceph, AFS, 9P, Lustre, GPFS, Coda,
  // NCP, OCFS2.
  static constexpr uint32_t kNetwork[] = {
      0x6969,     0x517B,     0xFF534D42, 0xFE534D42, 0x65735546,
      0x00C36400, 0x5346414F, 0x01021997, 0x0BD00BD0, 0x47504653,
      0x73757245, 0x564C,     0x7461636F};
  struct statfs about;
  if (statfs(path.c_str(), &about) != 0) return false;
  return std::find(std::begin(kNetwork), std::end(kNetwork),
                   static_cast<uint32_t>(about.f_type)) != std::end(kNetwork);
}

}  // namespace leat::worker
