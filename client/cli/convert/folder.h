// SPDX-License-Identifier: Apache-2.0
//
// Image folders as readers.image_folder reads them: the sub-directories in byte
// order are the classes, also those without an image, with their images
// anywhere below; if none holds an image, the folder is one class "". Names
// that begin with a dot are ignored; symbolic links are followed, but not into
// an ancestor.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

// Returns ".jpg, .jpeg, ...", for messages.
std::string ImageNames();
bool IsImageName(const std::filesystem::path& path);

// The direct content of a folder.
struct FolderEntries {
  std::vector<std::string> directories;  // names, in byte order
  std::vector<std::filesystem::directory_entry> files;
};
// kFailedPrecondition: names the path and the reason.
absl::StatusOr<FolderEntries> ListFolder(const std::string& path);

// Calls take() for everything below `root`/`directory` except directories, in
// no particular order; `name` is the path below that directory. Stops at the
// first error.
absl::Status WalkClass(
    const std::string& root, const std::string& directory,
    const std::function<
        absl::Status(const std::string& name,
                     const std::filesystem::directory_entry& entry)>& take);

}  // namespace leat::cli
