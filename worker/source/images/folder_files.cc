// SPDX-License-Identifier: Apache-2.0
#include "worker/source/images/folder_files.h"

#include <algorithm>

namespace leat::worker {
namespace {

// A chunk is as large as all before it, within these bounds: neither many small
// directories nor one large one waste memory.
constexpr size_t kMinChunkBytes = 256;
constexpr size_t kMaxChunkBytes = 1 << 20;

}  // namespace

char* FolderFiles::Allocate(size_t bytes) {
  if (bytes > free_bytes_) {
    free_bytes_ = std::max(
        bytes, std::clamp(text_bytes_, kMinChunkBytes, kMaxChunkBytes));
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(free_bytes_));
    free_ = chunks_.back().get();
    text_bytes_ += free_bytes_;
  }
  char* const room = free_;
  free_ += bytes;
  free_bytes_ -= bytes;
  return room;
}

void FolderFiles::Add(const FolderFile& file) {
  char* const text = Allocate(file.name.size() + file.identity.size());
  std::copy(file.identity.begin(), file.identity.end(),
            std::copy(file.name.begin(), file.name.end(), text));
  entries_.push_back(
      {.text = text,
       .name_bytes = static_cast<uint32_t>(file.name.size()),
       .identity_bytes = static_cast<uint32_t>(file.identity.size()),
       .bytes = file.bytes,
       .modified_ns = file.modified_ns});
}

void FolderFiles::SortByName() {
  const auto name = [](const Entry& entry) {
    return std::string_view(entry.text, entry.name_bytes);
  };
  std::sort(entries_.begin(), entries_.end(),
            [&](const Entry& a, const Entry& b) { return name(a) < name(b); });
}

FolderFile FolderFiles::operator[](size_t i) const {
  const Entry& entry = entries_[i];
  return {.name = {entry.text, entry.name_bytes},
          .bytes = entry.bytes,
          .modified_ns = entry.modified_ns,
          .identity = {entry.text + entry.name_bytes, entry.identity_bytes}};
}

}  // namespace leat::worker
