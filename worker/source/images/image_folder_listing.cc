// SPDX-License-Identifier: Apache-2.0
//
// Listing: threads take class directories one by one and walk each depth first;
// then the classes are put together in order.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file_kind.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/source/faults/file_error.h"
#include "worker/source/faults/modified_time.h"
#include "worker/source/images/folder_files.h"
#include "worker/source/images/image_folder.h"
#include "worker/source/images/image_folder_index.h"
#include "worker/source/source_storage.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/identity.h"

namespace leat::worker {
namespace {

constexpr int kMaxDepth = 64;  // of directories below a class
using FileId = std::pair<dev_t, ino_t>;

// Returns whether there is nothing under a name: it is gone since it was
// listed, or it is a link to nothing or to itself.
bool LeadsNowhere(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP ||
         error == ENAMETOOLONG;
}

class Lister {
 public:
  // `root` is the folder on this machine, and `named` is the jobs' name for it.
  Lister(const SourceLimits& limits, bool hidden, FileId id, std::string root,
         std::string named)
      : limits_(limits),
        hidden_(hidden),
        watcher_(StorageOf(limits).watcher()),
        root_(id),
        root_path_(std::move(root)),
        named_(std::move(named)) {}

  // Adds one directory's images, their names prefixed by `prefix`, to `files`,
  // and returns the names of its sub-directories, sorted.
  absl::StatusOr<std::vector<std::string>> List(const std::string& path,
                                                const std::string& prefix,
                                                FolderFiles& files) {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()),
                                                        closedir);
    if (directory == nullptr) return FileError(errno, "list", path);
    RETURN_IF_ERROR(
        StorageOf(limits_).allowed().CheckOpened(dirfd(directory.get()), path));
    if (watcher_ != nullptr) {
      struct stat info;
      if (fstat(dirfd(directory.get()), &info) != 0)
        return FileError(errno, "list", path);
      watcher_->SawFolder(
          Named(path),
          {NsOfTime(info.st_mtim.tv_sec, info.st_mtim.tv_nsec), ""});
    }
    std::vector<std::string> directories;
    PassedOverCounts passed_over;
    while (true) {
      errno = 0;
      const dirent* const entry = readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) return FileError(errno, "list", path);
        break;
      }
      RETURN_IF_ERROR(Take(dirfd(directory.get()), *entry, path, prefix, files,
                           directories, passed_over));
    }
    if (!passed_over.empty()) {
      MutexLock lock(&mu_);
      passed_over_.Add(passed_over);
    }
    std::sort(directories.begin(), directories.end());
    return directories;
  }

  PassedOverCounts TakePassedOver() {
    MutexLock lock(&mu_);
    return std::move(passed_over_);
  }

  // Returns all images below `path`, names relative to it, in byte order.
  absl::StatusOr<FolderFiles> Walk(const std::string& path) {
    FolderFiles files;
    std::vector<FileId> ancestors = {root_};
    RETURN_IF_ERROR(WalkInto(path, "", ancestors, files));
    files.SortByName();
    return files;
  }

 private:
  absl::Status Take(int directory, const dirent& entry, const std::string& path,
                    const std::string& prefix, FolderFiles& files,
                    std::vector<std::string>& directories,
                    PassedOverCounts& passed_over) {
    if (limits_.cancelled != nullptr && *limits_.cancelled)
      return Cancelled("{}: the listing was cancelled", path);
    const std::string_view name = entry.d_name;
    if (name == "." || name == ".." || (!hidden_ && name.starts_with('.')))
      return absl::OkStatus();
    const bool image = IsImageName(name);
    if (image || entry.d_type == DT_DIR)
      RETURN_IF_ERROR(CheckImageName(path, name));
    if (entry.d_type == DT_DIR) {
      directories.emplace_back(name);
      return absl::OkStatus();
    }
    // Symbolic links, and entries whose type the file system does not report,
    // are examined.
    const auto pass_over = [&] {
      CountNoImage(name, Below(path, name), &passed_over);
      return absl::OkStatus();
    };
    if (entry.d_type == DT_REG && !image) return pass_over();
    if (entry.d_type != DT_REG)
      RETURN_IF_ERROR(StorageOf(limits_).allowed().CheckEntry(
          directory, entry.d_name, fmt::format("{}/{}", path, name)));
    struct stat info;
    if (fstatat(directory, entry.d_name, &info, 0) != 0) {
      const int error = errno;
      // Whatever else cannot be examined may be a class, without which the
      // labels of all after it are others.
      if (!image && LeadsNowhere(error)) return absl::OkStatus();
      return FileError(error, "read", fmt::format("{}/{}", path, name));
    }
    if (S_ISDIR(info.st_mode)) {
      RETURN_IF_ERROR(CheckImageName(path, name));
      directories.emplace_back(name);
      return absl::OkStatus();
    }
    if (!S_ISREG(info.st_mode)) return absl::OkStatus();
    if (!image) return pass_over();
    if (++files_ > limits_.max_files)
      return ResourceExhausted("{}: more than {} images: the limit", path,
                               limits_.max_files);
    files.Add(
        {.name = prefix + std::string(name),
         .bytes = static_cast<uint64_t>(info.st_size),
         .modified_ns = NsOfTime(info.st_mtim.tv_sec, info.st_mtim.tv_nsec)});
    if (watcher_ != nullptr)
      watcher_->SawFile(fmt::format("{}/{}", Named(path), name),
                        LocalIdentity(static_cast<uint64_t>(info.st_size),
                                      info.st_mtim.tv_sec, info.st_mtim.tv_nsec)
                            .Text());
    return absl::OkStatus();
  }
  // Returns the path of `name` in `path`, relative to the root.
  std::string Below(const std::string& path, std::string_view name) const {
    return fmt::format("{}/{}", path, name).substr(root_path_.size() + 1);
  }
  // Returns the jobs' name for `path`, which is below the root.
  std::string Named(const std::string& path) const {
    return named_ + path.substr(root_path_.size());
  }

  absl::Status WalkInto(const std::string& path, const std::string& prefix,
                        std::vector<FileId>& ancestors, FolderFiles& files) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return FileError(errno, "list", path);
    const FileId id(info.st_dev, info.st_ino);
    if (std::find(ancestors.begin(), ancestors.end(), id) != ancestors.end()) {
      LOG_WARN("source.loop path={} skipped=\"it is its own ancestor\"", path);
      return absl::OkStatus();
    }
    if (ancestors.size() > kMaxDepth)
      return FailedPrecondition("{}: more than {} directories deep", path,
                                kMaxDepth);
    // Links to siblings make many ways to the same few directories.
    if (++directories_ > limits_.max_files)
      return ResourceExhausted("{}: more than {} directories: the limit", path,
                               limits_.max_files);
    ancestors.push_back(id);
    ASSIGN_OR_RETURN(const std::vector<std::string> directories,
                     List(path, prefix, files));
    for (const std::string& name : directories)
      RETURN_IF_ERROR(
          WalkInto(path + "/" + name, prefix + name + "/", ancestors, files));
    ancestors.pop_back();
    return absl::OkStatus();
  }

  const SourceLimits& limits_;
  const bool hidden_;
  StorageWatcher* const watcher_;
  const FileId root_;
  const std::string root_path_, named_;
  std::atomic<uint64_t> files_{0}, directories_{0};
  Mutex mu_;
  PassedOverCounts passed_over_ ABSL_GUARDED_BY(mu_);
};

