// SPDX-License-Identifier: Apache-2.0
//
// The common parts of local and remote image folders: which names count, and
// the index of a listing.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/images/folder_files.h"
#include "worker/source/images/image_folder.h"
#include "worker/source/source.h"

namespace leat::worker {

// One class: its files in the order of samples.
struct ListedClass {
  std::string directory;  // below the root; "": the root itself
  FolderFiles files;
};

bool IsImageName(std::string_view name);
// Names are sent as text. kFailedPrecondition: `name` is not UTF-8; shows it
// and its folder `path`.
absl::Status CheckImageName(const std::string& path, std::string_view name);
// Counts the file `name`, which is at `where` below the root and is not an
// image; hidden ones are not counted.
void CountNoImage(std::string_view name, std::string_view where,
                  PassedOverCounts* counts);
// Returns kNotFound; says what was looked for, and what is there instead.
absl::Status NoImages(std::string_view root, const PassedOverCounts& counts);
// Counts the classes without images, and images in no class if there are
// classes.
void CountClasses(const std::vector<ListedClass>& classes,
                  const FolderFiles& unclassified, PassedOverCounts* counts);

// Returns the index of `classes`, in their order, without BuiltIndex::name.
// kResourceExhausted: over max_index_bytes. kInvalidArgument: too many samples.
absl::StatusOr<BuiltIndex> AssembleImageFolder(
    const ImageFolderOptions& options, const std::string& root,
    std::vector<ListedClass> classes, const SourceLimits& limits);

// Reads an index class by class, so that the whole listing never exists as
// messages, and returns its fingerprint. kDataLoss: malformed, without files,
// or of another reader than `options`. Errors of `add` end it.
absl::StatusOr<Digest> ReadImageFolderIndex(
    const ImageFolderOptions& options, std::string_view blob,
    const SourceLimits& limits,
    const std::function<absl::Status(const stored::v1::ImageFolderClass&)>&
        add);

}  // namespace leat::worker
