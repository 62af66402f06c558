// SPDX-License-Identifier: Apache-2.0
//
// PackedIndex: the index of files that hold many records each, as it is put
// together, file by file, in their order: a head, then parts of files. A file
// with records is a shard.
//
//   PackedIndex index("tfrecord", options.paths, "records", limits);
//   index.hash() gets what names the format; index.AddHead(head);
//   for each file with records: index.AddFile(file, count), then index.content()
//   gets what it holds, and index.AddPart(part, count) one or several times;
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
  // `format`: as ContentHash wants it. `paths`: the reader's. `records`: what
  // messages call what a file holds.
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
  // As BlobWriter::Add.
  absl::Status AddPart(const google::protobuf::MessageLite& part,
                       uint64_t records) {
    return blob_.Add(part, records);
  }
  // `shard`: what errors of the shards begin with. REQUIRES: not empty().
  absl::StatusOr<BuiltIndex> Finish(std::string_view shard);

 private:
  const std::string name_;
  const std::string_view noun_;
  const SourceLimits& limits_;
  BlobWriter blob_;
  Sha256 hash_;
  ContentHash content_;
  std::vector<uint64_t> records_;  // of each file
  uint64_t sum_ = 0;
  uint64_t bytes_ = 0;
};

// What a part says of its file.
stored::v1::IndexedFile IndexedFileOf(const ListedFile& file);

}  // namespace leat::worker
