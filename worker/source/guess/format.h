// SPDX-License-Identifier: Apache-2.0
//
// Which reader a file or folder is for, by what it is called and by how its
// bytes begin. What bytes say is sure (they have magic numbers or sums), so it
// counts more than a name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// "webdataset" of a tar archive, "files" of an image; empty: its bytes say
// nothing.
// kInvalidArgument: it is of a kind that no reader takes (names it). Others as
// StoredFile::ReadAt.
absl::StatusOr<std::string> FormatOfBytes(const StoredFile& file);

// The same of bytes without a magic number, such as idx and CIFAR, whose length
// and first values fit. A name that says something counts more.
absl::StatusOr<std::string> FormatOfLength(const StoredFile& file);

struct FolderFormat {
  std::string format;
  // What the reader is to be given: the folder, or a file or pattern in it.
  std::string uri;
};
// Of what lies in a folder; "image_folder" where nothing else does.
absl::StatusOr<FolderFormat> FormatOfFolder(const std::string& uri,
                                            const SourceLimits& limits);

// "caffe" or "caffe2", by the first value of an LMDB file. Errors: ListLmdb's.
absl::StatusOr<std::string> FormatOfLmdb(const std::string& uri,
                                         const SourceLimits& limits);

// Whether bytes begin as image files do that are decoded.
bool LooksLikeImage(std::span<const std::byte> bytes);

}  // namespace leat::worker
