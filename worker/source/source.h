// SPDX-License-Identifier: Apache-2.0
//
// Source: a dataset's records, by index. One implementation a format.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/plan/index_blocks.h"
#include "core/plan/passed_over.h"
#include "core/plan/shard_table.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

class Storage;
class UnpackedBudget;
struct ListedFile;

// Takes an index block by block (core/plan/index_blocks.h), in order.
class IndexSink {
 public:
  virtual ~IndexSink() = default;
  // An error ends the listing.
  virtual absl::Status Add(std::string bytes, uint64_t samples) = 0;
};

struct SourceLimits {
  uint64_t max_file_bytes = 256ull << 20;
  uint64_t max_files = 1ull << 31;              // or records
  uint64_t max_index_bytes = (2ull << 30) - 1;  // of one in one piece
  // Where a listing puts its index, and what bounds it then. nullptr: into
  // BuiltIndex::blob.
  IndexSink* blocks = nullptr;
  uint64_t block_bytes = kIndexBlockBytes;
  uint64_t max_blocks_bytes = 64ull << 30;
  // What is opened is one of many that share a worker: it holds less of files
  // open, and of what it has read.
  bool one_of_many = false;
  int listing_threads = 8;
  // Set to true, it ends a listing by kCancelled. nullptr: nothing does.
  const std::atomic<bool>* cancelled = nullptr;
  // The files that the reader's `paths` name, where the caller has listed them
  // (record_paths.h), so that storage is not asked again. nullptr: it is asked.
  const std::vector<ListedFile>* files = nullptr;
  // What the bytes are read by; must outlive the sources. nullptr: the
  // process's own (StorageOf).
  const Storage* storage = nullptr;
  // What one source keeps of shards that it had to decompress whole.
  uint64_t max_unpacked_bytes = 1ull << 30;
  // What all sources keep so together; must outlive them. nullptr: no bound.
  UnpackedBudget* unpacked = nullptr;
  // The bytes of one Parquet footer; in memory it takes a multiple.
  uint64_t max_footer_bytes = 16 << 20;
};

// Which records are near enough to come in one request.
struct NearbyLimits {
  uint64_t gap_bytes = 64 << 10;   // between two of them
  uint64_t total_bytes = 2 << 20;  // from the first to the last, gaps and all
};

// Where a record is, as the index says.
struct RecordPlace {
  std::string file;  // as messages show it: without secrets
  std::string key;   // its own name in the file; empty: the index has none
  // Where its bytes begin in the file, and how many they are. No offset: the
  // record is the whole file, or the index does not say.
  std::optional<uint64_t> offset, bytes;
  std::optional<uint64_t> index;  // among the file's records
};

class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t num_samples() const = 0;
  // A number that equal stored records share (sample i and i + files under
  // `repeat`): the key of caches.
  virtual uint64_t RecordOf(uint64_t sample) const = 0;
  // Reads a record whole. Blocks on storage. Thread-safe. kNotFound,
  // kPermissionDenied: as storage says. kFailedPrecondition: the file changed
  // after indexing (size or time; names both). kResourceExhausted: over
  // max_file_bytes. Errors of storage, and lack of memory, carry their
  // fault (core/cluster/fault.h); others are the reader's verdict on the
  // record.
  virtual absl::StatusOr<StoredSample> Read(uint64_t sample) const = 0;
  // Reads several; each has its own answer, as Read's. Neighbours come in one
  // request where storage is remote; if that is refused, each by itself.
  virtual std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const;
  // How many of the first of these, in the order in which they lie in one file,
  // ReadMany brings in one request: 1 and more. Cheap; reads nothing.
  virtual size_t Nearby(std::span<const uint64_t> samples,
                        const NearbyLimits& limits) const {
    return 1;
  }
  // The fingerprint that BuildIndex gave, computed from what was opened.
  virtual const Digest& fingerprint() const = 0;
  // For messages: the file's path, or file and offset.
  virtual std::string Describe(uint64_t sample) const = 0;
  // Reads no record, but may wait for the sample's part of the index.
  // kFailedPrecondition: samples are in no storage. kUnavailable: the index is
  // not to be had now.
  virtual absl::StatusOr<RecordPlace> Locate(uint64_t sample) const = 0;
  // Whether a read may wait for the network before it comes to the file.
  virtual bool waits() const { return false; }
};

// Returns how many records the source has. Under `repeat` a record is several
// samples, so there are fewer records than samples.
inline uint64_t RecordsOf(const Source& source) {
  const uint64_t samples = source.num_samples();
  return samples == 0 ? 0 : source.RecordOf(samples - 1) + 1;
}

// What listing a dataset gives.
struct BuiltIndex {
  std::string blob;  // the source's own format
  Digest fingerprint{};
  Digest content{};  // ContentHash; zero: of a reader without storage
  ShardTable shards;
  uint64_t bytes = 0;
  std::vector<std::string> classes;
  std::string name;  // proposed, for people
  // What the reader gives; only of readers with OperatorInfo::stored_types.
  std::vector<ValueType> types;
  std::vector<PassedOver> passed_over;
};

// A format that can be read: one a reader node, each with a folder's file of
// its own that defines it.
struct SourceFormat {
  std::string_view op;  // "readers.image_folder"
  // These have the contracts of BuildIndex and OpenSource below.
  absl::StatusOr<BuiltIndex> (*build)(const Node& reader,
                                      const SourceLimits& limits);
  absl::StatusOr<std::unique_ptr<Source>> (*open)(const Node& reader,
                                                  std::string_view index_blob,
                                                  const SourceLimits& limits);
  // `build` puts its index into SourceLimits::blocks, each part of which says
  // all about its samples, and `open` opens the head with any one of them.
  bool in_blocks = false;
};

// Lists what `reader` names. kNotFound: no such path, or no images in it (says
// what was looked for).
absl::StatusOr<BuiltIndex> BuildIndex(const Node& reader,
                                      const SourceLimits& limits);
// The same into `sink`, without a blob: in blocks with samples if the format
// has such, else cut anywhere.
absl::StatusOr<BuiltIndex> BuildIndexInto(const Node& reader,
                                          const SourceLimits& limits,
                                          IndexSink* sink);
// Opens what BuildIndex listed. kDataLoss: a malformed index.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(const Node& reader,
                                                   std::string_view index_blob,
                                                   const SourceLimits& limits);

// Whether reads of a dataset may wait for a network: a path among its reader's
// arguments, or where its first record is, is remote, or on a file system of
// the network.
bool ReadsWait(const Node& reader, const Source& source);

// What people know the storage of a dataset by: the folder of its reader's
// first path, or "s3://bucket", without secrets. Empty: it is in no storage.
std::string RootOf(const Node& reader);

}  // namespace leat::worker
