// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using Take =
    std::function<absl::Status(const std::string&, const fs::directory_entry&)>;
using FileId = std::pair<dev_t, ino_t>;

constexpr std::string_view kImageNames[] = {".jpg",  ".jpeg", ".jpe", ".png",
                                            ".webp", ".bmp",  ".tif", ".tiff",
                                            ".jp2",  ".j2k"};
constexpr size_t kMaxDepth = 64;  // directories below a class

absl::StatusOr<FileId> IdOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return FileId(info.st_dev, info.st_ino);
  return FailedPrecondition("{}: {}", path, std::strerror(errno));
}

// `prefix`: of names; empty, or ends in a slash.
absl::Status WalkBelow(const std::string& path, const std::string& prefix,
                       std::vector<FileId>& ancestors, const Take& take) {
  ASSIGN_OR_RETURN(const FileId id, IdOf(path));
  if (std::find(ancestors.begin(), ancestors.end(), id) != ancestors.end()) {
    return absl::OkStatus();
  }
  if (ancestors.size() > kMaxDepth) {
    return FailedPrecondition("{}: more than {} directories deep", path,
                              kMaxDepth);
  }
  ancestors.push_back(id);
  ASSIGN_OR_RETURN(const FolderEntries entries, ListFolder(path));
  for (const fs::directory_entry& file : entries.files) {
    RETURN_IF_ERROR(take(prefix + file.path().filename().string(), file));
  }
  for (const std::string& name : entries.directories) {
    RETURN_IF_ERROR(
        WalkBelow(path + "/" + name, prefix + name + "/", ancestors, take));
  }
  ancestors.pop_back();
  return absl::OkStatus();
}

}  // namespace

std::string ImageNames() {
  return fmt::format("{}", fmt::join(kImageNames, ", "));
}

bool IsImageName(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(kImageNames, extension) != std::end(kImageNames);
}

absl::StatusOr<FolderEntries> ListFolder(const std::string& path) {
  FolderEntries entries;
  std::error_code error;
  fs::directory_iterator walk(path, error);
  for (; !error && walk != fs::directory_iterator(); walk.increment(error)) {
    std::error_code kind;
    std::string name = walk->path().filename().string();
    if (name.starts_with('.')) continue;
    if (walk->is_directory(kind)) {
      entries.directories.push_back(std::move(name));
    } else {
      entries.files.push_back(*walk);
    }
  }
  if (error) return FailedPrecondition("{}: {}", path, error.message());
  std::sort(entries.directories.begin(), entries.directories.end());
  return entries;
}

absl::Status WalkClass(const std::string& root, const std::string& directory,
                       const Take& take) {
  ASSIGN_OR_RETURN(const FileId id, IdOf(root));
  std::vector<FileId> ancestors = {id};
  return WalkBelow(root + "/" + directory, "", ancestors, take);
}

}  // namespace leat::cli
