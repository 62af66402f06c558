// SPDX-License-Identifier: Apache-2.0
//
// Image folders: one class per sub-directory, recursive below it; *.jpg,
// *.jpeg, *.jpe, *.png, *.webp, *.bmp, *.tif, *.tiff, *.jp2, *.j2k in any case.
// A file's format follows from its bytes, not from its name.
//
// Sub-directories of the root in byte order are the classes 0 …, also those
// without images. A root that has images and no images below sub-directories is
// one class "". Names that begin with a dot are skipped, unless `hidden` is
// set. Symbolic links are followed; a directory that is its own ancestor is
// skipped. The order of samples is: class, then the bytes of the path below the
// class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/source.h"

namespace leat::worker {

struct ImageFolderOptions {
  std::string path;
  uint64_t repeat = 1;
  bool hidden = false;  // names that begin with a dot are taken, too
};

// Returns the reader node's arguments, with a file:// URI as its path.
// kInvalidArgument: names the argument, or the URI.
absl::StatusOr<ImageFolderOptions> ImageFolderOptionsOf(const Node& reader);

// Returns the path as indexes name their root.
std::string WithoutTrailingSlashes(std::string path);

// Returns the sample of a file's `size` bytes and its label, which is written
// behind them. REQUIRES: `bytes` has room for both.
StoredSample WithLabel(std::shared_ptr<std::byte[]> bytes, uint64_t size,
                       int32_t label);

// The identity of a listing: root, repeat, then for each class its directory
// and its files' names, sizes and times (not local: identities).
class ListingHash {
 public:
  ListingHash(std::string_view root, uint64_t repeat);
  void AddClass(const stored::v1::ImageFolderClass& each);
  Digest Finish() { return hash_.Finish(); }

 private:
  const bool remote_;
  Sha256 hash_;
};

// Lists the local folder. Several threads read directories; the result does not
// depend on that. kNotFound: no such directory, or no images. kPermissionDenied
// and others: as the file system returns; each names the path.
// kResourceExhausted: over max_files or max_index_bytes.
absl::StatusOr<BuiltIndex> BuildImageFolderIndex(
    const ImageFolderOptions& options, const SourceLimits& limits);

// Opens the index in the blob: checked, compact in memory (about 24 bytes and a
// name per file). kDataLoss: malformed.
absl::StatusOr<std::unique_ptr<Source>> OpenImageFolder(
    const ImageFolderOptions& options, std::string_view blob,
    const SourceLimits& limits);

}  // namespace leat::worker
