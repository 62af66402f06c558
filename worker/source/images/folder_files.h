// SPDX-License-Identifier: Apache-2.0
//
// The files of one directory while it is listed. A file takes 32 bytes and the
// characters of its name, so that the listing of 10^8 files fits in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace leat::worker {

// `name` and `identity` are valid until the FolderFiles is destroyed.
struct FolderFile {
  std::string_view name;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;    // of local files
  std::string_view identity;  // of others, as their storage returns it
};

// Thread-compatible: one thread at a time may use it.
class FolderFiles {
 public:
  // Copies the texts.
  void Add(const FolderFile& file);
  // Sorts by the names' bytes.
  void SortByName();

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  FolderFile operator[](size_t i) const;

 private:
  struct Entry {
    const char* text;  // the name, then the identity
    uint32_t name_bytes;
    uint32_t identity_bytes;
    uint64_t bytes;
    int64_t modified_ns;
  };
  // Returns room for `bytes` characters that does not move.
  char* Allocate(size_t bytes);

  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;  // in the newest chunk
  size_t free_bytes_ = 0;
  size_t text_bytes_ = 0;  // of all chunks
};

}  // namespace leat::worker
