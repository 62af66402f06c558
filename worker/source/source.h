// SPDX-License-Identifier: Apache-2.0
//
// Source: a dataset's records, by index. Each format has one implementation,
// which derives from FormatSource.
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
#include "core/plan/selection.h"
#include "core/plan/shard_table.h"
#include "core/selection/column_range.h"
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
  uint64_t max_index_bytes = (2ull << 30) - 1;  // of an index in one piece
  // Where a listing puts its index in blocks, and their bounds. nullptr: into
  // BuiltIndex::blob.
  IndexSink* blocks = nullptr;
  uint64_t block_bytes = kIndexBlockBytes;
  uint64_t max_blocks_bytes = 64ull << 30;
  // True if the source is one of many that share a worker: it keeps fewer
  // files, and less of what it has read.
  bool one_of_many = false;
  int listing_threads = 8;
  // If set to true, it ends a listing with kCancelled. May be nullptr.
  const std::atomic<bool>* cancelled = nullptr;
  // The files that the reader's `paths` name, if the caller has listed them
  // (record_paths.h), so that storage is not asked again. nullptr: it is asked.
  const std::vector<ListedFile>* files = nullptr;
  // Reads the bytes; must outlive the sources. nullptr: the process's own
  // (StorageOf).
  const Storage* storage = nullptr;
  // The bytes that one source keeps of shards that it had to decompress whole.
  uint64_t max_unpacked_bytes = 1ull << 30;
  // Limits the sum over all sources; must outlive them. nullptr: no bound.
  UnpackedBudget* unpacked = nullptr;
  // The bytes of one Parquet footer; in memory it takes a multiple.
  uint64_t max_footer_bytes = 16 << 20;
};

// The records that are near enough to be read by one request.
struct NearbyLimits {
  uint64_t gap_bytes = 64 << 10;   // between two of them
  uint64_t total_bytes = 2 << 20;  // from the first to the last, including gaps
};

// A record's location, according to the index.
struct RecordPlace {
  // As the job names it, on every machine (Storage::LocalPath), without secrets.
  std::string file;
  std::string key;  // its own name in the file; empty: the index has none
  // The range of its bytes in the file. No offset: the record is the whole
  // file, or the index does not know it.
  std::optional<uint64_t> offset, bytes;
  std::optional<uint64_t> index;  // among the file's records
};

// Elements of a record's outputs, along the axis whose size differs from record
// to record: `count` of them after the first `begin`.
struct RecordPart {
  uint64_t sample = 0;
  uint64_t begin = 0, count = 0;
};
struct StoredPart {
  StoredSample stored;
  // How many elements the record has, if `stored` is the part alone; nullopt:
  // `stored` is the whole record.
  std::optional<uint64_t> elements;
};

// A document that has elements in a packed row.
struct RowDocument {
  uint64_t sample = 0;  // of the dataset that is packed
  // `elements` of the document, after its first `begin`, stand in the row after
  // the row's first `row_begin`.
  uint64_t begin = 0, elements = 0, row_begin = 0;
  uint64_t document_elements = 0;  // of the whole document
  RecordPlace place;
};
// A part of a row's documents, in the row's order.
struct RowDocuments {
  uint64_t count = 0;  // of the whole row
  std::vector<RowDocument> listed;
};

// Some columns of stored records, which need not be outputs of the reader.
// Thread-safe.
class StoredColumns {
 public:
  virtual ~StoredColumns() = default;
  // Returns whether the column has texts, and not numbers.
  virtual bool IsText(size_t column) const = 0;
  // A run of samples, and what is known of them before they are read.
  struct Run {
    uint64_t end = 0;                   // the sample behind the last
    std::vector<ColumnRange> ranges;    // of each column
    std::shared_ptr<const void> owner;  // of texts
  };
  // Errors: as Source::Read.
  virtual absl::StatusOr<Run> RunAt(uint64_t sample) const = 0;
  // Sets the values of a sample, one for each column. `owner` keeps texts.
  // Errors: as Source::Read. Blocks on storage.
  virtual absl::Status Read(
      uint64_t sample, std::span<ColumnValue> values,
      std::vector<std::shared_ptr<const void>>* owners) const = 0;
};

