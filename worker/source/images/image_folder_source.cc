// SPDX-License-Identifier: Apache-2.0
//
// An opened index: one string with all names, and 24 bytes per file. `repeat`
// takes no memory: sample i is file i mod files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "core/cluster/fault.h"
#include "core/fd.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/faults/file_error.h"
#include "worker/source/faults/modified_time.h"
#include "worker/source/file_set.h"
#include "worker/source/formats.h"
#include "worker/source/images/image_folder.h"
#include "worker/source/images/image_folder_index.h"
#include "worker/source/images/image_folder_remote.h"
#include "worker/source/index_blob.h"
#include "worker/source/own_copy.h"
#include "worker/source/source_storage.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

constexpr int64_t kNotSeen = std::numeric_limits<int64_t>::min();

struct File {
  uint64_t name_end = 0;  // in names; begins where the one before it ends
  uint64_t bytes = 0;
  // The time of the last write: from the listing, or in a copy that did not
  // keep times (own_copy.h) from the first read. An atomic once the source is
  // open.
  mutable int64_t modified_ns = kNotSeen;
};

struct Class {
  std::string directory;
  int32_t label = 0;
  uint64_t first_file = 0;
};

absl::Status Changed(const std::string& path, std::string_view how) {
  return WithFault(
      FailedPrecondition("{} changed after indexing: {}", path, how),
      Fault::kObject);
}

absl::Status NoFile(const std::string& path) {
  return Changed(path, "it is not a file any more");
}

class ImageFolderSource final : public FormatSource {
 public:
  // The index must be that of `options`.
  absl::Status Load(const ImageFolderOptions& options, std::string_view blob,
                    const SourceLimits& limits);

