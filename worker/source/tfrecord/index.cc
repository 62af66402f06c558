// SPDX-License-Identifier: Apache-2.0
//
// Indexing: threads walk some files at a time; these are put together in order,
// and forgotten, before the next.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/redaction.h"
#include "core/shapes/stored_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/content_hash.h"
#include "worker/source/file_set.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/indexed_files.h"
#include "worker/source/tfrecord/framing.h"
#include "worker/source/tfrecord/tfrecord.h"

namespace leat::worker {
namespace {

bool IsTfrecordName(std::string_view name) {
  return name.find(".tfrecord") != std::string_view::npos && !IsIndexName(name);
}

// Puts the index together, file by file.
class Assembly {
 public:
  Assembly(const TfrecordOptions& options, const SourceLimits& limits)
      : options_(options),
        limits_(limits),
        blob_(limits),
        content_("tfrecord", options.paths) {
    BeginTfrecordHash(&hash_);
  }

  absl::Status Begin() {
    stored::v1::TfrecordHead head;
    for (const std::string& path : PathsInHead(options_)) head.add_paths(path);
    return blob_.Add(head);
  }
  absl::Status Add(const ListedFile& file, const std::vector<uint32_t>& sizes) {
    if (sizes.empty()) return absl::OkStatus();
    sum_ += sizes.size();
    if (sum_ > limits_.max_files)
      return ResourceExhausted("{}: more than {} records: the limit",
                               RedactedUri(file.uri), limits_.max_files);
    FileSet one;
    RETURN_IF_ERROR(one.Add(file.uri, file.size, file.identity));
    one.UpdateHash(&hash_, 0);
    hash_.UpdateU64(sizes.size());
    content_.AddFile(file.uri, file.size).AddNumbers(sizes);
    bytes_ += file.size;
    records_.push_back(sizes.size());
    return AddParts(file, sizes);
  }
  absl::StatusOr<BuiltIndex> Finish(size_t files) {
    const std::string& path = options_.paths.front();
    if (records_.empty())
      return NotFound("{}: no records in {} files", RedactedUri(path), files);
    BuiltIndex built;
    absl::StatusOr<ShardTable> shards = ShardTable::FromSizes(records_);
    if (!shards.ok())
      return Annotate(shards.status(), "a TFRecord file is a shard");
    built.shards = *std::move(shards);
    ASSIGN_OR_RETURN(built.blob, blob_.Finish());
    built.fingerprint = hash_.Finish();
    built.bytes = bytes_;
    built.name = NameOfPath(path);
    content_.Finish(&built);
    return built;
  }

 private:
  // A file with very many records is told in parts, so that a block does not
  // grow with it.
  absl::Status AddParts(const ListedFile& file,
                        const std::vector<uint32_t>& sizes) {
    const size_t most = std::clamp<size_t>(limits_.block_bytes / 4, 1, kMost);
    uint64_t begin = 0;
    for (size_t first = 0; first < sizes.size(); first += most) {
      const size_t end = std::min(first + most, sizes.size());
      stored::v1::TfrecordFile part;
      part.mutable_file()->set_name(file.uri);
      part.mutable_file()->set_bytes(file.size);
      part.mutable_file()->set_identity(file.identity);
      part.mutable_sizes()->Add(sizes.begin() + static_cast<ptrdiff_t>(first),
                                sizes.begin() + static_cast<ptrdiff_t>(end));
      part.set_begin(begin);
      part.set_first(first);
      part.set_more(end < sizes.size());
      RETURN_IF_ERROR(blob_.Add(part, end - first));
      for (size_t i = first; i < end; ++i) begin += sizes[i];
    }
    return absl::OkStatus();
  }

  static constexpr size_t kMost = 1 << 20;  // records of one part

  const TfrecordOptions& options_;
  const SourceLimits& limits_;
  BlobWriter blob_;
  Sha256 hash_;
  ContentHash content_;
  std::vector<uint64_t> records_;  // of each file that has any
  uint64_t sum_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

std::vector<std::string> PathsInHead(const TfrecordOptions& options) {
  if (options.paths_key.empty()) return options.paths;
  return {options.paths_key};
}

absl::StatusOr<TfrecordOptions> TfrecordOptionsOf(const Node& reader) {
  TfrecordOptions options;
  ASSIGN_OR_RETURN(options.paths, TextsArg(reader, "paths"));
  options.paths_key = LongListKey(reader, "paths");
  ASSIGN_OR_RETURN(options.features, TextsArg(reader, "features"));
  ASSIGN_OR_RETURN(options.index, TextsArg(reader, "index"));
  ASSIGN_OR_RETURN(const std::vector<std::string> types,
                   TextsArg(reader, "types"));
  if (options.paths.empty())
    return InvalidArgument("{}: paths: want at least one", reader.op);
  if (options.features.empty() || types.size() != options.features.size())
    return InvalidArgument(
        "{}: {} features and {} types: want as many, and at "
        "least one",
        reader.op, options.features.size(), types.size());
  for (const std::string& text : types) {
    absl::StatusOr<ValueType> type = ParseStoredType(text);
    if (!type.ok())
      return Annotate(type.status(), fmt::format("{}: types", reader.op));
    const bool fits = type->kind == ValueType::Kind::kEncoded ||
                      type->dtype == DType::kInt64 ||
                      type->dtype == DType::kFloat32 ||
                      (type->dtype == DType::kUint8 && !type->shape.empty());
    if (!fits)
      return InvalidArgument("{}: types: no feature is \"{}\"", reader.op,
                             text);
    options.types.push_back(*std::move(type));
  }
  return options;
}

void BeginTfrecordHash(Sha256* hash) { hash->UpdateField("leat.tfrecord.1"); }

absl::StatusOr<BuiltIndex> BuildTfrecordIndex(const TfrecordOptions& options,
                                              const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const IndexedFiles listing,
                   ListIndexed(options.paths, options.index, IsTfrecordName,
                               "files", limits));
  Assembly assembly(options, limits);
  RETURN_IF_ERROR(assembly.Begin());
  std::vector<std::vector<uint32_t>> sizes(listing.files.size());
  RETURN_IF_ERROR(ReadIndexedInOrder(
      listing, limits,
      [&](size_t i, const StoredFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(
            sizes[i], WalkTfrecord(file, limits.max_files, limits.cancelled));
        return absl::OkStatus();
      },
      [&](size_t i, std::string_view text,
          const StoredFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(sizes[i],
                         SizesFromDaliIndex(text, file, limits.max_files));
        return absl::OkStatus();
      },
      [&](size_t i) {
        const std::vector<uint32_t> taken = std::move(sizes[i]);
        return assembly.Add(listing.files[i], taken);
      }));
  return assembly.Finish(listing.files.size());
}

}  // namespace leat::worker
