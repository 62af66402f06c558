// SPDX-License-Identifier: Apache-2.0
//
// Indexing: threads take archives one by one and walk each; then the archives
// are put together in order.
#include <string>
#include <utility>
#include <vector>

#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/indexed_files.h"
#include "worker/source/packed/output_args.h"
#include "worker/source/packed/packed_index.h"
#include "worker/source/webdataset/webdataset.h"

namespace leat::worker {
namespace {

bool IsTarName(std::string_view name) { return name.ends_with(".tar"); }

stored::v1::WebdatasetHead HeadOf(const WebdatasetOptions& options) {
  stored::v1::WebdatasetHead head;
  for (const std::string& path : PathsInHead(options)) head.add_paths(path);
  for (const std::string& ext : options.ext) head.add_ext(ext);
  head.set_missing(std::string(NameOf(options.missing)));
  return head;
}

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
  ASSIGN_OR_RETURN(options.paths, PathsArg(reader));
  options.paths_key = LongListKey(reader, "paths");
  ASSIGN_OR_RETURN(OutputArgs outputs,
                   OutputArgsOf(reader, "ext", "extensions"));
  ASSIGN_OR_RETURN(options.index, TextsArg(reader, "index"));
  ASSIGN_OR_RETURN(const std::string missing,
                   TextArg(reader, "missing", "error"));
  if (missing == "skip") {
    options.missing = MissingComponent::kSkip;
  } else if (missing == "empty") {
    options.missing = MissingComponent::kEmpty;
  } else if (missing != "error") {
    return InvalidArgument("{}: missing is \"{}\", want error, skip or empty",
                           reader.op, missing);
  }
  for (const ValueType& type : outputs.types)
    if (type.kind == ValueType::Kind::kTensor && type.shape.empty() &&
        type.dtype != DType::kInt32 && type.dtype != DType::kInt64)
      return InvalidArgument("{}: types: no component is \"{}\"", reader.op,
                             TypeText(type));
  options.ext = std::move(outputs.names);
  options.types = std::move(outputs.types);
  return options;
}

void BeginWebdatasetHash(const WebdatasetOptions& options, Sha256* hash) {
  hash->UpdateField("leat.webdataset.1");
  hash->UpdateU64(options.ext.size());
  for (const std::string& ext : options.ext) hash->UpdateField(ext);
  hash->UpdateField(NameOf(options.missing));
}

absl::StatusOr<BuiltIndex> BuildWebdatasetIndex(const Node& reader,
                                                const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const WebdatasetOptions options,
                   WebdatasetOptionsOf(reader));
  ASSIGN_OR_RETURN(
      const IndexedFiles listing,
      ListIndexed(options.paths, options.index, IsTarName, "archives", limits));
  PackedIndex index("webdataset", options.paths, "samples", limits);
  BeginWebdatasetHash(options, &index.hash());
  RETURN_IF_ERROR(index.AddHead(HeadOf(options)));
  PassedOverCounts passed_over;
  std::vector<ComponentPlaces> places(listing.files.size());
  RETURN_IF_ERROR(ReadIndexedInOrder(
      listing, limits,
      [&](size_t i, const StorageFile& file) -> absl::Status {
        // An archive without samples has at least its end mark.
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
          const StorageFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(places[i],
                         SamplesOfDaliIndex(text, file, options.ext,
                                            options.missing, limits.max_files));
        return absl::OkStatus();
      },
      [&](size_t i) -> absl::Status {
        const ComponentPlaces taken = std::move(places[i]);
        const uint64_t count = taken.blocks.size() / options.ext.size();
        passed_over.Add(taken.passed_over);
        if (count == 0) return absl::OkStatus();
        RETURN_IF_ERROR(index.AddFile(listing.files[i], count));
        index.content().AddNumbers(taken.blocks).AddNumbers(taken.sizes);
        stored::v1::WebdatasetFile part;
        *part.mutable_file() = IndexedFileOf(listing.files[i]);
        part.mutable_blocks()->Add(taken.blocks.begin(), taken.blocks.end());
        part.mutable_sizes()->Add(taken.sizes.begin(), taken.sizes.end());
        return index.AddPart(part, count);
      }));
  if (index.empty())
    return NotFound("{}: no samples with these components in {} archives",
                    RedactedUri(options.paths.front()), listing.files.size());
  ASSIGN_OR_RETURN(BuiltIndex built, index.Finish("an archive is a shard"));
  built.passed_over = passed_over.Take();
  return built;
}

}  // namespace leat::worker
