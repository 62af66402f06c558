// SPDX-License-Identifier: Apache-2.0
//
// BlockStore: bytes by their SHA-256: the blocks of indexes.
//
// A disk may give other bytes than it was given, so a block is compared with
// its name when it is read or found for the first time in the life of a
// process, and whenever somebody doubts it. One that is damaged is removed: a
// listing that finds it missing brings it again.
//
// A block is never changed, so reading needs no lock, and putting one twice
// does nothing. Who refers to which block is not known here: Collect is told.
// A block that was put or found lately stays also without a reference, so that
// a listing that broke off need not send it again.
//
// Thread-safe. Nothing waits for the disk with a lock held.
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

  // Durable on return. REQUIRES: `bytes` hash to `name`. kResourceExhausted: no
  // room. Others name the file.
  virtual absl::Status Put(const Digest& name, std::string_view bytes,
                           WallTime now) = 0;
  // OK: it is there with so many bytes, and stays for a while. Errors: as
  // Check.
  virtual absl::Status Find(const Digest& name, uint64_t bytes,
                            WallTime now) = 0;
  // Compares a block with its name, for which all of it is read; `again` also
  // if this process has done so. kDataLoss: it was damaged, or the disk fails
  // to give it, and is removed. kNotFound: no such block. Others name the file,
  // which stays.
  virtual absl::Status Check(const Digest& name, bool again) = 0;
  // At most `most` bytes from `offset` on; none: its end. Compares nothing.
  // kNotFound: no such block.
  virtual absl::StatusOr<std::string> Read(const Digest& name, uint64_t offset,
                                           size_t most) = 0;
  // Removes the blocks that `live` lacks and that were neither put nor found
  // since `before`. Returns how many.
  virtual absl::StatusOr<uint64_t> Collect(const std::set<Digest>& live,
                                           WallTime before) = 0;
};

// For services that live as long as one script.
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

// One file a block, DIR/<64 hexadecimal digits>. Its time of change says when
// it was put or found last. A file is written under another name and renamed,
// so that one of a block's name is whole.
class FileBlocks final : public BlockStore {
 public:
  // Makes the folder, and removes what was being written when a process died.
  // One process at a time: the caller holds a lock. Errors name the path.
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
  // Those that were compared with their names, or written, by this process.
  std::set<Digest> sound_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::server
