// SPDX-License-Identifier: Apache-2.0
//
// SqliteStore: a Store in DIR/leat.db (write-ahead log, synchronous=FULL).
//
// SQLite's own checks do not notice everything: one flipped byte in the
// write-ahead log silently drops every later transaction. Each event therefore
// carries its number, a CRC and a SHA-256 over its predecessor's hash and
// itself, and the last number is written to a high-water mark outside the
// database (server/store/state_directory.h) before a call is answered. Opening
// verifies all of it.
//
// Tables, format 1:
//   meta    one row: format, store_id, base_seq, base_hash, checksum; the chain
//           starts at base
//   events  seq, crc (CRC-32C of record), hash, record (leat.stored.v1.Event)
//
// The blocks of indexes are files in DIR/blocks.
//
// Thread-safe; writes are serialised.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/store/sqlite.h"
#include "server/store/state_directory.h"
#include "server/store/store.h"

namespace leat::server {

struct SqliteOptions {
  // Opens a damaged store with the events that can still be read. The damaged
  // files are kept beside it. If events may have been lost, all access tokens
  // are dropped, because one of them may have been revoked.
  bool accept_data_loss = false;
  // Bound on the database's size; 0: the disk's.
  uint64_t max_bytes = 0;
};

class SqliteStore : public Store {
 public:
  // kDataLoss: damaged, or behind its high-water mark (names the file and what
  // can be done). kFailedPrecondition: in use by another process, or of a newer
  // format. Others: see StateDirectory::Open and Database::Open.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(
      const std::string& directory, const SqliteOptions& options);

  std::string description() const override;
  bool durable() const override { return true; }
  std::string losses() const override { return losses_; }
  uint64_t sequence() const override { return sequence_; }
  absl::Status Replay(
      const std::function<absl::Status(const Event&)>& apply) override;
  absl::Status Append(const Event& event) override;
  absl::Status Compact(std::span<const Event> live) override;
  BlockStore& blocks() override { return *blocks_; }

 private:
  explicit SqliteStore(StateDirectory directory);

  absl::Status OpenFile(const SqliteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status OpenDatabase(const SqliteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CreateTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WriteMeta(const HighWater& base)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReadMeta() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Verify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckStructure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckHighWater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartAgain(const SqliteOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Insert(const Event& event, HighWater* head)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Commit(const HighWater& head) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string file_;
  std::string losses_;                  // set by Open
  std::unique_ptr<FileBlocks> blocks_;  // set by Open; synchronises itself

  mutable Mutex mu_;
  StateDirectory directory_ ABSL_GUARDED_BY(mu_);
  std::optional<Database> database_ ABSL_GUARDED_BY(mu_);
  HighWater head_ ABSL_GUARDED_BY(mu_);  // the last event
  std::atomic<uint64_t> sequence_ = 0;   // head_'s; read without a lock
  HighWater base_ ABSL_GUARDED_BY(mu_);  // the event before the first one kept
  std::vector<Event> loaded_ ABSL_GUARDED_BY(mu_);  // until Replay
  uint64_t num_events_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // not OK: failed permanently
};

}  // namespace leat::server
