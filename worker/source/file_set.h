// SPDX-License-Identifier: Apache-2.0
//
// FileSet: URIs, sizes and identities of many stored files, compactly (24 bytes
// and their texts per file). Thread-safe once filled; then only the list of
// local files seen changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/redaction.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

class FileSet {
 public:
  // Names are whole URIs if `root` is empty, otherwise paths below it.
  explicit FileSet(std::string root = {}) : root_(std::move(root)) {}

  // Sets the folder that identifies the dataset (Storage::Open), if it is not
  // the root. A file elsewhere is known by its own folder.
  void set_folder(std::string folder) { folder_ = std::move(folder); }
  // Errors: as CheckName.
  absl::Status Add(std::string_view name, uint64_t size,
                   std::string_view identity);
  size_t count() const { return files_.size(); }
  std::string_view name(size_t i) const;
  std::string_view identity(size_t i) const;
  uint64_t size(size_t i) const { return files_[i].size; }
  uint64_t total_bytes() const { return total_bytes_; }
  std::string Uri(size_t i) const;
  // Returns the URI for messages.
  std::string Shown(size_t i) const { return RedactedUri(Uri(i)); }
  // Opens the file if it is unchanged since its identity was taken. In a copy
  // that did not keep times (own_copy.h), its size must be the identity's, and
  // its time the one that this object saw first. Files of other folders must be
  // those that were listed. kFailedPrecondition: it has changed (names both).
  absl::StatusOr<std::shared_ptr<const StorageFile>> Open(
      const Storage& storage, size_t i) const;
  // Hashes names, sizes and identities from `begin`, in order.
  void UpdateHash(Sha256* hash, size_t begin = 0) const;
  void ShrinkToFit();

 private:
  struct File {
    uint64_t name_end = 0;  // in text_; begins where the one before it ends
    uint64_t end = 0;       // of the identity, which follows the name
    uint64_t size = 0;
  };
  // The time of the last write of each file of a copy, when it was opened
  // first.
  struct Seen {
    absl::once_flag once;
    std::unique_ptr<std::atomic<int64_t>[]> times;  // nullptr: not a copy
  };
  // REQUIRES: file `copied` is in a folder that --local-copy names.
  void LookWhetherCopy(const Storage& storage, size_t copied) const;
  uint64_t Begin(size_t i) const { return i == 0 ? 0 : files_[i - 1].end; }

  std::string root_;
  std::string folder_;
  std::string text_;
  std::vector<File> files_;
  uint64_t total_bytes_ = 0;
  std::unique_ptr<Seen> seen_ = std::make_unique<Seen>();
};

// kFailedPrecondition: `name`, which the message shows, is not UTF-8, and so
// cannot be sent.
absl::Status CheckName(std::string_view name);

// True for a relative path that stays below where it begins: not empty, no
// "..", not absolute, no byte 0.
bool StaysBelow(std::string_view name);

}  // namespace leat::worker
