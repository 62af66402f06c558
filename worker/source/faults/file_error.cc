// SPDX-License-Identifier: Apache-2.0
#include "worker/source/faults/file_error.h"

#include <dirent.h>

#include <cstring>
#include <system_error>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/faults/fault_rules.h"

namespace leat::worker {
namespace {

std::string OwnFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash == 0 ? 1 : slash);
}

}  // namespace

absl::Status FileError(int error, std::string_view what,
                       std::string_view path) {
  const FaultRule rule = RuleOfErrno(error);
  return WithFault(MakeStatus(rule.code, "cannot {} {}: {}", what, path,
                              std::generic_category().message(error)),
                   rule.fault);
}

bool FolderIsThere(const std::string& folder) {
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return false;
  bool any = false;
  while (const dirent* const entry = any ? nullptr : readdir(dir))
    any = std::strcmp(entry->d_name, ".") != 0 &&
          std::strcmp(entry->d_name, "..") != 0;
  closedir(dir);
  return any;
}

absl::Status IndexedFileError(int error, std::string_view what,
                              std::string_view name, const std::string& path,
                              const std::string& folder) {
  absl::Status status = FileError(error, what, name);
  if (FaultOf(status) != Fault::kObject) return status;
  const std::string known =
      folder.empty() || folder == path ? OwnFolder(path) : folder;
  if (FolderIsThere(known)) return status;
  return WithFault(
      MakeStatus(status.code(), "{} (nothing is in {}: is it mounted here?)",
                 Message(status), known),
      Fault::kWorker);
}

}  // namespace leat::worker
