// SPDX-License-Identifier: Apache-2.0
//
// BlockStore: the blocks of indexes, keyed by the SHA-256 of their bytes.
//
// A disk may return other bytes than it was given. A block is therefore
// compared with its name when a process reads or finds it for the first time,
// and whenever a caller doubts it. A damaged block is removed: the next listing
// finds it missing and uploads it again.
//
// A block is never changed, so reading needs no lock, and putting one twice
// does nothing. The store does not know which blocks are referenced: the caller
// of Collect says so. A block that was put or found recently stays also without
// a reference, so that an interrupted listing need not send it again.
//
// Thread-safe. No call waits for the disk with a lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/mutex.h"

namespace leat::server {

class BlockStore {
 public:
  virtual ~BlockStore() = default;

  // Stores a block, durable on return. REQUIRES: `bytes` hash to `name`.
  // kResourceExhausted: no room. Others name the file.
  virtual absl::Status Put(const Digest& name, std::string_view bytes,
                           WallTime now) = 0;
  // Returns OK if the block is there with this size, and keeps it for a while.
  // Errors: as Check.
  virtual absl::Status Find(const Digest& name, uint64_t bytes,
                            WallTime now) = 0;
  // Reads a block and compares it with its name; if this process has done so
  // before, only if `again`. kDataLoss: it was damaged or unreadable, and has
  // been removed. kNotFound: no such block. Others name the file, which stays.
  virtual absl::Status Check(const Digest& name, bool again) = 0;
  // Returns at most `most` bytes from `offset` on; none at the end of the
  // block. Does not compare. kNotFound: no such block.
  virtual absl::StatusOr<std::string> Read(const Digest& name, uint64_t offset,
                                           size_t most) = 0;
  // Removes the blocks that are not in `live` and were neither put nor found
  // since `before`. Returns how many.
  virtual absl::StatusOr<uint64_t> Collect(const std::set<Digest>& live,
                                           WallTime before) = 0;
};

// MemoryBlocks is for services that live as long as one script.
class MemoryBlocks final : public BlockStore {
 public:
  explicit MemoryBlocks(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  absl::Status Put(const Digest& name, std::string_view bytes,
                   WallTime now) override;
  absl::Status Find(const Digest& name, uint64_t bytes, WallTime now) override;
  absl::Status Check(const Digest& name, bool again) override;
  absl::StatusOr<std::string> Read(const Digest& name, uint64_t offset,
                                   size_t most) override;
  absl::StatusOr<uint64_t> Collect(const std::set<Digest>& live,
                                   WallTime before) override;

 private:
  struct Block {
    std::shared_ptr<const std::string> bytes;
    WallTime used_at;
  };
  const uint64_t max_bytes_;
  Mutex mu_;
  std::map<Digest, Block> blocks_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// FileBlocks keeps one file per block, DIR/<64 hexadecimal digits>. The file's
// modification time says when the block was put or found last. A file is
// written under a temporary name and renamed, so that a file with a block's
// name is complete.
class FileBlocks final : public BlockStore {
 public:
  // Creates the folder, and removes files that a process was writing when it
  // died. One process at a time: the caller holds a lock. Errors name the path.
  static absl::StatusOr<std::unique_ptr<FileBlocks>> Open(
      std::string directory);
  ~FileBlocks() override;

  absl::Status Put(const Digest& name, std::string_view bytes,
                   WallTime now) override;
  absl::Status Find(const Digest& name, uint64_t bytes, WallTime now) override;
  absl::Status Check(const Digest& name, bool again) override;
  absl::StatusOr<std::string> Read(const Digest& name, uint64_t offset,
                                   size_t most) override;
  absl::StatusOr<uint64_t> Collect(const std::set<Digest>& live,
                                   WallTime before) override;

 private:
  FileBlocks(std::string directory, int fd)
      : directory_(std::move(directory)), fd_(fd) {}
  std::string PathOf(const Digest& name) const;
  std::string TemporaryOf(const std::string& path);
  absl::Status Write(int fd, const std::string& path, std::string_view bytes,
                     WallTime now);
  absl::Status Remove(const std::string& path, uint64_t inode);
  void Note(const Digest& name, bool sound);

  const std::string directory_;
  const int fd_;  // of the folder
  std::atomic<uint64_t> next_temporary_ = 0;
  Mutex mu_;
  // The blocks that this process has written or compared with their names.
  std::set<Digest> sound_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::server