absl::Status WalkClasses(Lister& lister, const std::string& root, int threads,
                         std::vector<ListedClass>& classes) {
  std::atomic<size_t> next{0};
  Mutex mu;
  size_t failed = classes.size();  // the first in order
  absl::Status status;
  const auto work = [&] {
    for (size_t i = next++; i < classes.size(); i = next++) {
      auto files = lister.Walk(root + "/" + classes[i].directory);
      if (files.ok()) {
        classes[i].files = *std::move(files);
        continue;
      }
      MutexLock lock(&mu);
      if (i < failed) {
        failed = i;
        status = files.status();
      }
      next = classes.size();
    }
  };
  const size_t wanted = std::min<size_t>(std::max(threads, 1), classes.size());
  // Uses fewer threads if the system gives no more.
  std::vector<std::thread> helpers(wanted);
  for (size_t i = 1; i < wanted; ++i)
    if (!StartThread("list", work, &helpers[i]).ok()) break;
  work();
  for (std::thread& helper : helpers)
    if (helper.joinable()) helper.join();
  return status;
}

bool HasFiles(const ListedClass& each) { return !each.files.empty(); }

}  // namespace

absl::StatusOr<BuiltIndex> BuildImageFolderIndex(
    const ImageFolderOptions& options, const SourceLimits& limits) {
  const std::string named = WithoutTrailingSlashes(options.path);
  const std::string root = StorageOf(limits).LocalPath(named);
  int fd = -1;
  RETURN_IF_ERROR(StorageOf(limits).allowed().Open(root, O_PATH, root, &fd));
  if (fd < 0) return FileError(errno, "open", root);
  struct stat info;
  const int error = fstat(fd, &info) == 0 ? 0 : errno;
  close(fd);
  if (error != 0) return FileError(error, "open", root);
  if (!S_ISDIR(info.st_mode))
    return FailedPrecondition("{} is {}: want a directory of images", root,
                              FileKind(info.st_mode));

  if (StorageWatcher* const watcher = StorageOf(limits).watcher()) {
    ASSIGN_OR_RETURN(const StoredFolder now,
                     StorageOf(limits).StatFolder(named));
    watcher->SawFolder(named, now);
  }
  Lister lister(limits, options.hidden, {info.st_dev, info.st_ino}, root,
                named);
  FolderFiles unclassified;
  ASSIGN_OR_RETURN(std::vector<std::string> directories,
                   lister.List(root, "", unclassified));
  std::vector<ListedClass> classes;
  for (std::string& name : directories)
    classes.push_back({.directory = std::move(name)});
  RETURN_IF_ERROR(WalkClasses(lister, root, limits.listing_threads, classes));
  PassedOverCounts passed_over = lister.TakePassedOver();
  if (std::none_of(classes.begin(), classes.end(), HasFiles)) {
    if (unclassified.empty()) return NoImages(root, passed_over);
    unclassified.SortByName();
    classes.clear();
    classes.push_back({.directory = "", .files = std::move(unclassified)});
  } else {
    unclassified.SortByName();
    CountClasses(classes, unclassified, &passed_over);
  }
  ASSIGN_OR_RETURN(
      BuiltIndex index,
      AssembleImageFolder(options, named, std::move(classes), limits));
  std::error_code ignored;
  index.name =
      std::filesystem::weakly_canonical(named, ignored).filename().string();
  if (index.name.empty()) index.name = "root";
  index.passed_over = passed_over.Take();
  return index;
}

}  // namespace leat::worker
