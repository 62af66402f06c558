// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source.h"

#include "core/status.h"
#include "worker/source/image_folder.h"

namespace leat::worker {
namespace {

absl::Status Unknown(const Node& reader) {
  return InvalidArgument(
      "reader \"{}\" is not known to this worker: want readers.image_folder",
      reader.op);
}

}  // namespace

absl::StatusOr<BuiltIndex> BuildIndex(const Node& reader,
                                      const SourceLimits& limits) {
  if (reader.op != "readers.image_folder") return Unknown(reader);
  ASSIGN_OR_RETURN(const ImageFolderOptions options,
                   ImageFolderOptionsOf(reader));
  return BuildImageFolderIndex(options, limits);
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const Node& reader,
                                                   std::string_view index_blob,
                                                   const SourceLimits& limits) {
  if (reader.op != "readers.image_folder") return Unknown(reader);
  ASSIGN_OR_RETURN(const ImageFolderOptions options,
                   ImageFolderOptionsOf(reader));
  return OpenImageFolder(options, index_blob, limits);
}

}  // namespace leat::worker
