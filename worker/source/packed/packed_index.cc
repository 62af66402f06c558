// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/packed_index.h"

#include <utility>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/file_set.h"

namespace leat::worker {

absl::Status PackedIndex::AddFile(const ListedFile& file, uint64_t records) {
  sum_ += records;
  if (sum_ > limits_.max_files)
    return ResourceExhausted("{}: more than {} {}: the limit",
                             RedactedUri(file.uri), limits_.max_files, noun_);
  FileSet one;
  RETURN_IF_ERROR(one.Add(file.uri, file.size, file.identity));
  one.UpdateHash(&hash_, 0);
  hash_.UpdateU64(records);
  content_.AddFile(file.uri, file.size);
  bytes_ += file.size;
  records_.push_back(records);
  return absl::OkStatus();
}

absl::StatusOr<BuiltIndex> PackedIndex::Finish(std::string_view shard) {
  absl::StatusOr<ShardTable> shards = ShardTable::FromSizes(records_);
  if (!shards.ok()) return Annotate(shards.status(), shard);
  return FinishWith(*std::move(shards), {});
}

absl::StatusOr<BuiltIndex> PackedIndex::FinishUniform(
    std::vector<ValueType> types) {
  ASSIGN_OR_RETURN(
      ShardTable shards,
      ShardTable::Uniform(sum_, ShardTable::DefaultShardSize(sum_)));
  return FinishWith(std::move(shards), std::move(types));
}

absl::StatusOr<BuiltIndex> PackedIndex::FinishWith(
    ShardTable shards, std::vector<ValueType> types) {
  BuiltIndex built;
  built.shards = std::move(shards);
  built.types = std::move(types);
  ASSIGN_OR_RETURN(built.blob, blob_.Finish());
  built.fingerprint = hash_.Finish();
  built.bytes = bytes_;
  built.name = name_;
  content_.Finish(&built);
  return built;
}

stored::v1::IndexedFile IndexedFileOf(const ListedFile& file) {
  stored::v1::IndexedFile proto;
  proto.set_name(file.uri);
  proto.set_bytes(file.size);
  proto.set_identity(file.identity);
  return proto;
}

}  // namespace leat::worker
