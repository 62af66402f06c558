// SPDX-License-Identifier: Apache-2.0
//
// NewFolder: a folder that appears completely or not at all. It is filled under
// a temporary name in the same parent, and renamed.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

class NewFolder {
 public:
  // Creates the folder under its temporary name, and its parents. An empty
  // folder may exist at `path`; with `replace` also one that `leat convert`
  // wrote. kAlreadyExists: something else exists. kFailedPrecondition: with
  // `replace`, something that `leat convert` did not write exists (names it);
  // or the folder cannot be created.
  static absl::StatusOr<NewFolder> Make(const std::string& path, bool replace);
  // Removes the folder unless it was committed.
  ~NewFolder();
  NewFolder(NewFolder&& other) noexcept;
  NewFolder& operator=(NewFolder&&) = delete;

  // Returns the path under which it is filled.
  const std::string& path() const { return temporary_; }
  // Renames it to `path`; what was there is removed afterwards. Errors: as
  // Make.
  absl::Status Commit();

 private:
  NewFolder(std::string path, std::string temporary, bool replace)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        replace_(replace) {}

  std::string path_;
  std::string temporary_;  // empty: committed, or moved away
  bool replace_;
};

}  // namespace leat::cli
