// SPDX-License-Identifier: Apache-2.0
//
// A block begins at a multiple of its size and is kSmall bytes longer, so that
// a small record that begins in it ends in it.
#include "worker/source/packed_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::worker {

absl::StatusOr<std::shared_ptr<const StoredFile>> PackedReader::Open(
    size_t file) const {
  Opened& opened = opened_[file % kOpenFiles];
  {
    MutexLock lock(&opened.mu);
    if (opened.file == file) return opened.stored;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const StoredFile> stored,
                   files_->Open(*storage_, file));
  if (stored->size() != files_->size(file))
    return DataLoss("{}: the index says {} bytes, and the identity {}",
                    stored->name(), files_->size(file), stored->identity());
  std::shared_ptr<const StoredFile> before;  // closed without the lock
  MutexLock lock(&opened.mu);
  before = std::exchange(opened.stored, stored);
  opened.file = file;
  return stored;
}

absl::Status PackedReader::ReadBlock(size_t file, uint64_t begin,
                                     uint64_t block_bytes, Slot* slot,
                                     uint64_t offset,
                                     std::span<std::byte> into) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<const StoredFile> stored, Open(file));
  auto block = std::make_shared<Block>();
  block->file = file;
  block->begin = begin;
  block->size = std::min(block_bytes + kSmall, stored->size() - begin);
  block->bytes = std::make_unique_for_overwrite<std::byte[]>(block->size);
  RETURN_IF_ERROR(
      stored->ReadAt(begin, std::span(block->bytes.get(), block->size)));
  std::memcpy(into.data(), block->bytes.get() + (offset - begin), into.size());
  std::shared_ptr<const Block> before;
  MutexLock lock(&slot->mu);
  before = std::exchange(slot->block, std::move(block));
  return absl::OkStatus();
}

absl::Status PackedReader::Read(size_t file, uint64_t offset,
                                std::span<std::byte> into) const {
  const uint64_t file_bytes = files_->size(file);
  if (offset > file_bytes || into.size() > file_bytes - offset)
    return OutOfRange("{}: want {} bytes at {}, the file has {}",
                      files_->Shown(file), into.size(), offset, file_bytes);
  if (into.size() <= kSmall) {
    const uint64_t block_bytes =
        IsLocalUri(files_->name(file)) ? kLocalBlock : kRemoteBlock;
    const uint64_t number = offset / block_bytes;
    const uint64_t begin = number * block_bytes;
    Slot& slot = slots_[(file + number) % kBlocks];
    std::shared_ptr<const Block> block;
    bool follows = false;
    {
      MutexLock lock(&slot.mu);
      if (slot.block != nullptr && slot.block->file == file &&
          slot.block->begin == begin) {
        block = slot.block;
      } else {
        follows = slot.last_file == file && slot.last_end >= begin &&
                  offset >= slot.last_end && offset - slot.last_end <= kSmall;
        slot.last_file = file;
        slot.last_end = offset + into.size();
      }
    }
    if (block != nullptr) {
      std::memcpy(into.data(), block->bytes.get() + (offset - begin),
                  into.size());
      return absl::OkStatus();
    }
    if (follows)
      return ReadBlock(file, begin, block_bytes, &slot, offset, into);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const StoredFile> stored, Open(file));
  return stored->ReadAt(offset, into);
}

StoredSample Trimmed(StoredSample sample, uint64_t held) {
  const size_t bytes = sample.bytes();
  if (bytes >= held / 2) return sample;
  auto own = std::make_shared_for_overwrite<std::byte[]>(bytes);
  std::byte* at = own.get();
  for (StoredField& field : sample.fields) {
    if (field.bytes.empty()) continue;
    std::memcpy(at, field.bytes.data(), field.bytes.size());
    field.bytes = std::span<const std::byte>(at, field.bytes.size());
    at += field.bytes.size();
  }
  sample.owner = std::move(own);
  return sample;
}

}  // namespace leat::worker
