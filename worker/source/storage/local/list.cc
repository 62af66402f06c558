// SPDX-License-Identifier: Apache-2.0
//
// Directories are read depth first; each is opened relative to its parent's
// descriptor, so long paths are no problem. Uses at most one descriptor per
// level.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/cluster/fault.h"
#include "core/freed.h"
#include "core/status.h"
#include "worker/source/faults/file_error.h"
#include "worker/source/faults/modified_time.h"
#include "worker/source/storage/local/local.h"

namespace leat::worker {
namespace {

using Dir = std::unique_ptr<DIR, Freed<closedir>>;

class LocalListing {
 public:
  using OnFolder = std::function<void(const std::string&, int64_t)>;

  LocalListing(const AllowedReads& allowed, const std::string& root,
               const StorageConfig& config, const std::atomic<bool>* cancelled,
               const OnFolder& on_folder)
      : allowed_(allowed),
        root_(root),
        config_(config),
        cancelled_(cancelled),
        on_folder_(on_folder) {}

  absl::StatusOr<std::vector<StoredObject>> Run() {
    RETURN_IF_ERROR(ReadDirectory(AT_FDCWD, root_, ""));
    std::sort(found_.begin(), found_.end(),
              [](const StoredObject& a, const StoredObject& b) {
                return a.name < b.name;
              });
    return std::move(found_);
  }

 private:
  std::string PathOf(const std::string& below) const {
    if (below.empty()) return root_;
    return root_.ends_with('/') ? root_ + below : root_ + "/" + below;
  }

  // Returns the error for a path of another kind.
  absl::Status NotADirectory(const std::string& path) const {
    const absl::Status kind = StatLocalFolder(allowed_, path, path).status();
    if (!absl::IsFailedPrecondition(kind))
      return FileError(ENOTDIR, "list", path);
    return WithFault(NotFound("{}", Message(kind)), Fault::kObject);
  }

  // Reads `entry` of the directory `parent`; its path below the root is
  // `below`.
  absl::Status ReadDirectory(int parent, const std::string& entry,
                             const std::string& below) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    int fd = -1;
    if (parent == AT_FDCWD)
      RETURN_IF_ERROR(allowed_.Open(entry, kFlags, entry, &fd));
    else
      fd = openat(parent, entry.c_str(), kFlags);
    if (fd < 0) {
      const int error = errno;
      if (error == ENOTDIR && parent == AT_FDCWD) return NotADirectory(entry);
      return FileError(error, "list", PathOf(below));
    }
    const Dir dir(fdopendir(fd));
    if (dir == nullptr) {
      const int error = errno;
      close(fd);
      return FileError(error, "list", PathOf(below));
    }
    RETURN_IF_ERROR(allowed_.CheckOpened(fd, PathOf(below)));
    struct stat self;
    if (fstat(fd, &self) != 0) {
      return FileError(errno, "look at", PathOf(below));
    }
    const std::pair<dev_t, ino_t> id(self.st_dev, self.st_ino);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) {
      return absl::OkStatus();
    }
    if (above_.size() >= static_cast<size_t>(config_.max_list_depth)) {
      return ResourceExhausted(
          "{}: over {} directories inside each other (max_list_depth)",
          PathOf(below), config_.max_list_depth);
    }
    if (on_folder_)
      on_folder_(below, NsOfTime(self.st_mtim.tv_sec, self.st_mtim.tv_nsec));
    above_.push_back(id);
    const absl::Status status = ReadEntries(dir.get(), fd, below);
    above_.pop_back();
    return status;
  }

  absl::Status ReadEntries(DIR* dir, int fd, const std::string& below) {
    for (;;) {
      errno = 0;
      const dirent* const entry = readdir(dir);
      if (entry == nullptr) {
        if (errno != 0) return FileError(errno, "list", PathOf(below));
        return absl::OkStatus();
      }
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (cancelled_ != nullptr && *cancelled_) {
        return Cancelled("listing of {}: cancelled", root_);
      }
      const std::string path = below.empty() ? name : below + "/" + name;
      if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
        RETURN_IF_ERROR(allowed_.CheckEntry(fd, entry->d_name, PathOf(path)));
      RETURN_IF_ERROR(Add(fd, name, path));
    }
  }

  absl::Status Add(int fd, const std::string& name, const std::string& path) {
    struct stat stat;
    if (fstatat(fd, name.c_str(), &stat, 0) != 0) {
      // Links to nothing, and files that were removed between the two calls.
      if (errno == ENOENT) return absl::OkStatus();
      return FileError(errno, "look at", PathOf(path));
    }
    if (S_ISDIR(stat.st_mode)) return ReadDirectory(fd, name, path);
    if (!S_ISREG(stat.st_mode)) return absl::OkStatus();
    if (found_.size() >= config_.max_list_entries) {
      return ResourceExhausted("{}: over {} files (max_list_entries)", root_,
                               config_.max_list_entries);
    }
    const Identity identity =
        LocalIdentity(static_cast<uint64_t>(stat.st_size), stat.st_mtim.tv_sec,
                      stat.st_mtim.tv_nsec);
    found_.push_back({path, identity.size, identity.Text()});
    return absl::OkStatus();
  }

  const AllowedReads& allowed_;
  const std::string& root_;
  const StorageConfig& config_;
  const std::atomic<bool>* const cancelled_;
  const OnFolder& on_folder_;
  // Ancestors of the present directory.
  std::vector<std::pair<dev_t, ino_t>> above_;
  std::vector<StoredObject> found_;
};

}  // namespace

absl::StatusOr<std::vector<StoredObject>> ListLocal(
    const AllowedReads& allowed, const std::string& path,
    const StorageConfig& config, const std::atomic<bool>* cancelled,
    const std::function<void(const std::string& below, int64_t modified_ns)>&
        on_folder) {
  return LocalListing(allowed, path, config, cancelled, on_folder).Run();
}

}  // namespace leat::worker
