// SPDX-License-Identifier: Apache-2.0
//
// FileSet: URIs, sizes and identities of many stored files, compactly (32 bytes
// and their texts a file). Thread-safe once filled, when nothing changes but
// which local files were seen.
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
  // Names are whole URIs where `root` is empty, else paths below it.
  explicit FileSet(std::string root = {}) : root_(std::move(root)) {}

  // What the dataset is known by (Storage::Open), if that is not the root.
  void set_folder(std::string folder) { folder_ = std::move(folder); }
  // As CheckName.
  absl::Status Add(std::string_view name, uint64_t size,
                   std::string_view identity);
  size_t count() const { return files_.size(); }
  std::string_view name(size_t i) const;
  std::string_view identity(size_t i) const;
  uint64_t size(size_t i) const { return files_[i].size; }
  uint64_t total_bytes() const { return total_bytes_; }
  std::string Uri(size_t i) const;
  // For messages.
  std::string Shown(size_t i) const { return RedactedUri(Uri(i)); }
  // The file as it was when its identity was taken, if it is that still. In a
  // copy that did not keep times (own_copy.h) its size is the identity's, and
  // its time the one that this object saw first. kFailedPrecondition: it has
  // changed (names both).
  absl::StatusOr<std::shared_ptr<const StoredFile>> Open(const Storage& storage,
                                                         size_t i) const;
  // Names, sizes and identities from `begin`, in order.
  void UpdateHash(Sha256* hash, size_t begin = 0) const;
  void ShrinkToFit();

 private:
  struct File {
    uint64_t name_end = 0;  // in text_; begins where the one before it ends
    uint64_t end = 0;       // of the identity, which follows the name
    uint64_t size = 0;
  };
  // When each file of a copy was last written, as it was opened first.
  struct Seen {
    absl::once_flag once;
    std::unique_ptr<std::atomic<int64_t>[]> times;  // nullptr: it is no copy
  };
  void LookWhetherCopy(const Storage& storage) const;
  uint64_t Begin(size_t i) const { return i == 0 ? 0 : files_[i - 1].end; }

  std::string root_;
  std::string folder_;
  std::string text_;
  std::vector<File> files_;
  uint64_t total_bytes_ = 0;
  std::unique_ptr<Seen> seen_ = std::make_unique<Seen>();
};

// kFailedPrecondition: `name`, which it shows, is not UTF-8, and so could not
// travel.
absl::Status CheckName(std::string_view name);

// A relative path that stays below where it begins: not empty, no "..", not
// absolute, no byte 0.
bool StaysBelow(std::string_view name);

}  // namespace leat::worker
