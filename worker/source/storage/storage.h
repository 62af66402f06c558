// SPDX-License-Identifier: Apache-2.0
//
// Storage: a dataset's bytes by URI, for every reader.
//
//   plain paths, file:///path        pread
//   http://, https://                ranges
//   s3://bucket/key                  ranges, signed (signature version 4)
//   gs://bucket/key                  the same by Google's S3-compatible API
//
// A file is opened with an identity (size and time, or size and ETag) and
// remains that object: if the object under the URI changes, reads fail and name
// both identities; bytes of two versions are never mixed.
//
// Local files are not mapped into memory: truncating a mapped file kills the
// process that reads it (SIGBUS), and so does a page that the disk cannot
// deliver, while pread returns an error that names the file. Measured in the
// page cache, pread costs 0.8 us per call more than memcpy from a mapping; from
// 16 KiB per read that is a fifth or less. So read small records many at a
// time: one ReadAt over their neighbourhood, or ReadRanges.
//
// Readers call this from many threads; each call blocks until it is done, has
// failed permanently, or its deadline is over (StorageConfig). Stop ends calls
// that wait for a network.
//
// Every error says where the cause lies (core/cluster/fault.h, fault_rules.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/base/counters.h"
#include "worker/source/storage/base/environment.h"
#include "worker/source/storage/base/storage_file.h"
#include "worker/source/storage/base/uri.h"

namespace leat::worker {

// Observes a listing's requests to storage, and their results. Thread-safe.
class StorageWatcher {
 public:
  virtual ~StorageWatcher() = default;
  // A local directory, as it was before its entries were read.
  virtual void SawFolder(const std::string& uri,
                         const StoredFolder& folder) = 0;
  // An object that was examined, opened, or found in a local directory.
  virtual void SawFile(const std::string& uri, std::string_view identity) = 0;
  // Stat did not find anything there.
  virtual void SawNothing(const std::string& uri) = 0;
  // All objects below a remote prefix, by name.
  virtual void SawPrefix(const std::string& uri,
                         std::span<const StoredObject> objects) = 0;
  // A text file that the listing read whole: SHA-256 of its bytes.
  virtual void SawText(const std::string& uri, const Digest& sha256) = 0;
};

// Replaces the outside world in tests. Unset members mean the real one.
class StorageClock;
class DatasetUses;
struct StorageHooks {
  StorageClock* clock = nullptr;     // must outlive all files
  std::function<uint64_t()> random;  // 64 uniform bits; thread-safe
  GetEnv getenv;
  // Must outlive all files. nullptr: no dataset is in use.
  const DatasetUses* uses = nullptr;
};

class AllowedReads;
class DiskCache;
class DiskDataset;
class OpenFileBudget;
class StorageBackend;

// One per process. Thread-safe.
class Storage {
 public:
  // kInvalidArgument: a bound of `config` that is not in its range (names it).
  // Others: as AllowedReads::Create and DiskCache::Open.
  static absl::StatusOr<std::unique_ptr<Storage>> Create(
      const StorageConfig& config, StorageHooks hooks = {});
  ~Storage();

  // Returns the same storage for a dataset's readers: the disk cache keeps what
  // they read as that dataset's. `key`: its key in DatasetUses. The result may
  // outlive this object, and its files may outlive it.
  std::unique_ptr<Storage> ForDataset(const Digest& key,
                                      const std::string& name) const;

  // Returns the same storage, which reports to `watcher` what Open, Stat and
  // List see. Both must outlive it.
  std::unique_ptr<Storage> Watched(StorageWatcher* watcher) const;
  // nullptr: no watcher.
  StorageWatcher* watcher() const { return watcher_; }

  // Opens for reading. With `expected` (an identity from List or Stat) it
  // returns kFailedPrecondition, naming both, if the object is another one now;
  // for remote storage the first read checks this, without a request here.
  // Without it, the present object is taken. kNotFound, kPermissionDenied, ...
  // as StorageFile::ReadAt; kInvalidArgument: no such scheme, or a malformed
  // URI. For a local file an identity of its size alone (WithoutTime) is
  // accepted too. `folder`: identifies the dataset of a local file
  // (IndexedFileError). kPermissionDenied, also from Stat and List: outside of
  // StorageConfig::allow.
  absl::StatusOr<std::shared_ptr<const StorageFile>> Open(
      std::string_view uri, std::string_view expected = {},
      const std::string& folder = {}) const;
  // kFailedPrecondition: a directory.
  absl::StatusOr<StoredObject> Stat(std::string_view uri) const;
  // Examines a local directory. kFailedPrecondition: something else. Others as
  // Stat.
  absl::StatusOr<StoredFolder> StatFolder(std::string_view uri) const;
  // Lists every file below the directory or key prefix `uri` (with or without a
  // slash at its end), at any depth, ordered by the bytes of their names. Links
  // to files and directories are followed; a directory that is its own ancestor
  // is skipped, and so is everything that is neither file nor directory.
  // kNotFound: no such directory, or no keys. kResourceExhausted: over
  // max_list_entries. kUnimplemented: http has no listing. kCancelled:
  // `*cancelled` became true.
  absl::StatusOr<std::vector<StoredObject>> List(
      std::string_view uri, const std::atomic<bool>* cancelled = nullptr) const;

  // Returns this machine's path for the jobs' `path`: by
  // StorageConfig::local_copies, where the longest folder counts. All of the
  // above use it.
  std::string LocalPath(std::string path) const;
  // True if `uri` is a local one, in a folder that local_copies names.
  bool IsCopied(std::string_view uri) const;

  // For callers that open local files themselves.
  const AllowedReads& allowed() const;
  // For callers that keep more than ranges there; nullptr: there is none.
  std::shared_ptr<DiskCache> disk() const;
  // For callers that keep local files open themselves.
  std::shared_ptr<OpenFileBudget> open_files() const;

  StorageCounters counters() const;

  // Ends calls that wait for a network, and later ones, with kCancelled.
  // Thread-safe; idempotent. Local reads continue: the system cannot end them.
  void Stop() const;

 private:
  Storage(std::shared_ptr<StorageBackend> backend,
          std::shared_ptr<DiskDataset> dataset);
  absl::StatusOr<StoredObject> LookAt(std::string_view uri) const;

  const std::shared_ptr<StorageBackend> backend_;
  const std::shared_ptr<DiskDataset> dataset_;  // nullptr: not known
  StorageWatcher* watcher_ = nullptr;
};

// True if reads of it may wait for a network: a remote URI, or a path on a
// network file system (NFS, SMB, Ceph, Lustre, FUSE and the like).
bool IsNetworkUri(std::string_view uri);

}  // namespace leat::worker