// It answers nothing by itself, so that a source that passes calls on to another
// one does not compile until it passes all of them on.
class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t num_samples() const = 0;
  // Returns a number that equal stored records share (sample i and i + files
  // under `repeat`): the key of caches.
  // kNoRecord: only FindRecord knows it.
  virtual uint64_t RecordOf(uint64_t sample) const = 0;
  static constexpr uint64_t kNoRecord = UINT64_MAX;
  // Returns the same number, but may wait for the sample's part of the index.
  // kUnavailable: the index is not available now.
  virtual absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const = 0;
  // Returns how many records the source has. Under `repeat` a record is several
  // samples, so there are fewer records than samples.
  virtual uint64_t num_records() const = 0;
  // Reads a record whole. Blocks on storage. Thread-safe. kNotFound,
  // kPermissionDenied: as storage returns. kFailedPrecondition: the file
  // changed after indexing (size or time; names both). kResourceExhausted: over
  // max_file_bytes. Errors of storage, and lack of memory, carry their fault
  // (core/cluster/fault.h); others are the reader's verdict on the record.
  virtual absl::StatusOr<StoredSample> Read(uint64_t sample) const = 0;
  // Reads several; each has a separate result, as Read's. Neighbours are read
  // by one request if storage is remote; if that is refused, each by itself.
  virtual std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const = 0;
  // Reads parts of records; each has a separate result, as Read's. A format that
  // cannot read less than a record gives the whole. kDataLoss: the record has
  // fewer elements.
  virtual std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const = 0;
  // Returns how many of the first of these, in their order in one file,
  // ReadMany reads by one request: 1 or more. Cheap; reads nothing.
  virtual size_t Nearby(std::span<const uint64_t> samples,
                        const NearbyLimits& limits) const = 0;
  // Returns the fingerprint that BuildIndex returned, computed from the opened
  // index.
  virtual const Digest& fingerprint() const = 0;
  // For messages: the file's path, or file and offset.
  virtual std::string Describe(uint64_t sample) const = 0;
  // Reads no record, but may wait for the sample's part of the index.
  // kFailedPrecondition: samples are not in storage. kUnavailable: the index is
  // not available now.
  virtual absl::StatusOr<RecordPlace> Locate(uint64_t sample) const = 0;
  // Lists at most `most` documents of a packed row, after the first `first` of
  // them. nullopt: samples are single records. Errors as Locate. kDataLoss: the
  // index does not fit itself.
  virtual absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t sample, uint64_t first, uint64_t most) const = 0;
  // Returns the value of a column that the index itself holds: "label", "width",
  // "height", "objects", or "length", which is the open axis of the only output.
  // Reads no record, but may wait for the sample's part of the index.
  // kUnimplemented: the index does not hold it. kUnavailable: as Locate.
  virtual absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                                uint64_t sample) const = 0;
  // Opens columns of the stored records. The source outlives them.
  // kUnimplemented: the format has no columns. kInvalidArgument: there is no
  // such column, or it has neither one number nor one text a record. Others:
  // storage's.
  virtual absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string> names) const = 0;
  // True if a read may wait for the network before it reaches the file.
  virtual bool waits() const = 0;
};

// FormatSource: a source of records of its own. It has the answers of a format
// whose samples are records, which are read one by one, and whose index holds
// nothing else. It is constant once its index is loaded.
class FormatSource : public Source {
 public:
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<uint64_t> FindRecord(uint64_t sample) const override {
    return RecordOf(sample);
  }
  uint64_t num_records() const override {
    return num_samples() == 0 ? 0 : RecordOf(num_samples() - 1) + 1;
  }
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const override;
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const override;
  size_t Nearby(std::span<const uint64_t>, const NearbyLimits&) const override {
    return 1;
  }
  absl::StatusOr<std::optional<RowDocuments>> DocumentsOf(
      uint64_t, uint64_t, uint64_t) const override {
    return std::nullopt;
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override;
  absl::StatusOr<std::unique_ptr<StoredColumns>> OpenColumns(
      std::span<const std::string> names) const override;
  const Digest& fingerprint() const override { return fingerprint_; }
  bool waits() const override { return false; }

 protected:
  FormatSource() = default;
  explicit FormatSource(const Digest& fingerprint)
      : fingerprint_(fingerprint) {}

  Digest fingerprint_{};  // set with the index
};

// The result of listing a dataset.
struct BuiltIndex {
  std::string blob;  // in the source's own format
  Digest fingerprint{};
  Digest content{};  // ContentHash; zero: a reader without storage
  ShardTable shards;
  uint64_t bytes = 0;
  std::vector<std::string> classes;
  std::string name;  // proposed, for people
  // The types of the reader's outputs; only for readers with
  // OperatorInfo::stored_types.
  std::vector<ValueType> types;
  // Runs of samples by class or label, at most kMaxGroups; empty: the samples
  // are not in such runs. No fingerprint depends on them by itself.
  std::vector<Group> groups;
  std::vector<PassedOver> passed_over;
};

// A format that can be read: one per reader node, each defined in a file of its
// folder.
struct SourceFormat {
  std::string_view op;  // "readers.image_folder"
  // These have the contracts of BuildIndex and OpenSource below.
  absl::StatusOr<BuiltIndex> (*build)(const Node& reader,
                                      const SourceLimits& limits);
  absl::StatusOr<std::unique_ptr<Source>> (*open)(const Node& reader,
                                                  std::string_view index_blob,
                                                  const SourceLimits& limits);
  // True if `build` puts its index into SourceLimits::blocks, where each part
  // is complete for its samples, and `open` opens the head with any one of
  // them.
  bool in_blocks = false;
};

// Lists the dataset that `reader` names. kNotFound: no such path, or no images
// in it (says what was looked for).
absl::StatusOr<BuiltIndex> BuildIndex(const Node& reader,
                                      const SourceLimits& limits);
// Does the same into `sink`, without a blob: in blocks with samples if the
// format supports that, otherwise cut anywhere.
absl::StatusOr<BuiltIndex> BuildIndexInto(const Node& reader,
                                          const SourceLimits& limits,
                                          IndexSink* sink);
// Opens the index that BuildIndex made. kDataLoss: a malformed index.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(const Node& reader,
                                                   std::string_view index_blob,
                                                   const SourceLimits& limits);

// True if reads of a dataset may wait for a network: a path among its reader's
// arguments, or the location of its first record, is remote, or on a network
// file system.
bool ReadsWait(const Node& reader, const Source& source);

// Returns the folder of the first path of a dataset's reader: the path itself,
// or what is before the first part of it that is a pattern; without secrets and
// without a slash at the end. Empty: the dataset is not in storage.
std::string FolderOf(const Node& reader);
// Returns the name that people know the storage of a dataset by: its folder, or
// "s3://bucket". Empty: it is not in storage.
std::string RootOf(const Node& reader);

}  // namespace leat::worker
