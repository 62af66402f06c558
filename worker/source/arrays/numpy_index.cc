// SPDX-License-Identifier: Apache-2.0
//
// Listing: threads read the files' headers, which are then compared in order.
#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/pipeline/shape_inference.h"
#include "core/redaction.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/arrays/numpy.h"
#include "worker/source/content_hash.h"
#include "worker/source/each_file.h"
#include "worker/source/file_set.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr size_t kFirstRead = 512;  // nearly every header ends before it

struct ListedArray {
  std::string name;  // for the index
  std::string uri;
  uint64_t size = 0;
  std::string identity;  // empty: not known yet
  NumpyHeader header;
};

struct Listing {
  std::string pattern;
  bool by_folders = false;
};

absl::StatusOr<Listing> ListingOf(const Node& reader) {
  ASSIGN_OR_RETURN(std::string pattern, TextArg(reader, "pattern", "*.npy"));
  ASSIGN_OR_RETURN(const std::string order, TextArg(reader, "order", "path"));
  return Listing{.pattern = std::move(pattern),
                 .by_folders = order == "folders"};
}

// Returns the folder, empty for the root's own files, and the name in it.
std::pair<std::string_view, std::string_view> FolderAndName(
    std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

// Keeps the files that the reader takes, in its order. `found` is in byte
// order.
void Choose(const Listing& listing, std::vector<StoredObject>& found) {
  std::erase_if(found, [&](const StoredObject& each) {
    const auto [folder, name] = FolderAndName(each.name);
    if (!listing.by_folders)
      return HasHiddenPart(each.name) ||
             fnmatch(listing.pattern.c_str(), each.name.c_str(), 0) != 0;
    return folder.find('/') != std::string_view::npos ||
           fnmatch(listing.pattern.c_str(), std::string(name).c_str(), 0) != 0;
  });
  // A folder "a-b" comes before "a" in the byte order of paths, not of names.
  if (listing.by_folders)
    std::sort(found.begin(), found.end(),
              [](const StoredObject& a, const StoredObject& b) {
                return FolderAndName(a.name) < FolderAndName(b.name);
              });
}

struct Wanted {
  std::string path;  // the folder of relative names; empty: they are URIs
  bool rows = false;
  std::vector<ListedArray> files;
};

absl::StatusOr<Wanted> WantedFiles(const Node& reader,
                                   const SourceLimits& limits) {
  ASSIGN_OR_RETURN(std::vector<std::string> files, TextsArg(reader, "files"));
  ASSIGN_OR_RETURN(std::string path, TextArg(reader, "path"));
  ASSIGN_OR_RETURN(const Listing listing, ListingOf(reader));
  ASSIGN_OR_RETURN(std::string array, TextArg(reader, "array"));
  const int given = (files.empty() ? 0 : 1) + (path.empty() ? 0 : 1) +
                    (array.empty() ? 0 : 1);
  if (given != 1)
    return InvalidArgument(
        "{}: {} of files, path and array are given, want exactly one",
        reader.op, given);
  Wanted wanted;
  if (!array.empty()) {
    wanted.rows = true;
    files.push_back(std::move(array));
  }
  for (std::string& file : files)
    wanted.files.push_back({.name = file, .uri = file});
  if (!path.empty()) {
    ASSIGN_OR_RETURN(std::vector<StoredObject> found,
                     StorageOf(limits).List(path, limits.cancelled));
    const size_t all = found.size();
    Choose(listing, found);
    for (StoredObject& each : found) {
      RETURN_IF_ERROR(Annotate(CheckName(each.name), RedactedUri(path)));
      std::string uri = JoinUri(path, each.name);
      wanted.files.push_back({.name = std::move(each.name),
                              .uri = std::move(uri),
                              .size = each.size,
                              .identity = std::move(each.identity)});
    }
    if (wanted.files.empty())
      return NotFound("{}: none of {} files is like \"{}\"", RedactedUri(path),
                      all, listing.pattern);
    wanted.path = std::move(path);
  }
  if (wanted.files.size() > limits.max_files)
    return ResourceExhausted("{} files: the limit is {}", wanted.files.size(),
                             limits.max_files);
  return wanted;
}

absl::Status ReadHeaders(Wanted& wanted, const SourceLimits& limits) {
  const Storage& storage = StorageOf(limits);
  return ForEachIndex(wanted.files.size(), limits.listing_threads,
                      limits.cancelled, [&](size_t i) {
                        ListedArray& each = wanted.files[i];
                        ASSIGN_OR_RETURN(const auto file,
                                         storage.Open(each.uri, each.identity));
                        each.size = file->size();
                        each.identity = file->identity();
                        ASSIGN_OR_RETURN(each.header, ReadNumpyHeader(*file));
                        return absl::OkStatus();
                      });
}

ValueType TypeOf(const NumpyHeader& header) {
  return {ValueType::Kind::kTensor, header.dtype, header.shape};
}

// Returns the common type of all files, with -1 for axes that differ.
absl::StatusOr<ValueType> CommonType(const std::vector<ListedArray>& files) {
  ValueType type = TypeOf(files[0].header);
  for (const ListedArray& each : files) {
    const NumpyHeader& header = each.header;
    if (header.dtype != type.dtype || header.shape.size() != type.shape.size())
      return FailedPrecondition(
          "{} is {}, but {} is {}: want one type and number of axes",
          RedactedUri(files[0].uri), TypeText(TypeOf(files[0].header)),
          RedactedUri(each.uri), TypeText(TypeOf(header)));
    for (size_t axis = 0; axis < type.shape.size(); ++axis)
      if (header.shape[axis] != type.shape[axis]) type.shape[axis] = -1;
  }
  if (std::find(type.shape.begin(), type.shape.end(), 0) != type.shape.end())
    return FailedPrecondition("{}: no elements in {}: want some",
                              RedactedUri(files[0].uri), TypeText(type));
  return type;
}

absl::StatusOr<ValueType> RowType(const ListedArray& array) {
  const NumpyHeader& header = array.header;
  const std::string name = RedactedUri(array.uri);
  if (header.shape.empty())
    return FailedPrecondition("{} is a scalar: want an array of samples", name);
  if (header.shape[0] == 0) return NotFound("{} has no rows", name);
  if (header.fortran_order && header.shape.size() > 1)
    return FailedPrecondition(
        "{} is in Fortran order, where a row lies scattered over the file: "
        "save numpy.ascontiguousarray of it",
        name);
  ValueType type = TypeOf(header);
  type.shape.erase(type.shape.begin());
  if (header.data_bytes == 0)
    return FailedPrecondition("{}: no elements in {}: want some", name,
                              TypeText(type));
  return type;
}

absl::StatusOr<std::string> BlobOf(const Node& reader, const Wanted& wanted,
                                   const ValueType& type,
                                   const SourceLimits& limits) {
  BlobWriter blob(limits);
  stored::v1::NumpyHead head;
  head.set_reader(CanonicalText(reader));
  head.set_rows(wanted.rows);
  head.mutable_type()->set_dtype(static_cast<uint32_t>(type.dtype));
  head.mutable_type()->mutable_shape()->Add(type.shape.begin(),
                                            type.shape.end());
  RETURN_IF_ERROR(blob.Add(head));
  stored::v1::NumpyFiles part;
  for (size_t i = 0; i < wanted.files.size(); ++i) {
    const ListedArray& from = wanted.files[i];
    stored::v1::NumpyFile& to = *part.add_files();
    to.mutable_file()->set_name(from.name);
    to.mutable_file()->set_bytes(from.size);
    to.mutable_file()->set_identity(from.identity);
    to.set_data_offset(static_cast<uint32_t>(from.header.data_offset));
    to.set_fortran_order(from.header.fortran_order);
    to.mutable_shape()->Add(from.header.shape.begin(), from.header.shape.end());
    if (static_cast<size_t>(part.files_size()) < kFilesAPart &&
        i + 1 < wanted.files.size())
      continue;
    RETURN_IF_ERROR(blob.Add(part));
    part.Clear();
  }
  return blob.Finish();
}

}  // namespace

