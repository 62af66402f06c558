// SPDX-License-Identifier: Apache-2.0
#include "worker/source/record_file.h"

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/source_storage.h"
#include "worker/source/storage/base/identity.h"

namespace leat::worker {

stored::v1::RecordFile RecordFileOf(std::string_view uri,
                                    const StorageFile& file) {
  stored::v1::RecordFile record;
  record.set_uri(std::string(uri));
  record.set_bytes(file.size());
  record.set_identity(file.identity());
  return record;
}

absl::StatusOr<OpenedFile> OpenRecordFile(const stored::v1::RecordFile& record,
                                          const SourceLimits& limits) {
  if (record.uri().empty() || record.identity().empty())
    return DataLoss("the index names no file");
  // The file is kept, so that a change of a local one is detected relative to
  // this moment, even if its descriptor is closed in the meantime.
  ASSIGN_OR_RETURN(
      OpenedFile file,
      StorageOf(limits).Open(record.uri(), IsLocalUri(record.uri())
                                               ? WithoutTime(record.identity())
                                               : record.identity()));
  if (file->size() != record.bytes())
    return DataLoss("{}: the index says {} bytes, its identity {}",
                    file->name(), record.bytes(), file->size());
  return file;
}

void HashRecordFile(const stored::v1::RecordFile& record, Sha256* hash) {
  hash->UpdateField(record.uri()).UpdateU64(record.bytes());
  hash->UpdateField(record.identity());
}

SampleBytes NewSampleBytes(uint64_t bytes) {
  return std::make_shared_for_overwrite<std::byte[]>(bytes);
}

std::string NameOf(std::string_view uri) {
  std::string name = RedactedUri(uri);
  while (!name.empty() && name.back() == '/') name.pop_back();
  name = name.substr(name.rfind('/') + 1);
  return name.empty() ? "root" : name;
}

absl::Status CheckCancelled(const SourceLimits& limits, std::string_view what) {
  if (limits.cancelled == nullptr || !*limits.cancelled)
    return absl::OkStatus();
  return Cancelled("{}: the listing was cancelled", what);
}

absl::Status FinishIndex(std::string_view name, uint64_t samples,
                         const SourceLimits& limits, BuiltIndex* index) {
  const std::string shown = RedactedUri(name);
  if (samples == 0) return NotFound("{}: no records in it", shown);
  if (samples > limits.max_files)
    return ResourceExhausted("{}: {} records, the limit is {}", shown, samples,
                             limits.max_files);
  if (index->blob.size() > limits.max_index_bytes)
    return ResourceExhausted("{}: the index of {} records is over {} bytes",
                             shown, samples, limits.max_index_bytes);
  ASSIGN_OR_RETURN(
      index->shards,
      ShardTable::Uniform(samples, ShardTable::DefaultShardSize(samples)));
  index->name = NameOf(name);
  return absl::OkStatus();
}

}  // namespace leat::worker
