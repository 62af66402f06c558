// SPDX-License-Identifier: Apache-2.0
//
// Image folders in remote storage (s3://, gs://), by the rules of local ones.
//
// Keys have no directories: the part of a key up to its first slash below the
// root is a class, in byte order of these parts. A key with an empty part
// ("a//b.jpg"), or with a zero byte, has no place in a folder: it is passed
// over and counted. Files have identities (worker/source/storage) in place of
// times.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/source/images/image_folder.h"
#include "worker/source/source.h"

namespace leat::worker {

// Like BuildImageFolderIndex; further errors are those of Storage::List.
absl::StatusOr<BuiltIndex> BuildRemoteImageFolder(
    const ImageFolderOptions& options, const SourceLimits& limits);

// Like OpenImageFolder, with 24 bytes, a name and an identity per file. Storage
// is not accessed before the first Read, which opens the object that was
// listed. kFailedPrecondition: it is another one now (names both identities).
absl::StatusOr<std::unique_ptr<Source>> OpenRemoteImageFolder(
    const ImageFolderOptions& options, std::string_view blob,
    const SourceLimits& limits);

}  // namespace leat::worker
