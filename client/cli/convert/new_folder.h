// SPDX-License-Identifier: Apache-2.0
//
// NewFolder: a folder that appears whole or not at all. It is filled under
// another name beside its place, and renamed.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

class NewFolder {
 public:
  // Makes the folder under its other name, and its parents. An empty folder may
  // be in its place; with `replace` also one that `leat convert` wrote.
  // kAlreadyExists: something is there. kFailedPrecondition: something that
  // `leat convert` did not write is, although `replace` (names it); or the
  // folder cannot be made.
  static absl::StatusOr<NewFolder> Make(const std::string& path, bool replace);
  // Removes what was not committed.
  ~NewFolder();
  NewFolder(NewFolder&& other) noexcept;
  NewFolder& operator=(NewFolder&&) = delete;

  // Where it is filled.
  const std::string& path() const { return temporary_; }
  // Gives it its name; what was there is removed afterwards. Errors as Make.
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
