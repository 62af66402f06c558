// SPDX-License-Identifier: Apache-2.0
//
// ContentHash: what a dataset's records are, wherever they lie and whenever
// they were written (DatasetInfo::content), so that a copy has the hash of the
// original.
//
//   places /data/train          /mnt/nvme/train
//   file   /data/train/a/1.tar  /mnt/nvme/train/a/1.tar
//   name   a/1.tar              a/1.tar
//
// A file's name is what follows the longest of the dataset's places that it
// lies below. One that is a place itself is named by what follows the folder
// that all places have in common.
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
  // `format`: names the meaning of what is added. `places`: the reader's paths,
  // in their order; patterns stand for the folder before their first * ? or [.
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
  // Adds numbers as they lie in memory, little-endian.
  template <class Numbers>
  ContentHash& AddNumbers(const Numbers& numbers) {
    const auto bytes = std::as_bytes(
        std::span(numbers.data(), static_cast<size_t>(numbers.size())));
    return AddText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  // Adds what `index` says of shards, classes and types, and sets its content.
  void Finish(BuiltIndex* index);

 private:
  std::string_view NameOf(std::string_view uri) const;

  Sha256 hash_;
  absl::flat_hash_set<std::string> folders_;  // with a slash at the end
  std::string common_;  // with a slash at the end, or empty
};

}  // namespace leat::worker
