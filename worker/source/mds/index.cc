// SPDX-License-Identifier: Apache-2.0
//
// Listing: reads index.json, then threads examine each shard's file.
#include <algorithm>
#include <set>
#include <utility>

#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/content_hash.h"
#include "worker/source/each_file.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/mds/mds.h"
#include "worker/source/packed/output_args.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

// The files of a shard that exist.
struct Found {
  bool packed = false;
  std::string identity;
};

// Returns the indices of the requested columns. kNotFound: names the existing
// ones.
absl::StatusOr<std::vector<uint32_t>> FindColumns(const MdsOptions& options,
                                                  const MdsIndexFile& index) {
  std::vector<uint32_t> found;
  for (const std::string& wanted : options.columns) {
    const auto it = std::find_if(
        index.columns.begin(), index.columns.end(),
        [&](const MdsIndexFile::Column& c) { return c.name == wanted; });
    if (it != index.columns.end()) {
      found.push_back(static_cast<uint32_t>(it - index.columns.begin()));
      continue;
    }
    std::vector<std::string_view> known;
    for (const auto& each : index.columns) known.push_back(each.name);
    return NotFound("no column \"{}\", the dataset has: {}", wanted,
                    fmt::join(known, ", "));
  }
  return found;
}

absl::StatusOr<std::vector<ValueType>> TypesOf(
    const MdsOptions& options, const MdsIndexFile& index,
    const std::vector<uint32_t>& outputs) {
  std::vector<ValueType> types;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const MdsIndexFile::Column& each = index.columns[outputs[i]];
    auto column = ParseMdsColumn(each.encoding, each.size, options.TypeOf(i));
    if (!column.ok())
      return Annotate(column.status(), fmt::format("column \"{}\"", each.name));
    types.push_back(std::move(column->type));
  }
  return types;
}

absl::Status CheckWhole(const StorageFile& file, const MdsFile& info) {
  const bool known = std::any_of(
      info.hashes.begin(), info.hashes.end(), [](const std::string& hash) {
        return IsKnownHash(std::string_view(hash).substr(0, hash.find(':')));
      });
  if (!known)
    return FailedPrecondition(
        "{}: to be verified, but the index has no hash of it that is known "
        "here (such as sha1)",
        file.name());
  ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(file, info.bytes));
  return Annotate(CheckHashes(info.hashes, std::as_bytes(std::span(bytes))),
                  file.name());
}

// Looks for the shard's file uncompressed or, if that is missing, compressed.
absl::StatusOr<Found> FindShard(const MdsOptions& options,
                                const MdsShardInfo& shard,
                                const Storage& storage) {
  Found found;
  const MdsFile* info = &shard.raw;
  auto file = storage.Open(JoinUri(options.path, shard.raw.name));
  if (absl::IsNotFound(file.status()) && !shard.packed.name.empty()) {
    found.packed = true;
    info = &shard.packed;
    file = storage.Open(JoinUri(options.path, shard.packed.name));
    if (file.ok() && shard.compression == Compression::kNone)
      return Unimplemented("{}: compressed by other than zstd, gz or br",
                           (*file)->name());
  }
  if (!file.ok()) return file.status();
  if ((*file)->size() != info->bytes)
    return FailedPrecondition("{} has {} bytes, index.json says {}",
                              (*file)->name(), (*file)->size(), info->bytes);
  found.identity = (*file)->identity();
  if (options.verify) RETURN_IF_ERROR(CheckWhole(**file, *info));
  return found;
}

absl::StatusOr<std::string> BlobOf(const Node& reader,
                                   const MdsIndexFile& index,
                                   const std::vector<uint32_t>& outputs,
                                   const std::vector<Found>& found,
                                   const SourceLimits& limits) {
  BlobWriter blob(limits);
  stored::v1::MdsHead head;
  head.set_reader(CanonicalText(reader));
  for (const MdsIndexFile::Column& from : index.columns) {
    stored::v1::MdsColumn& to = *head.add_columns();
    to.set_name(from.name);
    to.set_encoding(from.encoding);
    to.set_size(from.size);
  }
  head.mutable_outputs()->Add(outputs.begin(), outputs.end());
  RETURN_IF_ERROR(blob.Add(head));
  stored::v1::MdsShards part;
  for (size_t i = 0; i < index.shards.size(); ++i) {
    const MdsShardInfo& from = index.shards[i];
    if (from.samples > 0) {
      const MdsFile& file = found[i].packed ? from.packed : from.raw;
      stored::v1::MdsShard& to = *part.add_shards();
      to.mutable_file()->set_name(file.name);
      to.mutable_file()->set_bytes(file.bytes);
      to.mutable_file()->set_identity(found[i].identity);
      to.set_raw_bytes(from.raw.bytes);
      to.set_samples(from.samples);
      if (found[i].packed) {
        to.set_compression(static_cast<uint32_t>(from.compression));
        for (const std::string& hash : from.packed.hashes)
          to.add_file_hashes(hash);
        for (const std::string& hash : from.raw.hashes) to.add_raw_hashes(hash);
      }
    }
    if (static_cast<size_t>(part.shards_size()) < kFilesAPart &&
        i + 1 < index.shards.size())
      continue;
    RETURN_IF_ERROR(blob.Add(part));
    part.Clear();
  }
  return blob.Finish();
}

