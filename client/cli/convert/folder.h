// SPDX-License-Identifier: Apache-2.0
//
// Image folders as readers.image_folder reads them: sub-directories in byte
// order are the classes, also those without an image, with their images
// anywhere below; if none holds an image, the folder is one class "". Names
// that begin with a dot are passed over; symbolic links are followed, but not
// into an ancestor.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

// ".jpg, .jpeg, ...": for messages.
std::string ImageNames();
bool IsImageName(const std::filesystem::path& path);

// What is directly in a folder.
struct FolderEntries {
  std::vector<std::string> directories;  // names, in byte order
  std::vector<std::filesystem::directory_entry> files;
};
// kFailedPrecondition: names the path and why.
absl::StatusOr<FolderEntries> ListFolder(const std::string& path);

// Calls take() for all that is no directory below `root`/`directory`, in no
// order; `name`: its path below that directory. Stops at its first error.
absl::Status WalkClass(
    const std::string& root, const std::string& directory,
    const std::function<
        absl::Status(const std::string& name,
                     const std::filesystem::directory_entry& entry)>& take);

}  // namespace leat::cli
