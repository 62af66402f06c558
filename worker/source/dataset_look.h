// SPDX-License-Identifier: Apache-2.0
//
// DatasetLook: what a listing saw of storage, kept beside it, so that a later
// look tells in a second whether the listing still says what is there.
//
//   a local directory   when it changed, and of the dataset's root its path
//                       without symbolic links
//   a file or object    its identity: size and time, or size and ETag
//   a list of text      its SHA-256, since a list is often written anew within
//                       one tick of the file system's clock
//   a remote prefix     a hash of all names and identities below it
//   nothing             that there was nothing, where a file may come to be
//
// Of many files and directories a look holds kMaxFiles and kMaxFolders, those
// whose URIs have the lowest hashes. What it misses then is a file of the same
// name that was written in place; reading it fails by its identity.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// The values are those of stored.v1.LookEntry.
enum class SeenKind : uint8_t {
  kFolder = 1,
  kFile = 2,
  kText = 3,
  kPrefix = 4,
  kNothing = 5
};

struct DatasetLook {
  static constexpr size_t kMaxFiles = 16'384;
  static constexpr size_t kMaxFolders = 16'384;
  static constexpr size_t kMaxOthers = 4'096;

  struct Entry {
    SeenKind kind = SeenKind::kFile;
    std::string uri;
    std::string seen;  // what was seen, as text; equal text, equal state
    // A directory had changed just before it was listed. It may have changed
    // once more in the same tick of the file system's clock.
    bool young = false;
  };

  std::vector<Entry> entries;
  uint64_t total = 0;  // of which these are some, or all

  // stored.v1.DatasetLook.
  std::string Serialize() const;
  // kDataLoss: malformed.
  static absl::StatusOr<DatasetLook> Parse(std::string_view bytes);
};

struct LookOptions {
  int threads = 16;
  // What is not looked at by then is left out. A call of the system that hangs
  // in a network's file system is waited for.
  Duration patience = std::chrono::seconds(1);
  size_t max_changes = 4;
};

struct Looked {
  uint64_t entries = 0;              // that were looked at
  bool unsure = false;               // one that was young looks as it did
  std::vector<std::string> changes;  // for people: "list.txt: it is gone"
};

// Compares what is there with what the listing saw. One that storage refuses to
// show counts as changed, so that the listing that follows says why.
Looked LookAgain(const DatasetLook& look, const Storage& storage,
                 const LookOptions& options);

// What Entry::seen says of directories and prefixes. Of files it is the
// identity; of a file of a copy (Storage::IsCopied) that without the time.
std::string SeenFolder(const StoredFolder& folder);
std::string SeenCopiedFolder();  // of a copy, whose times are its own
std::string SeenPrefix(std::span<const StoredObject> objects);

}  // namespace leat::worker