absl::StatusOr<NumpyHeader> ReadNumpyHeader(const StorageFile& file,
                                            NumpyElements wanted_elements) {
  const auto read = [&]() -> absl::StatusOr<NumpyHeader> {
    std::vector<std::byte> bytes(std::min<uint64_t>(file.size(), kFirstRead));
    RETURN_IF_ERROR(file.ReadAt(0, bytes));
    ASSIGN_OR_RETURN(const size_t wanted, NumpyHeaderBytes(bytes));
    if (wanted > file.size())
      return DataLoss("it ends in its header, at byte {} of {}", file.size(),
                      wanted);
    const size_t have = bytes.size();
    bytes.resize(wanted);
    if (wanted > have)
      RETURN_IF_ERROR(
          file.ReadAt(have, std::span(bytes).subspan(have, wanted - have)));
    ASSIGN_OR_RETURN(const NumpyHeader header,
                     ParseNumpyHeader(bytes, wanted_elements));
    if (header.data_bytes > file.size() - header.data_offset)
      return DataLoss("it has {} bytes after its header, which claims {}",
                      file.size() - header.data_offset, header.data_bytes);
    return header;
  };
  absl::StatusOr<NumpyHeader> header = read();
  if (!header.ok()) return Annotate(header.status(), file.name());
  return header;
}

absl::StatusOr<BuiltIndex> BuildNumpyIndex(const Node& reader,
                                           const SourceLimits& limits) {
  ASSIGN_OR_RETURN(Wanted wanted, WantedFiles(reader, limits));
  RETURN_IF_ERROR(ReadHeaders(wanted, limits));
  ASSIGN_OR_RETURN(const ValueType type, wanted.rows
                                             ? RowType(wanted.files[0])
                                             : CommonType(wanted.files));
  BuiltIndex index;
  ASSIGN_OR_RETURN(index.blob, BlobOf(reader, wanted, type, limits));
  std::vector<std::string> places;
  if (wanted.path.empty())
    for (const ListedArray& each : wanted.files) places.push_back(each.uri);
  else
    places.push_back(wanted.path);
  ContentHash content("numpy", places);
  for (const ListedArray& each : wanted.files) {
    index.bytes += each.size;
    content.AddFile(each.uri, each.size)
        .AddNumber(each.header.data_offset)
        .AddNumber(each.header.fortran_order)
        .AddNumbers(each.header.shape);
  }
  const uint64_t samples =
      wanted.rows ? static_cast<uint64_t>(wanted.files[0].header.shape[0])
                  : wanted.files.size();
  ASSIGN_OR_RETURN(
      index.shards,
      ShardTable::Uniform(samples, ShardTable::DefaultShardSize(samples)));
  index.types = {type};
  // The opened source computes the fingerprint, so that only one place does.
  ASSIGN_OR_RETURN(const auto source, OpenNumpy(reader, index.blob, limits));
  index.fingerprint = source->fingerprint();
  index.name =
      NameOfPath(wanted.path.empty() ? wanted.files[0].uri : wanted.path);
  content.Finish(&index);
  return index;
}

}  // namespace leat::worker
