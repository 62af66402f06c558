// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/indexed_files.h"

#include <memory>

#include "core/status.h"
#include "worker/source/each_file.h"
#include "worker/source/source_storage.h"

namespace leat::worker {

bool IsIndexName(std::string_view name) {
  return name.ends_with(".idx") || name.ends_with(".index");
}

absl::StatusOr<IndexedFiles> ListIndexed(const std::vector<std::string>& paths,
                                         const std::vector<std::string>& index,
                                         bool (*is_own)(std::string_view),
                                         std::string_view what,
                                         const SourceLimits& limits) {
  IndexedFiles listing;
  ASSIGN_OR_RETURN(listing.files, FilesOfPaths(paths, is_own, limits));
  ASSIGN_OR_RETURN(listing.index, ListPaths(index, IsIndexName, limits));
  if (listing.index.empty() || listing.index.size() == listing.files.size())
    return listing;
  return InvalidArgument("{} index files for {} {}: want one for each",
                         listing.index.size(), listing.files.size(), what);
}

absl::Status ReadIndexed(
    const IndexedFiles& listing, const SourceLimits& limits,
    const std::function<absl::Status(size_t, const StorageFile&)>& walk,
    const std::function<absl::Status(size_t, std::string_view,
                                     const StorageFile&)>& by_index) {
  const Storage& storage = StorageOf(limits);
  const auto open = [&](const ListedFile& file) {
    return storage.Open(file.uri, file.identity);
  };
  return ForEachIndex(
      listing.files.size(), limits.listing_threads, limits.cancelled,
      [&](size_t i) -> absl::Status {
        ASSIGN_OR_RETURN(const std::shared_ptr<const StorageFile> file,
                         open(listing.files[i]));
        if (listing.index.empty()) return walk(i, *file);
        ASSIGN_OR_RETURN(const std::shared_ptr<const StorageFile> index,
                         open(listing.index[i]));
        ASSIGN_OR_RETURN(const std::string text,
                         ReadText(limits, listing.index[i].uri, *index,
                                  limits.max_index_bytes));
        return Annotate(
            by_index(i, text, *file),
            fmt::format("the index {} of {}", index->name(), file->name()));
      });
}

absl::Status ReadIndexedInOrder(
    const IndexedFiles& listing, const SourceLimits& limits,
    const std::function<absl::Status(size_t, const StorageFile&)>& walk,
    const std::function<absl::Status(size_t, std::string_view,
                                     const StorageFile&)>& by_index,
    const std::function<absl::Status(size_t)>& take) {
  constexpr size_t kFilesAThread = 16;
  const size_t at_once =
      kFilesAThread * static_cast<size_t>(std::max(limits.listing_threads, 1));
  const auto some = [](const std::vector<ListedFile>& files, size_t begin,
                       size_t end) {
    return std::vector<ListedFile>(
        files.begin() + static_cast<ptrdiff_t>(begin),
        files.begin() + static_cast<ptrdiff_t>(end));
  };
  for (size_t begin = 0; begin < listing.files.size(); begin += at_once) {
    const size_t end = std::min(begin + at_once, listing.files.size());
    IndexedFiles part;
    part.files = some(listing.files, begin, end);
    if (!listing.index.empty()) part.index = some(listing.index, begin, end);
    RETURN_IF_ERROR(ReadIndexed(
        part, limits,
        [&](size_t i, const StorageFile& file) {
          return walk(begin + i, file);
        },
        [&](size_t i, std::string_view text, const StorageFile& file) {
          return by_index(begin + i, text, file);
        }));
    for (size_t i = begin; i < end; ++i) RETURN_IF_ERROR(take(i));
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
