// SPDX-License-Identifier: Apache-2.0
//
// The descriptor refers to the file that was opened, so a file that is renamed
// over it changes nothing. A file that is written in place is detected by its
// size or time, which every read checks after its bytes.
//
// A descriptor that no read uses may be closed (OpenFileBudget). The next read
// opens the path again, and wants a file of the same size and time there.
//
// A network's file server may forget a descriptor's file (ESTALE): the path is
// then opened again, once, and if the same file is there the descriptor refers
// to it from then on.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <iterator>

#include "core/cluster/fault.h"
#include "core/fd.h"
#include "core/file_kind.h"
#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/source/faults/file_error.h"
#include "worker/source/faults/modified_time.h"
#include "worker/source/storage/local/local.h"

namespace leat::worker {
namespace {

Identity IdentityOf(const struct stat& stat) {
  return LocalIdentity(static_cast<uint64_t>(stat.st_size), stat.st_mtim.tv_sec,
                       stat.st_mtim.tv_nsec);
}

absl::Status NotAFile(const struct stat& stat, const std::string& name) {
  return WithFault(
      FailedPrecondition("{}: {}, want a file", name, FileKind(stat.st_mode)),
      Fault::kObject);
}

// Does not block, since a pipe without a writer must not hold up the caller.
// Errors as AllowedReads::Open.
absl::Status OpenToRead(const AllowedReads* allowed, const std::string& path,
                        const std::string& name, int* fd) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  if (allowed != nullptr) return allowed->Open(path, kFlags, name, fd);
  *fd = open(path.c_str(), kFlags);
  return absl::OkStatus();
}

// Opens `path` only to examine it. On success the caller closes `*fd`.
absl::Status OpenToLook(const AllowedReads& allowed, const std::string& path,
                        const std::string& name, int* fd, struct stat* stat) {
  RETURN_IF_ERROR(allowed.Open(path, O_PATH, name, fd));
  if (*fd < 0) return FileError(errno, "look at", name);
  if (fstat(*fd, stat) == 0) return absl::OkStatus();
  const int error = errno;
  close(*fd);
  return FileError(error, "look at", name);
}

// How many ranges one call of the system reads at most.
constexpr size_t kMostTogether = 64;

// Returns how many of the first ranges each begin where the one before ends, at
// most kMostTogether: 1 or more.
size_t AdjacentIn(std::span<const ReadRange> ranges) {
  const size_t most = std::min(ranges.size(), kMostTogether);
  size_t count = 1;
  while (count < most &&
         ranges[count].offset ==
             ranges[count - 1].offset + ranges[count - 1].into.size())
    ++count;
  return count;
}

class LocalFile : public StorageFile {
 public:
  LocalFile(std::shared_ptr<const AllowedReads> allowed,
            std::shared_ptr<OpenFileBudget> budget, std::string path,
            std::string name, std::string folder)
      : allowed_(std::move(allowed)),
        path_(std::move(path)),
        name_(std::move(name)),
        folder_(std::move(folder)),
        share_(std::move(budget)) {}

