// SPDX-License-Identifier: Apache-2.0
//
// Reads records from an image folder, in the order of readers.image_folder:
// class by class, each in byte order of the path below it. Files are passed on
// unchanged. The list of one class is in memory at a time, and one file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/convert/record.h"

namespace leat::cli {

struct FolderInput {
  std::unique_ptr<RecordInput> records;
  std::vector<std::string> classes;  // names, by label
};

// kNotFound: no images. kFailedPrecondition: cannot be read; from `records`
// also: a file whose bytes are no image, or over 256 MiB. All name the path.
absl::StatusOr<FolderInput> OpenFolder(const std::string& path);

}  // namespace leat::cli
