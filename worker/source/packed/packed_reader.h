// SPDX-License-Identifier: Apache-2.0
//
// PackedReader: reads records from files that hold many.
//
// Large records are read by themselves. So are small ones, as long as requests
// are scattered. If a request follows closely upon the last one in its block,
// the block is read whole, and the records after it are copied from memory; a
// thread that wants one of them meanwhile waits for the block. So a pass in the
// stored order costs one read per block, and a random one reads only what was
// requested. Ranges that are asked for together and follow each other without a
// gap count as one record: the documents of a packed row do not cause a block to
// be read.
//
// Memory: kBlocks blocks at most, and kOpenFiles files, whose descriptors are
// the worker's (storage/base/open_file_budget.h). If a dataset has many readers,
// each holds less. Thread-safe; nothing is read while a lock is held.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/file_set.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// A range of a file, and the result of reading it.
struct PackedRead {
  size_t file = 0;
  ReadRange range;
  absl::Status status;
};

class PackedReader {
 public:
  static constexpr uint64_t kSmall = 16 << 10;  // and less: by blocks
  static constexpr uint64_t kLocalBlock = 256 << 10;
  static constexpr uint64_t kRemoteBlock = 2 << 20;
  static constexpr size_t kBlocks = 16;
  static constexpr size_t kOpenFiles = 128;

  // Limits of each reader if a dataset has many.
  static constexpr size_t kFewBlocks = 2;
  static constexpr size_t kFewOpenFiles = 8;

  // Both must outlive it. `files`: whole URIs, all added before the first Read.
  PackedReader(const FileSet* files, const Storage* storage, bool one_of_many)
      : files_(files),
        storage_(storage),
        blocks_(one_of_many ? kFewBlocks : kBlocks),
        open_files_(one_of_many ? kFewOpenFiles : kOpenFiles) {}

  // Fills `into` from `offset` of a file. Errors as Storage::Open and
  // StorageFile::ReadAt: they name the file, and are those of its own bytes, or
  // kTransient. Bytes that were read as part of a block are returned as they were
  // then, even if the file has changed since.
  absl::Status Read(size_t file, uint64_t offset,
                    std::span<std::byte> into) const;
  // Does the same for several. Reads of one file that follow each other in
  // `reads` and that no block serves are one request to storage, which looks at
  // the file's identity once, after their bytes. If that fails with another
  // fault than kTransient, each is read by itself, so that one's error is not
  // the others'.
  void ReadMany(std::span<PackedRead> reads) const;

 private:
  struct Block {
    size_t file = 0;
    uint64_t begin = 0;
    uint64_t size = 0;
    std::unique_ptr<std::byte[]> bytes;
  };
  // Blocks whose numbers agree in their last digits share one.
  struct Slot {
    Mutex mu;
    CondVar changed;
    std::shared_ptr<const Block> block ABSL_GUARDED_BY(mu);
    // The block that a thread reads now; SIZE_MAX: none.
    size_t coming_file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    uint64_t coming_begin ABSL_GUARDED_BY(mu) = 0;
    // The last block that could not be read, and is not tried again.
    size_t bad_file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    uint64_t bad_begin ABSL_GUARDED_BY(mu) = 0;
    // The end of the last read that the block did not serve.
    size_t last_file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    uint64_t last_end ABSL_GUARDED_BY(mu) = 0;
  };
  struct Opened {
    Mutex mu;
    size_t file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    std::shared_ptr<const StorageFile> stored ABSL_GUARDED_BY(mu);
  };

  absl::StatusOr<std::shared_ptr<const StorageFile>> Open(size_t file) const;
  absl::Status CheckBounds(size_t file, uint64_t offset, uint64_t size) const;
  absl::StatusOr<std::shared_ptr<const Block>> ReadBlock(
      size_t file, uint64_t begin, uint64_t block_bytes) const;
  absl::StatusOr<std::shared_ptr<const Block>> BlockOf(size_t file,
                                                       uint64_t offset,
                                                       uint64_t size) const;
  // Reads adjacent ranges of one file from a block; false: no block serves them.
  bool TryBlock(std::span<PackedRead> run) const;
  // Reads several of one file.
  void ReadOfFile(std::span<PackedRead> reads) const;
  absl::Status ReadAtOnce(std::span<PackedRead* const> reads) const;

  const FileSet* const files_;
  const Storage* const storage_;
  const size_t blocks_, open_files_;  // the used entries of the arrays
  mutable std::array<Slot, kBlocks> slots_;
  mutable std::array<Opened, kOpenFiles> opened_;
};

// Returns the sample, moved to its own memory if it uses less than half of the
// `held` bytes that were read for it. So caches, which count the fields' bytes,
// hold about that many.
StoredSample Trimmed(StoredSample sample, uint64_t held);

}  // namespace leat::worker
