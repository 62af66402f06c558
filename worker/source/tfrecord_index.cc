// SPDX-License-Identifier: Apache-2.0
//
// Indexing: threads take files one by one and walk each; then the files are put
// together in order.
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/stored_type.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/file_set.h"
#include "worker/source/index_blob.h"
#include "worker/source/indexed_files.h"
#include "worker/source/loader_args.h"
#include "worker/source/tfrecord.h"
#include "worker/source/tfrecord_framing.h"

namespace leat::worker {
namespace {

bool IsTfrecordName(std::string_view name) {
  return name.find(".tfrecord") != std::string_view::npos && !IsIndexName(name);
}

struct Listing : IndexedFiles {
  std::vector<std::vector<uint32_t>> sizes;
};

absl::StatusOr<BuiltIndex> Assemble(const TfrecordOptions& options,
                                    Listing listing,
                                    const SourceLimits& limits) {
  BlobWriter blob(limits);
  stored::v1::TfrecordHead head;
  for (const std::string& path : options.paths) head.add_paths(path);
  RETURN_IF_ERROR(blob.Add(head));
  BuiltIndex built;
  FileSet files;
  Sha256 hash;
  BeginTfrecordHash(&hash);
  std::vector<uint64_t> records;
  uint64_t sum = 0;
  for (size_t i = 0; i < listing.files.size(); ++i) {
    const std::vector<uint32_t> sizes = std::move(listing.sizes[i]);
    if (sizes.empty()) continue;
    const ListedFile& file = listing.files[i];
    sum += sizes.size();
    if (sum > limits.max_files)
      return ResourceExhausted("{}: more than {} records: the limit",
                               RedactedUri(file.uri), limits.max_files);
    RETURN_IF_ERROR(files.Add(file.uri, file.size, file.identity));
    files.UpdateHash(&hash, files.count() - 1);
    hash.UpdateU64(sizes.size());
    stored::v1::TfrecordFile part;
    part.mutable_file()->set_name(file.uri);
    part.mutable_file()->set_bytes(file.size);
    part.mutable_file()->set_identity(file.identity);
    part.mutable_sizes()->Add(sizes.begin(), sizes.end());
    RETURN_IF_ERROR(blob.Add(part));
    records.push_back(sizes.size());
  }
  if (records.empty())
    return NotFound("{}: no records in {} files",
                    RedactedUri(options.paths.front()), listing.files.size());
  absl::StatusOr<ShardTable> shards = ShardTable::FromSizes(records);
  if (!shards.ok())
    return Annotate(shards.status(), "a TFRecord file is a shard");
  built.shards = *std::move(shards);
  built.blob = blob.Take();
  built.fingerprint = hash.Finish();
  built.bytes = files.total_bytes();
  built.name = NameOfPath(options.paths.front());
  return built;
}

}  // namespace

absl::StatusOr<TfrecordOptions> TfrecordOptionsOf(const Node& reader) {
  TfrecordOptions options;
  ASSIGN_OR_RETURN(options.paths, TextsArg(reader, "paths"));
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
  Listing listing;
  ASSIGN_OR_RETURN(static_cast<IndexedFiles&>(listing),
                   ListIndexed(options.paths, options.index, IsTfrecordName,
                               "files", limits));
  listing.sizes.resize(listing.files.size());
  RETURN_IF_ERROR(ReadIndexed(
      listing, limits,
      [&](size_t i, const StoredFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(listing.sizes[i], WalkTfrecord(file, limits.max_files,
                                                        limits.cancelled));
        return absl::OkStatus();
      },
      [&](size_t i, std::string_view text,
          const StoredFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(listing.sizes[i],
                         SizesFromDaliIndex(text, file, limits.max_files));
        return absl::OkStatus();
      }));
  return Assemble(options, std::move(listing), limits);
}

}  // namespace leat::worker