  uint64_t num_samples() const override { return files_.size() * repeat_; }
  uint64_t RecordOf(uint64_t sample) const override {
    return sample % files_.size();
  }
  std::string Describe(uint64_t sample) const override {
    return PathOf(RecordOf(sample));
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    if (column != "label") return FormatSource::IndexedColumn(column, sample);
    return ClassOf(RecordOf(sample)).label;
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const uint64_t file = RecordOf(sample);
    return RecordPlace{.file = Below(named_, file),
                       .bytes = files_[file].bytes};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;

 private:
  absl::Status AddClass(const stored::v1::ImageFolderClass& proto);
  const Class& ClassOf(uint64_t file) const;
  std::string Below(const std::string& root, uint64_t file) const;
  std::string PathOf(uint64_t file) const { return Below(root_, file); }
  absl::Status CannotOpen(int error, const std::string& path) const;
  static absl::Status CheckFile(const File& file, const struct stat& info,
                                const std::string& path);
  void LookWhetherCopy() const;
  // Sets `*stale` to whether it failed because the file server does not know
  // the file any more. `again`: so did the first try.
  absl::Status ReadFile(uint64_t index, const std::string& path, bool again,
                        std::byte* bytes, bool* stale) const;

  const AllowedReads* allowed_ = nullptr;  // the storage's, which outlives this
  std::string named_;                      // the root, as the job names it
  std::string root_;                       // on this machine
  bool copied_ = false;
  uint64_t repeat_ = 1;
  uint64_t max_file_bytes_ = 0;
  uint64_t max_files_ = 0;
  std::string names_;
  std::vector<File> files_;
  std::vector<Class> classes_;  // ascending first_file; none is empty
  mutable absl::once_flag looked_;
};

void ImageFolderSource::LookWhetherCopy() const {
  if (!copied_) return;
  const bool copy = HasOwnTimes(files_.size(), PathOf(0), [this](uint64_t i) {
    struct stat info;
    return stat(PathOf(i).c_str(), &info) == 0 &&
           NsOfTime(info.st_mtim.tv_sec, info.st_mtim.tv_nsec) ==
               files_[i].modified_ns;
  });
  if (!copy) return;
  for (const File& file : files_) file.modified_ns = kNotSeen;
}

absl::Status ImageFolderSource::AddClass(
    const stored::v1::ImageFolderClass& proto) {
  if (!proto.directory().empty() && !StaysBelow(proto.directory()))
    return DataLoss("the index names a directory outside its root");
  if (proto.files().empty()) return absl::OkStatus();
  if (files_.size() + static_cast<uint64_t>(proto.files_size()) > max_files_)
    return ResourceExhausted("the index lists more than {} files: the limit",
                             max_files_);
  classes_.push_back({.directory = proto.directory(),
                      .label = proto.label(),
                      .first_file = files_.size()});
  for (const stored::v1::ImageFile& file : proto.files()) {
    if (!StaysBelow(file.name()))
      return DataLoss("the index names a file outside its root");
    names_ += file.name();
    files_.push_back({.name_end = names_.size(),
                      .bytes = file.bytes(),
                      .modified_ns = file.modified_ns()});
  }
  return absl::OkStatus();
}

absl::Status ImageFolderSource::Load(const ImageFolderOptions& options,
                                     std::string_view blob,
                                     const SourceLimits& limits) {
  max_file_bytes_ = limits.max_file_bytes;
  max_files_ = limits.max_files;
  allowed_ = &StorageOf(limits).allowed();
  named_ = WithoutTrailingSlashes(options.path);
  root_ = StorageOf(limits).LocalPath(named_);
  copied_ = StorageOf(limits).IsCopied(named_);
  repeat_ = options.repeat;
  ASSIGN_OR_RETURN(
      fingerprint_,
      ReadImageFolderIndex(options, blob, limits,
                           [this](const stored::v1::ImageFolderClass& proto) {
                             return AddClass(proto);
                           }));
  names_.shrink_to_fit();
  files_.shrink_to_fit();
  return absl::OkStatus();
}

const Class& ImageFolderSource::ClassOf(uint64_t file) const {
  const auto after = std::upper_bound(
      classes_.begin(), classes_.end(), file,
      [](uint64_t f, const Class& each) { return f < each.first_file; });
  return *(after - 1);
}

std::string ImageFolderSource::Below(const std::string& root,
                                     uint64_t file) const {
  const std::string& directory = ClassOf(file).directory;
  const uint64_t begin = file == 0 ? 0 : files_[file - 1].name_end;
  const std::string_view name(names_.data() + begin,
                              files_[file].name_end - begin);
  return directory.empty() ? fmt::format("{}/{}", root, name)
                           : fmt::format("{}/{}/{}", root, directory, name);
}

absl::StatusOr<StoredSample> ImageFolderSource::Read(uint64_t sample) const {
  const uint64_t index = RecordOf(sample);
  const uint64_t size = files_[index].bytes;
  const std::string path = PathOf(index);
  if (size > max_file_bytes_)
    return ResourceExhausted("{} has {} bytes: the limit is {}", path, size,
                             max_file_bytes_);
  std::shared_ptr<std::byte[]> bytes =
      std::make_shared_for_overwrite<std::byte[]>(size + sizeof(int32_t));
  bool stale = false;
  absl::Status status =
      ReadFile(index, path, /*again=*/false, bytes.get(), &stale);
  // A file that the server has forgotten is looked up by its name, once. If it
  // stays so, the mount is at fault, and not the file.
  if (stale) {
    status = ReadFile(index, path, /*again=*/true, bytes.get(), &stale);
    if (stale) status = WithFault(status, Fault::kWorker);
  }
  RETURN_IF_ERROR(status);
  return WithLabel(std::move(bytes), size, ClassOf(index).label);
}

absl::Status ImageFolderSource::CannotOpen(int error,
                                           const std::string& path) const {
  // A socket cannot be opened, nor a device whose driver is not there.
  struct stat info;
  if (error == ENXIO && stat(path.c_str(), &info) == 0 &&
      !S_ISREG(info.st_mode))
    return NoFile(path);
  if ((error == ENOENT || error == ENOTDIR) && FolderIsThere(root_))
    return WithFault(NotFound("{} was removed after indexing", path),
                     Fault::kObject);
  return IndexedFileError(error, "open", path, path, root_);
}

// Checks that it is the file that was listed, or a copy of it.
absl::Status ImageFolderSource::CheckFile(const File& file,
                                          const struct stat& info,
                                          const std::string& path) {
  if (!S_ISREG(info.st_mode)) return NoFile(path);
  if (static_cast<uint64_t>(info.st_size) != file.bytes)
    return Changed(path, fmt::format("it has {} bytes, the index says {}",
                                     info.st_size, file.bytes));
  const int64_t modified_ns =
      NsOfTime(info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  int64_t first = kNotSeen;
  if (std::atomic_ref(file.modified_ns)
          .compare_exchange_strong(first, modified_ns) ||
      first == modified_ns)
    return absl::OkStatus();
  return Changed(path, fmt::format("its time of change is {} ns, was {}",
                                   modified_ns, first));
}

absl::Status ImageFolderSource::ReadFile(uint64_t index,
                                         const std::string& path, bool again,
                                         std::byte* bytes, bool* stale) const {
  *stale = false;
  absl::call_once(looked_, [this] { LookWhetherCopy(); });
  const File& file = files_[index];
  const auto failed = [&](int error, std::string_view what) {
    *stale = error == ESTALE;
    return IndexedFileError(error, what, path, path, root_);
  };
  // Does not block: a pipe in place of the file must not hold a decode thread.
  int opened = -1;
  RETURN_IF_ERROR(
      allowed_->Open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK, path, &opened));
  const Fd fd(opened);
  if (fd.get() < 0) {
    const int error = errno;
    *stale = again && error == ESTALE;
    return CannotOpen(error, path);
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return failed(errno, "read");
  RETURN_IF_ERROR(CheckFile(file, info, path));
  for (uint64_t at = 0; at < file.bytes;) {
    const ssize_t got =
        pread(fd.get(), bytes + at, file.bytes - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno, "read");
    if (got == 0)
      return Changed(path,
                     fmt::format("it ends at byte {} of {}", at, file.bytes));
    at += static_cast<uint64_t>(got);
  }
  // A file that was written to meanwhile is a mixture of two files.
  if (fstat(fd.get(), &info) != 0) return failed(errno, "read");
  return CheckFile(file, info, path);
}

}  // namespace

namespace {

absl::StatusOr<BuiltIndex> Build(const Node& reader,
                                 const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const ImageFolderOptions options,
                   ImageFolderOptionsOf(reader));
  return IsLocalUri(options.path) ? BuildImageFolderIndex(options, limits)
                                  : BuildRemoteImageFolder(options, limits);
}

absl::StatusOr<std::unique_ptr<Source>> Open(const Node& reader,
                                             std::string_view blob,
                                             const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const ImageFolderOptions options,
                   ImageFolderOptionsOf(reader));
  return IsLocalUri(options.path)
             ? OpenImageFolder(options, blob, limits)
             : OpenRemoteImageFolder(options, blob, limits);
}

}  // namespace

const SourceFormat kImageFolderFormat = {"readers.image_folder", Build, Open,
                                         /*in_blocks=*/true};

absl::StatusOr<std::unique_ptr<Source>> OpenImageFolder(
    const ImageFolderOptions& options, std::string_view blob,
    const SourceLimits& limits) {
  return Loaded(std::make_unique<ImageFolderSource>(), options.path, options,
                blob, limits);
}

}  // namespace leat::worker
