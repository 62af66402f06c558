// SPDX-License-Identifier: Apache-2.0
//
// Indexing: threads walk some files at a time; their results are put together
// in order, and freed, before the next.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/loader_args.h"
#include "worker/source/packed/indexed_files.h"
#include "worker/source/packed/output_args.h"
#include "worker/source/packed/packed_index.h"
#include "worker/source/tfrecord/framing.h"
#include "worker/source/tfrecord/tfrecord.h"

namespace leat::worker {
namespace {

bool IsTfrecordName(std::string_view name) {
  return name.find(".tfrecord") != std::string_view::npos && !IsIndexName(name);
}

// Adds the sizes of a file's records. A file with very many is added in parts,
// so that a block does not grow with it.
absl::Status AddParts(const ListedFile& file,
                      const std::vector<uint32_t>& sizes,
                      const SourceLimits& limits, PackedIndex* index) {
  constexpr size_t kMost = 1 << 20;  // records per part
  const size_t most = std::clamp<size_t>(limits.block_bytes / 4, 1, kMost);
  uint64_t begin = 0;
  for (size_t first = 0; first < sizes.size(); first += most) {
    const size_t end = std::min(first + most, sizes.size());
    stored::v1::TfrecordFile part;
    *part.mutable_file() = IndexedFileOf(file);
    part.mutable_sizes()->Add(sizes.begin() + static_cast<ptrdiff_t>(first),
                              sizes.begin() + static_cast<ptrdiff_t>(end));
    part.set_begin(begin);
    part.set_first(first);
    part.set_more(end < sizes.size());
    RETURN_IF_ERROR(index->AddPart(part, end - first));
    for (size_t i = first; i < end; ++i) begin += sizes[i];
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> PathsInHead(const TfrecordOptions& options) {
  if (options.paths_key.empty()) return options.paths;
  return {options.paths_key};
}

absl::StatusOr<TfrecordOptions> TfrecordOptionsOf(const Node& reader) {
  TfrecordOptions options;
  ASSIGN_OR_RETURN(options.paths, PathsArg(reader));
  options.paths_key = LongListKey(reader, "paths");
  ASSIGN_OR_RETURN(OutputArgs outputs,
                   OutputArgsOf(reader, "features", "features"));
  ASSIGN_OR_RETURN(options.index, TextsArg(reader, "index"));
  for (const ValueType& type : outputs.types) {
    const bool fits = type.kind == ValueType::Kind::kEncoded ||
                      type.dtype == DType::kInt64 ||
                      type.dtype == DType::kFloat32 ||
                      (IsBytesFeature(type) && !type.shape.empty());
    if (!fits)
      return InvalidArgument("{}: types: no feature is \"{}\"", reader.op,
                             TypeText(type));
  }
  options.features = std::move(outputs.names);
  options.types = std::move(outputs.types);
  return options;
}

void BeginTfrecordHash(Sha256* hash) { hash->UpdateField("leat.tfrecord.1"); }

absl::StatusOr<BuiltIndex> BuildTfrecordIndex(const Node& reader,
                                              const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const TfrecordOptions options, TfrecordOptionsOf(reader));
  ASSIGN_OR_RETURN(const IndexedFiles listing,
                   ListIndexed(options.paths, options.index, IsTfrecordName,
                               "files", limits));
  PackedIndex index("tfrecord", options.paths, "records", limits);
  BeginTfrecordHash(&index.hash());
  stored::v1::TfrecordHead head;
  for (const std::string& path : PathsInHead(options)) head.add_paths(path);
  RETURN_IF_ERROR(index.AddHead(head));
  std::vector<std::vector<uint32_t>> sizes(listing.files.size());
  RETURN_IF_ERROR(ReadIndexedInOrder(
      listing, limits,
      [&](size_t i, const StorageFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(
            sizes[i], WalkTfrecord(file, limits.max_files, limits.cancelled));
        return absl::OkStatus();
      },
      [&](size_t i, std::string_view text,
          const StorageFile& file) -> absl::Status {
        ASSIGN_OR_RETURN(sizes[i],
                         SizesFromDaliIndex(text, file, limits.max_files));
        return absl::OkStatus();
      },
      [&](size_t i) -> absl::Status {
        const std::vector<uint32_t> taken = std::move(sizes[i]);
        if (taken.empty()) return absl::OkStatus();
        RETURN_IF_ERROR(index.AddFile(listing.files[i], taken.size()));
        index.content().AddNumbers(taken);
        return AddParts(listing.files[i], taken, limits, &index);
      }));
  if (index.empty())
    return NotFound("{}: no records in {}", RedactedUri(options.paths.front()),
                    Counted(listing.files.size(), "file"));
  return index.Finish("a TFRecord file is a shard");
}

}  // namespace leat::worker