absl::StatusOr<MdsIndexFile> ReadIndexFile(const MdsOptions& options,
                                           const SourceLimits& limits) {
  const std::string uri = JoinUri(options.path, "index.json");
  ASSIGN_OR_RETURN(const auto file, StorageOf(limits).Open(uri));
  ASSIGN_OR_RETURN(const std::string json,
                   ReadText(limits, uri, *file, kMaxMdsIndexBytes));
  absl::StatusOr<MdsIndexFile> index = ParseMdsIndex(json);
  if (!index.ok()) return Annotate(index.status(), file->name());
  if (index->shards.size() > kMaxShards)
    return ResourceExhausted("{}: {} shards: the limit is {}", file->name(),
                             index->shards.size(), kMaxShards);
  return index;
}

// Sets what the arguments `types` and `images` say of each column.
absl::Status SetTypes(const Node& reader, MdsOptions* options) {
  const auto& columns = options->columns;
  options->types.resize(columns.size());
  ASSIGN_OR_RETURN(const auto images, TextsArg(reader, "images"));
  ASSIGN_OR_RETURN(const auto types, TextsArg(reader, "types"));
  if (!types.empty() && !images.empty())
    return InvalidArgument(
        "{}: images: types says already what each column is (\"encoded\")",
        reader.op);
  for (const std::string& image : images) {
    const auto it = std::find(columns.begin(), columns.end(), image);
    if (it == columns.end())
      return InvalidArgument("{}: images: \"{}\" is not among columns",
                             reader.op, image);
    options->types[static_cast<size_t>(it - columns.begin())] = {
        ValueType::Kind::kEncoded, DType::kUint8, {}};
  }
  if (types.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const OutputArgs declared,
                   OutputArgsOf(reader, "columns", "columns"));
  options->types.assign(declared.types.begin(), declared.types.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MdsOptions> MdsOptionsOf(const Node& reader) {
  MdsOptions options;
  ASSIGN_OR_RETURN(options.path, TextArg(reader, "path"));
  ASSIGN_OR_RETURN(options.columns, TextsArg(reader, "columns"));
  if (const auto it = reader.args.find("verify"); it != reader.args.end()) {
    const bool* const verify = std::get_if<bool>(&it->second);
    if (verify == nullptr)
      return InvalidArgument("{}: verify: want true or false", reader.op);
    options.verify = *verify;
  }
  if (options.path.empty())
    return InvalidArgument("{}: path: want a folder or URI", reader.op);
  if (options.columns.empty())
    return InvalidArgument("{}: columns: want at least one", reader.op);
  const auto& columns = options.columns;
  if (std::set<std::string>(columns.begin(), columns.end()).size() !=
      columns.size())
    return InvalidArgument("{}: columns: one is named twice in {}", reader.op,
                           fmt::join(columns, ", "));
  RETURN_IF_ERROR(SetTypes(reader, &options));
  return options;
}

absl::StatusOr<BuiltIndex> BuildMdsIndex(const Node& reader,
                                         const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const MdsOptions options, MdsOptionsOf(reader));
  ASSIGN_OR_RETURN(const MdsIndexFile file, ReadIndexFile(options, limits));
  const std::string shown = RedactedUri(options.path);
  if (std::none_of(file.shards.begin(), file.shards.end(),
                   [](const MdsShardInfo& shard) { return shard.samples > 0; }))
    return NotFound("{}: its index.json lists no samples", shown);
  const auto outputs = FindColumns(options, file);
  if (!outputs.ok()) return Annotate(outputs.status(), shown);
  auto types = TypesOf(options, file, *outputs);
  if (!types.ok()) return Annotate(types.status(), shown);
  std::vector<Found> found(file.shards.size());
  const Storage& storage = StorageOf(limits);
  RETURN_IF_ERROR(ForEachIndex(
      file.shards.size(), limits.listing_threads, limits.cancelled,
      [&](size_t i) {
        if (file.shards[i].samples == 0) return absl::OkStatus();
        ASSIGN_OR_RETURN(found[i], FindShard(options, file.shards[i], storage));
        return absl::OkStatus();
      }));
  BuiltIndex index;
  ASSIGN_OR_RETURN(index.blob, BlobOf(reader, file, *outputs, found, limits));
  ContentHash content("mds", {});
  for (const MdsIndexFile::Column& column : file.columns)
    content.AddText(column.name)
        .AddText(column.encoding)
        .AddNumber(column.size);
  std::vector<uint64_t> sizes;
  uint64_t samples = 0;
  for (size_t i = 0; i < file.shards.size(); ++i) {
    const MdsShardInfo& shard = file.shards[i];
    if (shard.samples == 0) continue;
    if (shard.samples > limits.max_files - samples)
      return ResourceExhausted("{}: more than {} samples: the limit", shown,
                               limits.max_files);
    samples += shard.samples;
    sizes.push_back(shard.samples);
    // A shard is identified by its unpacked file, even if only the packed one
    // exists.
    content.AddFile(shard.raw.name, shard.raw.bytes);
    index.bytes += found[i].packed ? shard.packed.bytes : shard.raw.bytes;
  }
  ASSIGN_OR_RETURN(index.shards, ShardTable::FromSizes(sizes));
  index.types = *std::move(types);
  ASSIGN_OR_RETURN(const auto source, OpenMds(reader, index.blob, limits));
  index.fingerprint = source->fingerprint();
  index.name = NameOfPath(options.path);
  content.Finish(&index);
  return index;
}

}  // namespace leat::worker
