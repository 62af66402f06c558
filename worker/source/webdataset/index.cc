// SPDX-License-Identifier: Apache-2.0
//
// Indexing: threads take archives one by one and walk each; then the archives
// are put together in order.
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
#include "worker/source/webdataset/webdataset.h"

namespace leat::worker {
namespace {

bool IsTarName(std::string_view name) { return name.ends_with(".tar"); }

// Puts the index together, archive by archive.
class Assembly {
 public:
  Assembly(const WebdatasetOptions& options, const SourceLimits& limits)
      : options_(options),
        limits_(limits),
        blob_(limits),
        content_("webdataset", options.paths) {
    BeginWebdatasetHash(options, &hash_);
  }

  absl::Status Begin() {
    stored::v1::WebdatasetHead head;
    for (const std::string& path : PathsInHead(options_)) head.add_paths(path);
    for (const std::string& ext : options_.ext) head.add_ext(ext);
    head.set_missing(std::string(NameOf(options_.missing)));
    return blob_.Add(head);
  }
  absl::Status Add(const ListedFile& file, const ComponentPlaces& places) {
    const uint64_t count = places.blocks.size() / options_.ext.size();
    passed_over_.Add(places.passed_over);
    if (count == 0) return absl::OkStatus();
    sum_ += count;
    if (sum_ > limits_.max_files)
      return ResourceExhausted("{}: more than {} samples: the limit",
                               RedactedUri(file.uri), limits_.max_files);
    FileSet one;
    RETURN_IF_ERROR(one.Add(file.uri, file.size, file.identity));
    one.UpdateHash(&hash_, 0);
    hash_.UpdateU64(count);
    content_.AddFile(file.uri, file.size)
        .AddNumbers(places.blocks)
        .AddNumbers(places.sizes);
    bytes_ += file.size;
    samples_.push_back(count);
    stored::v1::WebdatasetFile part;
    part.mutable_file()->set_name(file.uri);
    part.mutable_file()->set_bytes(file.size);
    part.mutable_file()->set_identity(file.identity);
    part.mutable_blocks()->Add(places.blocks.begin(), places.blocks.end());
    part.mutable_sizes()->Add(places.sizes.begin(), places.sizes.end());
    return blob_.Add(part, count);
  }
  absl::StatusOr<BuiltIndex> Finish(size_t archives) {
    const std::string& path = options_.paths.front();
    if (samples_.empty())
      return NotFound("{}: no samples with these components in {} archives",
                      RedactedUri(path), archives);
    BuiltIndex built;
    absl::StatusOr<ShardTable> shards = ShardTable::FromSizes(samples_);
    if (!shards.ok()) return Annotate(shards.status(), "an archive is a shard");
    built.shards = *std::move(shards);
    ASSIGN_OR_RETURN(built.blob, blob_.Finish());
    built.fingerprint = hash_.Finish();
    built.bytes = bytes_;
    built.name = NameOfPath(path);
    built.passed_over = passed_over_.Take();
    content_.Finish(&built);
    return built;
  }

 private:
  const WebdatasetOptions& options_;
  const SourceLimits& limits_;
  BlobWriter blob_;
  Sha256 hash_;
  ContentHash content_;
  PassedOverCounts passed_over_;
  std::vector<uint64_t> samples_;  // of each archive that has any
  uint64_t sum_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

std::string_view NameOf(MissingComponent missing) {
  switch (missing) {
    case MissingComponent::kSkip:
      return "skip";
    case MissingComponent::kEmpty:
      return "empty";
    case MissingComponent::kError:
      return "error";
  }
  return "error";
}

std::vector<std::string> PathsInHead(const WebdatasetOptions& options) {
  if (options.paths_key.empty()) return options.paths;
  return {options.paths_key};
}

absl::StatusOr<WebdatasetOptions> WebdatasetOptionsOf(const Node& reader) {
  WebdatasetOptions options;
  ASSIGN_OR_RETURN(options.paths, TextsArg(reader, "paths"));
  options.paths_key = LongListKey(reader, "paths");
  ASSIGN_OR_RETURN(options.ext, TextsArg(reader, "ext"));
  ASSIGN_OR_RETURN(options.index, TextsArg(reader, "index"));
  ASSIGN_OR_RETURN(const std::string missing,
                   TextArg(reader, "missing", "error"));
  ASSIGN_OR_RETURN(const std::vector<std::string> types,
                   TextsArg(reader, "types"));
  if (options.paths.empty())
    return InvalidArgument("{}: paths: want at least one", reader.op);
  if (options.ext.empty() || types.size() != options.ext.size())
    return InvalidArgument(
        "{}: {} extensions and {} types: want as many, and "
        "at least one",
        reader.op, options.ext.size(), types.size());
  if (missing == "skip") {
    options.missing = MissingComponent::kSkip;
  } else if (missing == "empty") {
    options.missing = MissingComponent::kEmpty;
  } else if (missing != "error") {
    return InvalidArgument("{}: missing is \"{}\", want error, skip or empty",
                           reader.op, missing);
  }
  for (const std::string& text : types) {
    absl::StatusOr<ValueType> type = ParseStoredType(text);
    if (!type.ok())
      return Annotate(type.status(), fmt::format("{}: types", reader.op));
    if (type->kind == ValueType::Kind::kTensor && type->shape.empty() &&
        type->dtype != DType::kInt32 && type->dtype != DType::kInt64)
      return InvalidArgument("{}: types: no component is \"{}\"", reader.op,
                             text);
    options.types.push_back(*std::move(type));
  }
  return options;
}

void BeginWebdatasetHash(const WebdatasetOptions& options, Sha256* hash) {
  hash->UpdateField("leat.webdataset.1");
  hash->UpdateU64(options.ext.size());
  for (const std::string& ext : options.ext) hash->UpdateField(ext);
  hash->UpdateField(NameOf(options.missing));
}

absl::StatusOr<BuiltIndex> BuildWebdatasetIndex(
    const WebdatasetOptions& options, const SourceLimits& limits) {
  ASSIGN_OR_RETURN(
      const IndexedFiles listing,
      ListIndexed(options.paths, options.index, IsTarName, "archives", limits));
  Assembly assembly(options, limits);
  RETURN_IF_ERROR(assembly.Begin());
  std::vector<ComponentPlaces> places(listing.files.size());
  RETURN_IF_ERROR(ReadIndexedInOrder(
      listing, limits,
      [&](size_t i, const StoredFile& file) -> absl::Status {
        // An archive without samples has its end mark at least.
        if (file.size() == 0)
          return DataLoss(
              "{}: 0 bytes, want a tar archive: write it again, or remove it",
              file.name());
        ASSIGN_OR_RETURN(places[i],
                         SamplesOfTar(file, options.ext, options.missing,
                                      limits.max_files, limits.cancelled));
        return absl::OkStatus();
      },
      [&](size_t i, std::string_view text,
          const StoredFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(places[i],
                         SamplesOfDaliIndex(text, file, options.ext,
                                            options.missing, limits.max_files));
        return absl::OkStatus();
      },
      [&](size_t i) {
        const ComponentPlaces taken = std::move(places[i]);
        return assembly.Add(listing.files[i], taken);
      }));
  return assembly.Finish(listing.files.size());
}

}  // namespace leat::worker
