// SPDX-License-Identifier: Apache-2.0
//
// Listing: threads read the files' footers and check the requested columns.
#include <algorithm>
#include <utility>

#include "core/pipeline/shape_inference.h"
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/content_hash.h"
#include "worker/source/each_file.h"
#include "worker/source/index_blob.h"
#include "worker/source/packed/output_args.h"
#include "worker/source/packed/packed_index.h"
#include "worker/source/parquet/parquet.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

bool IsParquetName(std::string_view name) {
  return name.ends_with(".parquet") || name.ends_with(".parq") ||
         name.ends_with(".pq");
}

absl::Status CheckColumns(const ParquetOptions& options,
                          const StoredParquet& input,
                          const ParquetFooter& footer) {
  for (size_t i = 0; i < options.columns.size(); ++i) {
    ASSIGN_OR_RETURN(const size_t column,
                     FindParquetColumn(footer, options.columns[i]));
    RETURN_IF_ERROR(CheckParquetType(footer.columns[column], options.types[i]));
    for (size_t group = 0; group < footer.group_rows.size(); ++group) {
      ParquetError error;
      if (footer.group_rows[group] > 0 &&
          !footer.CheckChunk(input.size(), group, column, &error)) {
        error.text = fmt::format("column \"{}\" of row group {}: {}",
                                 options.columns[i], group, error.text);
        return input.StatusOf(error);
      }
    }
  }
  return absl::OkStatus();
}

// Returns the rows of each of a file's row groups.
absl::StatusOr<std::vector<uint64_t>> ReadGroups(const ParquetOptions& options,
                                                 const ListedFile& listed,
                                                 const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const ParquetLibrary* const library, LoadParquetLibrary());
  ASSIGN_OR_RETURN(const auto file,
                   StorageOf(limits).Open(listed.uri, listed.identity));
  const StoredParquet input(*file);
  ParquetError error;
  const auto footer = library->open(input, BoundsOf(limits), &error);
  if (footer == nullptr) return Annotate(input.StatusOf(error), file->name());
  RETURN_IF_ERROR(
      Annotate(CheckColumns(options, input, *footer), file->name()));
  return footer->group_rows;
}

// Divides row groups into shards, so that a shard's pages are together.
absl::StatusOr<ShardTable> ShardsOf(
    const std::vector<std::vector<uint64_t>>& files, uint64_t samples) {
  const uint64_t most = ShardTable::DefaultShardSize(samples);
  std::vector<uint64_t> sizes;
  for (const std::vector<uint64_t>& groups : files)
    for (const uint64_t rows : groups) {
      const uint64_t pieces = rows / most + (rows % most > 0 ? 1 : 0);
      if (pieces > kMaxShards - std::min<size_t>(sizes.size(), kMaxShards))
        return ShardTable::Uniform(samples, most);
      for (uint64_t i = 0; i < pieces; ++i)
        sizes.push_back(rows * (i + 1) / pieces - rows * i / pieces);
    }
  return ShardTable::FromSizes(sizes);
}

}  // namespace

absl::StatusOr<ParquetOptions> ParquetOptionsOf(const Node& reader) {
  ParquetOptions options;
  ASSIGN_OR_RETURN(options.paths, PathsArg(reader));
  ASSIGN_OR_RETURN(OutputArgs outputs,
                   OutputArgsOf(reader, "columns", "columns"));
  options.columns = std::move(outputs.names);
  options.types = std::move(outputs.types);
  return options;
}

absl::StatusOr<BuiltIndex> BuildParquetIndex(const Node& reader,
                                             const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const ParquetOptions options, ParquetOptionsOf(reader));
  ASSIGN_OR_RETURN(const std::vector<ListedFile> files,
                   FilesOfPaths(options.paths, IsParquetName, limits));
  std::vector<std::vector<uint64_t>> groups(files.size());
  RETURN_IF_ERROR(ForEachIndex(
      files.size(), limits.listing_threads, limits.cancelled, [&](size_t i) {
        ASSIGN_OR_RETURN(groups[i], ReadGroups(options, files[i], limits));
        return absl::OkStatus();
      }));
  BuiltIndex index;
  ContentHash content("parquet", options.paths);
  BlobWriter blob(limits);
  stored::v1::ParquetHead head;
  head.set_reader(CanonicalText(reader));
  RETURN_IF_ERROR(blob.Add(head));
  uint64_t samples = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    stored::v1::ParquetFile part;
    uint64_t rows = 0;
    for (const uint64_t each : groups[i]) {
      if (each > limits.max_files - std::min(samples + rows, limits.max_files))
        return ResourceExhausted("{}: more than {} rows: the limit",
                                 RedactedUri(files[i].uri), limits.max_files);
      part.add_rows(each);
      rows += each;
    }
    if (rows == 0) continue;
    samples += rows;
    index.bytes += files[i].size;
    *part.mutable_file() = IndexedFileOf(files[i]);
    RETURN_IF_ERROR(blob.Add(part));
    content.AddFile(files[i].uri, files[i].size).AddNumbers(part.rows());
  }
  if (samples == 0)
    return NotFound("{}: no rows in {} files",
                    RedactedUri(options.paths.front()), files.size());
  ASSIGN_OR_RETURN(index.shards, ShardsOf(groups, samples));
  ASSIGN_OR_RETURN(index.blob, blob.Finish());
  ASSIGN_OR_RETURN(const auto source, OpenParquet(reader, index.blob, limits));
  index.fingerprint = source->fingerprint();
  index.name = NameOfPath(options.paths.front());
  content.Finish(&index);
  return index;
}

}  // namespace leat::worker