  absl::Status Init() {
    return share_
        .Get([this]() -> absl::StatusOr<int> {
          struct stat stat;
          ASSIGN_OR_RETURN(Fd fd, OpenNow(/*again=*/false, &stat));
          const Identity identity = IdentityOf(stat);
          size_ = identity.size;
          identity_ = identity.Text();
          mtime_ = stat.st_mtim;
          return fd.Release();
        })
        .status();
  }

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  const std::string& identity() const override { return identity_; }

  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    const ReadRange range = {offset, into};
    return ReadRanges({&range, 1});
  }

  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    if (ranges.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const OpenFileShare::Use use,
                     share_.Get([this]() { return OpenAgain(); }));
    bool stale = false;
    const absl::Status status = TryRanges(use.fd(), ranges, &stale);
    if (!stale) return status;
    RETURN_IF_ERROR(Replace(use.fd()));
    const absl::Status again = TryRanges(use.fd(), ranges, &stale);
    return stale ? WithFault(again, Fault::kWorker) : again;
  }

 private:
  // Sets `*stale` to whether it failed because the descriptor's file is
  // forgotten.
  absl::Status TryRanges(int fd, std::span<const ReadRange> ranges,
                         bool* stale) const {
    *stale = false;
    for (std::span<const ReadRange> left = ranges; !left.empty();) {
      const std::span<const ReadRange> run = left.first(AdjacentIn(left));
      left = left.subspan(run.size());
      if (run.size() > 1 && ReadTogether(fd, run)) continue;
      for (const ReadRange& range : run) {
        RETURN_IF_ERROR(ReadBytes(fd, range.offset, range.into, stale));
      }
    }
    return CheckUnchanged(fd, ranges.front().offset, ranges.front().into.size(),
                          stale);
  }

  // Opens what is at the path, if it is a file.
  absl::StatusOr<Fd> OpenNow(bool again, struct stat* stat) const {
    int opened = -1;
    RETURN_IF_ERROR(OpenToRead(allowed_.get(), path_, name_, &opened));
    Fd fd(opened);
    if (!fd.open()) {
      const int error = errno;
      // A socket cannot be opened, nor a device whose driver is not there.
      if (error == ENXIO && ::stat(path_.c_str(), stat) == 0 &&
          !S_ISREG(stat->st_mode))
        return NotAFile(*stat, name_);
      const absl::Status status = IndexedFileError(
          error, again ? "open again" : "open", name_, path_, folder_);
      return again && error == ESTALE ? WithFault(status, Fault::kWorker)
                                      : status;
    }
    if (fstat(fd.get(), stat) != 0) return FileError(errno, "look at", name_);
    if (!S_ISREG(stat->st_mode)) return NotAFile(*stat, name_);
    return fd;
  }

  // Opens the file that this object is of.
  absl::StatusOr<Fd> OpenSame() const {
    struct stat stat;
    ASSIGN_OR_RETURN(Fd fd, OpenNow(/*again=*/true, &stat));
    if (IdentityOf(stat).Text() != identity_) {
      return Changed("it was opened again", stat);
    }
    return fd;
  }

  // Does the same after the budget has closed it.
  absl::StatusOr<int> OpenAgain() const {
    const StageScope opening(Stage::kOpen);
    absl::StatusOr<Fd> fd = OpenSame();
    if (!fd.ok()) return WithDefaultFault(fd.status(), Fault::kWorker);
    return fd->Release();
  }

  // Replaces the file under the descriptor; reads in progress continue with the
  // old one.
  absl::Status Replace(int fd) const {
    ASSIGN_OR_RETURN(const Fd same, OpenSame());
    if (dup3(same.get(), fd, O_CLOEXEC) >= 0) return absl::OkStatus();
    return FileError(errno, "open again", name_);
  }

  absl::Status Changed(std::string_view when, const struct stat& now) const {
    return WithFault(
        FailedPrecondition("{}: changed while in use ({}): was {}, is {}",
                           name_, when, identity_, IdentityOf(now).Text()),
        Fault::kObject);
  }

  // Reads adjacent ranges by one call of the system. False: not all of their
  // bytes came; read one by one, they tell why.
  bool ReadTogether(int fd, std::span<const ReadRange> run) const {
    std::array<struct iovec, kMostTogether> parts;
    size_t bytes = 0;
    for (size_t i = 0; i < run.size(); ++i) {
      parts[i] = {run[i].into.data(), run[i].into.size()};
      bytes += run[i].into.size();
    }
    const uint64_t offset = run.front().offset;
    if (offset > size_ || bytes > size_ - offset) return false;
    return preadv(fd, parts.data(), static_cast<int>(run.size()),
                  static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }

  absl::Status ReadBytes(int fd, uint64_t offset, std::span<std::byte> into,
                         bool* stale) const {
    if (offset > size_ || into.size() > size_ - offset) {
      return WithFault(OutOfRange("{}: want {} bytes at {}, the file has {}",
                                  name_, into.size(), offset, size_),
                       Fault::kSample);
    }
    for (size_t done = 0; done < into.size();) {
      const ssize_t got = pread(fd, into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
      if (got < 0) {
        if (errno == EINTR) continue;
        *stale = errno == ESTALE;
        return FileError(
            errno, fmt::format("read {} bytes at {} of", into.size(), offset),
            name_);
      }
      if (got == 0) {
        RETURN_IF_ERROR(CheckUnchanged(fd, offset, into.size(), stale));
        return WithFault(
            DataLoss("{}: ends at {}, want {} bytes at {} of {}", name_,
                     offset + done, into.size(), offset, size_),
            Fault::kSample);
      }
      done += static_cast<size_t>(got);
    }
    return absl::OkStatus();
  }

  absl::Status CheckUnchanged(int fd, uint64_t offset, uint64_t wanted,
                              bool* stale) const {
    struct stat now;
    if (fstat(fd, &now) != 0) {
      *stale = errno == ESTALE;
      return FileError(errno, "look at", name_);
    }
    if (static_cast<uint64_t>(now.st_size) == size_ &&
        now.st_mtim.tv_sec == mtime_.tv_sec &&
        now.st_mtim.tv_nsec == mtime_.tv_nsec) {
      return absl::OkStatus();
    }
    return Changed(fmt::format("reading {} bytes at {}", wanted, offset), now);
  }

  // Constant after Init.
  const std::shared_ptr<const AllowedReads> allowed_;  // nullptr: everything
  const std::string path_;
  const std::string name_;
  const std::string folder_;  // as OpenLocal's
  uint64_t size_ = 0;
  std::string identity_;
  struct timespec mtime_ = {};
  mutable OpenFileShare share_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const StorageFile>> OpenLocal(
    std::shared_ptr<const AllowedReads> allowed,
    std::shared_ptr<OpenFileBudget> budget, const std::string& path,
    const std::string& name, const std::string& folder) {
  auto file = std::make_shared<LocalFile>(std::move(allowed), std::move(budget),
                                          path, name, folder);
  RETURN_IF_ERROR(file->Init());
  return file;
}

absl::StatusOr<StoredObject> StatLocal(const AllowedReads& allowed,
                                       const std::string& path,
                                       const std::string& name) {
  int fd = -1;
  struct stat stat;
  RETURN_IF_ERROR(OpenToLook(allowed, path, name, &fd, &stat));
  close(fd);
  if (!S_ISREG(stat.st_mode)) return NotAFile(stat, name);
  const Identity identity = IdentityOf(stat);
  return StoredObject{name, identity.size, identity.Text()};
}

absl::StatusOr<StoredFolder> StatLocalFolder(const AllowedReads& allowed,
                                             const std::string& path,
                                             const std::string& name) {
  int fd = -1;
  struct stat stat;
  RETURN_IF_ERROR(OpenToLook(allowed, path, name, &fd, &stat));
  std::array<char, PATH_MAX> real;
  const ssize_t length = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(),
                                  real.data(), real.size());
  close(fd);
  if (!S_ISDIR(stat.st_mode))
    return FailedPrecondition(
        "{}: {}, want {}", name, FileKind(stat.st_mode),
        S_ISREG(stat.st_mode) ? "a directory" : "a file or a directory");
  StoredFolder folder;
  folder.modified_ns = NsOfTime(stat.st_mtim.tv_sec, stat.st_mtim.tv_nsec);
  // A path that fills the buffer was cut.
  if (length > 0 && length < static_cast<ssize_t>(real.size()))
    folder.real_path.assign(real.data(), static_cast<size_t>(length));
  return folder;
}

bool IsOnNetwork(const std::string& path) {
  // The types from statfs(2): NFS, SMB1, CIFS, SMB2, FUSE, Ceph, AFS, 9P,
  // Lustre, GPFS, Coda, NCP, OCFS2.
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
