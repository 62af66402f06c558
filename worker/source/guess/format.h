// SPDX-License-Identifier: Apache-2.0
//
// Finds the reader for a file or folder, by its name and by its first bytes.
// Bytes are certain (they have magic numbers or checksums), so they count more
// than a name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// Returns "webdataset" for a tar archive, "files" for an image; empty: its
// bytes reveal nothing. kInvalidArgument: it is of a kind that no reader takes
// (names it). Others as StorageFile::ReadAt.
absl::StatusOr<std::string> FormatOfBytes(const StorageFile& file);

// Does the same for bytes without a magic number, such as idx and CIFAR, if the
// length and the first values fit. A name that reveals a format counts more.
absl::StatusOr<std::string> FormatOfLength(const StorageFile& file);

struct FolderFormat {
  std::string format;
  // The value for the reader: the folder, or a file or pattern in it.
  std::string uri;
};
// Returns the format of a folder's files; "image_folder" if there is no other.
absl::StatusOr<FolderFormat> FormatOfFolder(const std::string& uri,
                                            const SourceLimits& limits);

// Returns "caffe" or "caffe2", by the first value of an LMDB file. Errors:
// ListLmdb's.
absl::StatusOr<std::string> FormatOfLmdb(const std::string& uri,
                                         const SourceLimits& limits);

// True if bytes begin like image files that are decoded.
bool LooksLikeImage(std::span<const std::byte> bytes);

}  // namespace leat::worker
