// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/plan/job.h"
#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/formats.h"
#include "worker/source/loader_args.h"
#include "worker/source/storage/base/uri.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

const SourceFormat* const kFormats[] = {
    &kImageFolderFormat, &kFileListFormat, &kFilesFormat,
    &kCifar10Format,     &kCifar100Format, &kCaffeFormat,
    &kCaffe2Format,      &kCocoFormat,     &kIdxFormat,
    &kNumpyFormat,       &kMdsFormat,      &kArrayRecordFormat,
    &kParquetFormat,     &kTfrecordFormat, &kWebdatasetFormat,
    &kTokensFormat,      &kExternalFormat,
};

absl::StatusOr<const SourceFormat*> FormatOf(const Node& reader) {
  std::vector<std::string_view> known;
  for (const SourceFormat* format : kFormats) {
    if (format->op == reader.op) return format;
    known.push_back(format->op);
  }
  return InvalidArgument(
      "reader \"{}\" is not known to this worker: want one of {}", reader.op,
      fmt::join(known, ", "));
}

// The head of readers.files contains the reader's text, which is opened with
// each block: it is small if the list of files is a digest.
bool InBlocks(const SourceFormat& format, const Node& reader) {
  return format.in_blocks || (format.op == kFilesFormat.op &&
                              !LongListKey(reader, "files").empty());
}

}  // namespace

std::vector<absl::StatusOr<StoredSample>> FormatSource::ReadMany(
    std::span<const uint64_t> samples) const {
  std::vector<absl::StatusOr<StoredSample>> stored;
  for (const uint64_t sample : samples) stored.push_back(Read(sample));
  return stored;
}

std::vector<absl::StatusOr<StoredPart>> FormatSource::ReadParts(
    std::span<const RecordPart> parts) const {
  std::vector<uint64_t> samples;
  for (const RecordPart& part : parts) samples.push_back(part.sample);
  std::vector<absl::StatusOr<StoredPart>> stored;
  for (absl::StatusOr<StoredSample>& whole : ReadMany(samples)) {
    if (whole.ok())
      stored.push_back(StoredPart{.stored = *std::move(whole)});
    else
      stored.push_back(whole.status());
  }
  return stored;
}

absl::StatusOr<int64_t> FormatSource::IndexedColumn(std::string_view column,
                                                    uint64_t) const {
  return Unimplemented("the index has no column \"{}\"", column);
}

absl::StatusOr<std::unique_ptr<StoredColumns>> FormatSource::OpenColumns(
    std::span<const std::string>) const {
  return Unimplemented("records have no columns");
}

absl::StatusOr<BuiltIndex> BuildIndex(const Node& reader,
                                      const SourceLimits& limits) {
  RETURN_IF_ERROR(WantValues(reader));
  ASSIGN_OR_RETURN(const SourceFormat* const format, FormatOf(reader));
  return format->build(reader, limits);
}

absl::StatusOr<BuiltIndex> BuildIndexInto(const Node& reader,
                                          const SourceLimits& limits,
                                          IndexSink* sink) {
  RETURN_IF_ERROR(WantValues(reader));
  ASSIGN_OR_RETURN(const SourceFormat* const format, FormatOf(reader));
  SourceLimits own = limits;
  const bool in_blocks = InBlocks(*format, reader);
  own.blocks = in_blocks ? sink : nullptr;
  own.max_index_bytes =
      std::min(limits.max_index_bytes, limits.max_blocks_bytes);
  ASSIGN_OR_RETURN(BuiltIndex built, format->build(reader, own));
  if (in_blocks) return built;
  const std::string blob = std::move(built.blob);
  built.blob.clear();
  for (size_t at = 0; at < blob.size(); at += limits.block_bytes)
    RETURN_IF_ERROR(sink->Add(blob.substr(at, limits.block_bytes), 0));
  return built;
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const Node& reader,
                                                   std::string_view index_blob,
                                                   const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const SourceFormat* const format, FormatOf(reader));
  return format->open(reader, index_blob, limits);
}

bool ReadsWait(const Node& reader, const Source& source) {
  if (source.waits()) return true;
  for (const auto& [name, value] : reader.args) {
    if (const auto* path = std::get_if<std::string>(&value)) {
      if (IsNetworkUri(*path)) return true;
    } else if (const auto* paths =
                   std::get_if<std::vector<std::string>>(&value)) {
      if (std::any_of(paths->begin(), paths->end(), IsNetworkUri)) return true;
    } else if (const auto* list = std::get_if<LongList>(&value)) {
      if (std::any_of(list->first.begin(), list->first.end(), IsNetworkUri))
        return true;
    }
  }
  if (source.num_samples() == 0) return false;
  // The file system does not know a pattern, nor what is in a list.
  const absl::StatusOr<RecordPlace> first = source.Locate(0);
  return first.ok() && IsNetworkUri(first->file);
}

namespace {

// Returns the first path of an argument; empty: none.
std::string FirstPath(const Node& reader, const char* name) {
  const auto it = reader.args.find(name);
  if (it == reader.args.end()) return "";
  if (const auto* path = std::get_if<std::string>(&it->second)) return *path;
  if (const auto* list = std::get_if<LongList>(&it->second))
    return list->first.front();
  const auto* paths = std::get_if<std::vector<std::string>>(&it->second);
  return paths == nullptr || paths->empty() ? "" : paths->front();
}

}  // namespace

std::string FolderOf(const Node& reader) {
  if (reader.op == kExternalReader) return "";
  std::string path;
  for (const char* name :
       {"root", "path", "paths", "files", "annotations", "images", "array"})
    if (path.empty()) path = FirstPath(reader, name);
  if (SchemeOf(path) == "file")
    if (absl::StatusOr<StorageUri> uri = ParseUri(path); uri.ok())
      path = std::move(uri->path);
  size_t begin = 0;  // of the path behind a host or bucket
  if (!IsLocalUri(path)) {
    path = RedactedUri(path);
    begin = path.find('/', path.find("://") + 3);
    if (begin == std::string::npos) return path;
  }
  const size_t wild = path.find_first_of("*?[{", begin);
  if (wild != std::string::npos) path.resize(path.rfind('/', wild) + 1);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.empty() ? "." : path;
}

std::string RootOf(const Node& reader) {
  const std::string folder = FolderOf(reader);
  if (IsLocalUri(folder)) return folder;
  return folder.substr(0, folder.find('/', folder.find("://") + 3));
}

}  // namespace leat::worker
