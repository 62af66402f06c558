// SPDX-License-Identifier: Apache-2.0
#include "worker/source/record_paths.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/braces.h"
#include "worker/source/each_file.h"
#include "worker/source/file_set.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr std::string_view kWild = "*?[";
constexpr size_t kMaxBraced = 1 << 18;  // files that one path stands for

bool IsHttp(std::string_view path) {
  const std::string scheme = SchemeOf(path);
  return scheme == "http" || scheme == "https";
}

// A name with braces that is no file's may also be too long for a file, or one
// that no server accepts. Where a caller may not list, servers refuse to say
// that there is no such file.
bool MayStandForOthers(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

// Lists the files of one entry.
class RecordLister {
 public:
  // `most`: how many files are wanted. A directory's or a pattern's files are
  // listed completely.
  RecordLister(bool (*is_own)(std::string_view), size_t most,
               const SourceLimits& limits)
      : is_own_(is_own),
        most_(most),
        limits_(limits),
        storage_(StorageOf(limits)) {}

  // A file whose name contains the braces comes before their expansion.
  absl::Status Add(const std::string& path) {
    const absl::Status status = AddOne(path);
    if (!MayStandForOthers(status) || path.find('{') == std::string::npos)
      return status;
    ASSIGN_OR_RETURN(std::vector<std::string> paths,
                     ExpandBraces(path, kMaxBraced));
    if (paths.front() == path) return status;
    if (paths.size() > most_) paths.resize(most_);
    ASSIGN_OR_RETURN(files_, ListEach(paths, is_own_, most_, limits_,
                                      &RecordLister::AddOne));
    return absl::OkStatus();
  }
  std::vector<ListedFile> Take() { return std::move(files_); }

  // Lists the files of all `paths`, each added by `add`, in their order.
  // Several are requested at a time, since storage may be far away.
  static absl::StatusOr<std::vector<ListedFile>> ListEach(
      const std::vector<std::string>& paths, bool (*is_own)(std::string_view),
      size_t most, const SourceLimits& limits,
      absl::Status (RecordLister::*add)(const std::string&)) {
    std::vector<std::vector<ListedFile>> found(paths.size());
    // Entries with braces divide the threads among them.
    SourceLimits each = limits;
    each.listing_threads = std::max(
        1, limits.listing_threads /
               static_cast<int>(std::clamp<size_t>(paths.size(), 1, 1000)));
    RETURN_IF_ERROR(ForEachIndex(paths.size(), limits.listing_threads,
                                 limits.cancelled, [&](size_t i) {
                                   RecordLister lister(is_own, most, each);
                                   RETURN_IF_ERROR((lister.*add)(paths[i]));
                                   found[i] = lister.Take();
                                   return absl::OkStatus();
                                 }));
    std::vector<ListedFile> files;
    for (size_t i = 0; i < paths.size(); ++i) {
      if (found[i].size() > limits.max_files - files.size())
        return TooMany(paths[i], limits);
      std::move(found[i].begin(), found[i].end(), std::back_inserter(files));
    }
    return files;
  }

 private:
  static absl::Status TooMany(std::string_view uri,
                              const SourceLimits& limits) {
    return ResourceExhausted("{}: more than {} files: the limit",
                             RedactedUri(uri), limits.max_files);
  }

  absl::Status AddOne(const std::string& path) {
    if (limits_.cancelled != nullptr && *limits_.cancelled)
      return Cancelled("{}: the listing was cancelled", RedactedUri(path));
    if (IsHttp(path)) return AddFile(path);
    if (path.ends_with('/')) return AddDirectory(path);
    const bool wild = path.find_first_of(kWild) != std::string::npos;
    if (wild && !IsLocalUri(path)) return AddPattern(path);
    const absl::Status status = AddFile(path);
    if (wild && status.code() == absl::StatusCode::kNotFound)
      return AddPattern(path);
    if (status.code() == absl::StatusCode::kFailedPrecondition &&
        IsLocalUri(path))
      return AddDirectory(path);
    return status;
  }
  absl::Status AddFile(const std::string& path) {
    ASSIGN_OR_RETURN(StoredObject object, storage_.Stat(path));
    return Keep(path, std::move(object));
  }

  absl::Status AddDirectory(const std::string& path) {
    ASSIGN_OR_RETURN(std::vector<StoredObject> objects,
                     storage_.List(path, limits_.cancelled));
    const size_t before = files_.size();
    for (StoredObject& object : objects) {
      if (HasHiddenPart(object.name) || !is_own_(object.name)) continue;
      const std::string uri = JoinUri(path, object.name);
      RETURN_IF_ERROR(Keep(uri, std::move(object)));
    }
    if (files_.size() > before) return absl::OkStatus();
    return NotFound(
        "{}: none of the {} files in this directory is named as this format's "
        "are: give a pattern",
        RedactedUri(path), objects.size());
  }

  absl::Status AddPattern(const std::string& path) {
    const size_t slash = path.rfind('/', path.find_first_of(kWild));
    const std::string root = slash == std::string::npos ? std::string(".")
                             : slash == 0               ? std::string("/")
                                                        : path.substr(0, slash);
    const std::string pattern =
        slash == std::string::npos ? path : path.substr(slash + 1);
    ASSIGN_OR_RETURN(std::vector<StoredObject> objects,
                     storage_.List(root, limits_.cancelled));
    const size_t before = files_.size();
    for (StoredObject& object : objects) {
      if (fnmatch(pattern.c_str(), object.name.c_str(),
                  FNM_PATHNAME | FNM_PERIOD) != 0)
        continue;
      const std::string uri =
          slash == std::string::npos ? object.name : JoinUri(root, object.name);
      RETURN_IF_ERROR(Keep(uri, std::move(object)));
    }
    if (files_.size() > before) return absl::OkStatus();
    return NotFound("{}: no file is named so ({} looked at)", RedactedUri(path),
                    objects.size());
  }

  absl::Status Keep(std::string uri, StoredObject object) {
    if (files_.size() >= limits_.max_files) return TooMany(uri, limits_);
    RETURN_IF_ERROR(CheckName(uri));
    files_.push_back({.uri = std::move(uri),
                      .size = object.size,
                      .identity = std::move(object.identity)});
    return absl::OkStatus();
  }

  bool (*const is_own_)(std::string_view);
  const size_t most_;
  const SourceLimits& limits_;
  const Storage& storage_;
  std::vector<ListedFile> files_;
};

}  // namespace

