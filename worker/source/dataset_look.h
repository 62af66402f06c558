// SPDX-License-Identifier: Apache-2.0
//
// DatasetLook: a record of what a listing saw of storage, kept beside the
// listing, so that a later look can check in a second whether the listing is
// still correct.
//
//   a local directory   when it changed, and for the dataset's root its path
//                       without symbolic links
//   a file or object    its identity: size and time, or size and ETag
//   a list of text      its SHA-256, since a list is often rewritten within
//                       one tick of the file system's clock
//   a remote prefix     a hash of all names and identities below it
//   nothing             that there was nothing, where a file may appear
//
// A look holds up to kMaxFiles files and kMaxFolders directories, those whose
// URIs have the lowest hashes. If there are more, it misses only a file of the
// same name that was written in place; reading that file fails by its identity.
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
  // The sum of all entries' addresses, of up to 4 KiB each.
  static constexpr uint64_t kMaxAddressBytes = 160 << 20;

  struct Entry {
    SeenKind kind = SeenKind::kFile;
    std::string uri;
    // The state, as text; equal text means equal state. Of a list, a directory
    // or a prefix that changed while it was listed it is "", which is none.
    std::string seen;
    // The directory had changed just before it was listed. It may have changed
    // once more in the same tick of the file system's clock.
    bool young = false;
  };

  std::vector<Entry> entries;
  uint64_t total = 0;  // entries; these are some of them, or all

  // Formatted as stored.v1.DatasetLook.
  std::string Serialize() const;
  // kDataLoss: malformed, or over kMaxAddressBytes.
  static absl::StatusOr<DatasetLook> Parse(std::string_view bytes);
};

struct LookOptions {
  int threads = 16;
  // Entries that have not been looked at by then are left out. A system call
  // that hangs in a network file system is waited for.
  Duration patience = std::chrono::seconds(1);
  size_t max_changes = 4;
};

struct Looked {
  uint64_t entries = 0;              // that were looked at
  bool unsure = false;               // a young entry looks unchanged
  std::vector<std::string> changes;  // for people: "list.txt: it is gone"
};

// Compares the present state with what the listing saw. An entry that storage
// refuses to show counts as changed, so that the listing that follows reports
// why.
Looked LookAgain(const DatasetLook& look, const Storage& storage,
                 const LookOptions& options);

// Return Entry::seen for directories and prefixes. For files it is the
// identity; for a file of a copy (Storage::IsCopied) the identity without the
// time.
std::string SeenFolder(const StoredFolder& folder);
std::string SeenCopiedFolder();  // of a copy, whose times differ
std::string SeenPrefix(std::span<const StoredObject> objects);

}  // namespace leat::worker
