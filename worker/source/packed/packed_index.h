// SPDX-License-Identifier: Apache-2.0
//
// PackedIndex: builds the index of files that hold many records each, file by
// file, in their order: a head, then parts of files. A file with records is a
// shard.
//
//   PackedIndex index("tfrecord", options.paths, "records", limits);
//   add what identifies the format to index.hash(); index.AddHead(head);
//   for each file with records: index.AddFile(file, count), then add its
//   contents to index.content(), and index.AddPart(part, count) once or more;
//   index.Finish("a TFRecord file is a shard")
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"
#include "google/protobuf/message_lite.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/content_hash.h"
#include "worker/source/index_blob.h"
#include "worker/source/record_paths.h"
#include "worker/source/source.h"

namespace leat::worker {

class PackedIndex {
 public:
  // `format`: as for ContentHash. `paths`: the reader's. `records`: the word
  // for a file's records in messages.
  PackedIndex(std::string_view format, const std::vector<std::string>& paths,
              std::string_view records, const SourceLimits& limits)
      : name_(NameOfPath(paths.front())),
        noun_(records),
        limits_(limits),
        blob_(limits),
        content_(format, paths) {}

  Sha256& hash() { return hash_; }
  ContentHash& content() { return content_; }
  bool empty() const { return records_.empty(); }

  absl::Status AddHead(const google::protobuf::MessageLite& head) {
    return blob_.Add(head);
  }
  // kResourceExhausted: more than limits.max_files records in all files.
  absl::Status AddFile(const ListedFile& file, uint64_t records);
  // Errors as BlobWriter::Add.
  absl::Status AddPart(const google::protobuf::MessageLite& part,
                       uint64_t records) {
    return blob_.Add(part, records);
  }
  // `shard`: the beginning of errors about the shards. REQUIRES: not empty().
  absl::StatusOr<BuiltIndex> Finish(std::string_view shard);
  // Does the same with uniform shards, for files that are few and large.
  // `types`: of the reader's output. REQUIRES: not empty().
  absl::StatusOr<BuiltIndex> FinishUniform(std::vector<ValueType> types);

 private:
  absl::StatusOr<BuiltIndex> FinishWith(ShardTable shards,
                                        std::vector<ValueType> types);

  const std::string name_;
  const std::string_view noun_;
  const SourceLimits& limits_;
  BlobWriter blob_;
  Sha256 hash_;
  ContentHash content_;
  std::vector<uint64_t> records_;  // per file
  uint64_t sum_ = 0;
  uint64_t bytes_ = 0;
};

// Returns a part's entry for its file.
stored::v1::IndexedFile IndexedFileOf(const ListedFile& file);

}  // namespace leat::worker