bool HasHiddenPart(std::string_view name) {
  return name.starts_with('.') || name.find("/.") != std::string_view::npos;
}

absl::StatusOr<std::vector<ListedFile>> ListPaths(
    const std::vector<std::string>& paths, bool (*is_own)(std::string_view),
    const SourceLimits& limits) {
  return RecordLister::ListEach(paths, is_own, SIZE_MAX, limits,
                                &RecordLister::Add);
}

absl::StatusOr<ListedFile> FirstOfPath(const std::string& path,
                                       bool (*is_own)(std::string_view),
                                       const SourceLimits& limits) {
  RecordLister lister(is_own, 1, limits);
  RETURN_IF_ERROR(lister.Add(path));
  return lister.Take().front();
}

absl::StatusOr<std::vector<ListedFile>> FilesOfPaths(
    const std::vector<std::string>& paths, bool (*is_own)(std::string_view),
    const SourceLimits& limits) {
  if (limits.files != nullptr) return *limits.files;
  return ListPaths(paths, is_own, limits);
}

std::string NameOfPath(std::string_view path) {
  std::string shown = RedactedUri(path);
  while (shown.size() > 1 && shown.ends_with('/')) shown.pop_back();
  const size_t slash = shown.rfind('/');
  std::string name =
      slash == std::string::npos ? shown : shown.substr(slash + 1);
  return name.empty() ? "root" : name;
}

}  // namespace leat::worker
