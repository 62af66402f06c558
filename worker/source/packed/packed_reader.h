// SPDX-License-Identifier: Apache-2.0
//
// PackedReader: records out of files that hold many.
//
// Large records are read by themselves. Small ones are too, as long as they are
// asked for here and there; where one follows closely upon the last that was
// asked for in its block, the block is read whole, and those after it are
// copied out of memory; who wants one of them meanwhile waits for the block. So
// a pass in the stored order costs a read a block, and a random one reads
// nothing that was not asked for.
//
// Memory: kBlocks blocks at most. Files are kept open, kOpenFiles at most. One
// of many readers of a dataset holds less.
// Thread-safe; nothing is read while a lock is held.
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

// A range of a file, and how it went.
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

  // What one of many readers of a dataset holds.
  static constexpr size_t kFewBlocks = 2;
  static constexpr size_t kFewOpenFiles = 8;

  // Both must outlive it. `files`: whole URIs, all added before the first Read.
  PackedReader(const FileSet* files, const Storage* storage, bool one_of_many)
      : files_(files),
        storage_(storage),
        blocks_(one_of_many ? kFewBlocks : kBlocks),
        open_files_(one_of_many ? kFewOpenFiles : kOpenFiles) {}

  // Fills `into` from `offset` of a file. Errors as Storage::Open and
  // StoredFile::ReadAt: they name the file. What was read as part of a block
  // is given as it was then, even if the file has changed since.
  absl::Status Read(size_t file, uint64_t offset,
                    std::span<std::byte> into) const;
  // The same of several. Those of one file that follow each other in `reads`
  // and are not small are asked of storage together; if that is refused, each
  // by itself, so that what is wrong with one is not the others' error.
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
    // The block that a thread reads now; SIZE_MAX: none does.
    size_t coming_file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    uint64_t coming_begin ABSL_GUARDED_BY(mu) = 0;
    // Where the last read that the block did not serve ended.
    size_t last_file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    uint64_t last_end ABSL_GUARDED_BY(mu) = 0;
  };
  struct Opened {
    Mutex mu;
    size_t file ABSL_GUARDED_BY(mu) = SIZE_MAX;
    std::shared_ptr<const StoredFile> stored ABSL_GUARDED_BY(mu);
  };

  absl::StatusOr<std::shared_ptr<const StoredFile>> Open(size_t file) const;
  absl::Status CheckBounds(size_t file, uint64_t offset, uint64_t size) const;
  absl::StatusOr<std::shared_ptr<const Block>> ReadBlock(
      size_t file, uint64_t begin, uint64_t block_bytes) const;
  absl::StatusOr<std::shared_ptr<const Block>> BlockOf(size_t file,
                                                       uint64_t offset,
                                                       uint64_t size) const;
  absl::Status ReadAtOnce(std::span<const PackedRead> reads) const;

  const FileSet* const files_;
  const Storage* const storage_;
  const size_t blocks_, open_files_;  // of the arrays, those in use
  mutable std::array<Slot, kBlocks> slots_;
  mutable std::array<Opened, kOpenFiles> opened_;
};

// A sample that was read with `held` bytes in all, of which it uses less than
// half, moved to memory of its own: so caches, which count the fields' bytes,
// hold about that many.
StoredSample Trimmed(StoredSample sample, uint64_t held);

}  // namespace leat::worker
