// SPDX-License-Identifier: Apache-2.0
//
// ContentHash: a hash of a dataset's records that does not depend on where they
// are stored and when they were written (DatasetInfo::content), so that a copy
// has the hash of the original.
//
//   places /data/train          /mnt/nvme/train
//   file   /data/train/a/1.tar  /mnt/nvme/train/a/1.tar
//   name   a/1.tar              a/1.tar
//
// A file's name is the part after the longest of the dataset's places that
// contains the file. A file that is itself a place is named by the part after
// the folder that all places have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/hash.h"
#include "worker/source/source.h"

namespace leat::worker {

class ContentHash {
 public:
  // `format` names the meaning of the added values. `places`: the reader's
  // paths, in their order; a pattern stands for the folder before its first * ?
  // [ or {.
  ContentHash(std::string_view format, const std::vector<std::string>& places);

  ContentHash& AddFile(std::string_view uri, uint64_t size);
  ContentHash& AddNumber(uint64_t value) {
    hash_.UpdateU64(value);
    return *this;
  }
  ContentHash& AddText(std::string_view text) {
    hash_.UpdateField(text);
    return *this;
  }
  ContentHash& AddDigest(const Digest& digest) { return AddNumbers(digest); }
  // Adds numbers as they are in memory, little-endian.
  template <class Numbers>
  ContentHash& AddNumbers(const Numbers& numbers) {
    const auto bytes = std::as_bytes(
        std::span(numbers.data(), static_cast<size_t>(numbers.size())));
    return AddText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  // Adds the shards, classes and types of `index`, and sets its content.
  void Finish(BuiltIndex* index);

 private:
  std::string_view NameOf(std::string_view uri) const;

  Sha256 hash_;
  absl::flat_hash_set<std::string> folders_;  // with a slash at the end
  std::string common_;  // with a slash at the end, or empty
};

}  // namespace leat::worker
