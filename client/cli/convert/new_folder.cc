// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/new_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxNames = 1000;  // tried for the temporary folder

absl::Status Failed(const std::string& path, std::string_view what) {
  return FailedPrecondition("{}: cannot {}: {}", path, what,
                            std::strerror(errno));
}

// Returns whether `leat convert` writes files or folders with this name.
bool IsOurs(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_symlink(error)) return false;
  const std::string name = entry.path().filename().string();
  if (entry.is_directory(error)) return name == "training" || name == "testing";
  return name == "data.mdb" || name == "lock.mdb" || name == "classes.txt" ||
         (name.starts_with("part-") &&
          (name.ends_with(".tfrecord") || name.ends_with(".tar")));
}

// Checks that `path` may be replaced.
absl::Status CheckPlace(const std::string& path, bool replace) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::none)
    return FailedPrecondition("{}: {}", path, error.message());
  // A folder that is created beside it and takes its name would leave this
  // process and the shell in a deleted one.
  if (fs::equivalent(fs::weakly_canonical(path, error), ".", error))
    return FailedPrecondition(
        "{}: is the folder that you are in: want the name of a new one", path);
  if (status.type() == fs::file_type::not_found) return absl::OkStatus();
  const bool folder = fs::is_directory(status);
  if (folder && fs::is_empty(path, error)) return absl::OkStatus();
  if (!replace) {
    return AlreadyExists("{}: exists; --force replaces it", path);
  }
  if (!folder) {
    return FailedPrecondition("{}: is no folder, so it is not replaced", path);
  }
  fs::recursive_directory_iterator walk(path, error);
  for (; !error && walk != fs::recursive_directory_iterator();
       walk.increment(error)) {
    if (IsOurs(*walk)) continue;
    return FailedPrecondition(
        "{}: holds {}, which leat convert did not write, so it is not replaced",
        path, walk->path().lexically_relative(path).string());
  }
  if (error) return FailedPrecondition("{}: {}", path, error.message());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NewFolder> NewFolder::Make(const std::string& given,
                                          bool replace) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  RETURN_IF_ERROR(CheckPlace(path, replace));
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) {
    return FailedPrecondition("{}: {}", parent.string(), error.message());
  }
  for (int i = 0; i < kMaxNames; ++i) {
    std::string temporary = fmt::format("{}.partial-{}-{}", path, getpid(), i);
    if (mkdir(temporary.c_str(), 0777) == 0) {
      return NewFolder(std::move(path), std::move(temporary), replace);
    }
    if (errno == EEXIST) continue;
    return FailedPrecondition(
        "{}: {} cannot be made beside it, where it is written: {}", path,
        fs::path(temporary).filename().string(), std::strerror(errno));
  }
  return FailedPrecondition("{}.partial-{}-*: {} of these exist", path,
                            getpid(), kMaxNames);
}

NewFolder::NewFolder(NewFolder&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      replace_(other.replace_) {}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

absl::Status NewFolder::Commit() {
  RETURN_IF_ERROR(CheckPlace(path_, replace_));
  // This also puts it in the place of an empty folder.
  if (std::rename(temporary_.c_str(), path_.c_str()) == 0) {
    temporary_.clear();
    return absl::OkStatus();
  }
  if (errno != ENOTEMPTY && errno != EEXIST)
    return Failed(path_, "rename to it");
  // Its turn: the old one gets the temporary name, and is removed under it.
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(),
                RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  // File systems that cannot exchange names.
  const std::string old = temporary_ + ".old";
  if (std::rename(path_.c_str(), old.c_str()) != 0) {
    return Failed(path_, "rename it");
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const absl::Status status = Failed(path_, "rename to it");
    std::rename(old.c_str(), path_.c_str());
    return status;
  }
  temporary_ = old;
  return absl::OkStatus();
}

}  // namespace leat::cli
