// SPDX-License-Identifier: Apache-2.0
//
// A block begins at a multiple of its size and is kSmall bytes longer, so that
// a small record that begins in it ends in it.
#include "worker/source/packed/packed_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// True if storage did not answer: it would not for a part either.
bool IsAway(const absl::Status& status) {
  return FaultOf(status) == Fault::kTransient;
}

uint64_t RangeEnd(const ReadRange& range) {
  return range.offset + range.into.size();
}

// Returns how many of the first reads each begin where the one before ends: 1
// or more.
size_t AdjacentIn(std::span<const PackedRead> reads) {
  size_t count = 1;
  while (count < reads.size() &&
         reads[count].range.offset == RangeEnd(reads[count - 1].range))
    ++count;
  return count;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StorageFile>> PackedReader::Open(
    size_t file) const {
  Opened& opened = opened_[file % open_files_];
  {
    MutexLock lock(&opened.mu);
    if (opened.file == file) return opened.stored;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const StorageFile> stored,
                   files_->Open(*storage_, file));
  if (stored->size() != files_->size(file))
    return DataLoss("{}: the index says {} bytes, and the identity {}",
                    stored->name(), files_->size(file), stored->identity());
  std::shared_ptr<const StorageFile> before;  // closed without the lock
  MutexLock lock(&opened.mu);
  before = std::exchange(opened.stored, stored);
  opened.file = file;
  return stored;
}

absl::Status PackedReader::CheckBounds(size_t file, uint64_t offset,
                                       uint64_t size) const {
  const uint64_t file_bytes = files_->size(file);
  if (offset <= file_bytes && size <= file_bytes - offset)
    return absl::OkStatus();
  return OutOfRange("{}: want {} bytes at {}, the file has {}",
                    files_->Shown(file), size, offset, file_bytes);
}

absl::StatusOr<std::shared_ptr<const PackedReader::Block>>
PackedReader::ReadBlock(size_t file, uint64_t begin,
                        uint64_t block_bytes) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<const StorageFile> stored, Open(file));
  auto block = std::make_shared<Block>();
  block->file = file;
  block->begin = begin;
  block->size = std::min(block_bytes + kSmall, stored->size() - begin);
  block->bytes = std::make_unique_for_overwrite<std::byte[]>(block->size);
  RETURN_IF_ERROR(
      stored->ReadAt(begin, std::span(block->bytes.get(), block->size)));
  return block;
}

// Returns the block with the record at `offset`; nullptr: read the record by
// itself, also because another part of the block cannot be read. Errors: storage
// is away.
absl::StatusOr<std::shared_ptr<const PackedReader::Block>>
PackedReader::BlockOf(size_t file, uint64_t offset, uint64_t size) const {
  const uint64_t block_bytes =
      IsLocalUri(files_->name(file)) ? kLocalBlock : kRemoteBlock;
  const uint64_t number = offset / block_bytes;
  const uint64_t begin = number * block_bytes;
  Slot& slot = slots_[(file + number) % blocks_];
  {
    MutexLock lock(&slot.mu);
    bool waited = false;
    for (; slot.coming_file == file && slot.coming_begin == begin;
         waited = true)
      slot.changed.Wait(&slot.mu);
    if (slot.block != nullptr && slot.block->file == file &&
        slot.block->begin == begin)
      return slot.block;
    const bool follows = slot.last_file == file && slot.last_end >= begin &&
                         offset >= slot.last_end &&
                         offset - slot.last_end <= kSmall;
    slot.last_file = file;
    slot.last_end = offset + size;
    // A thread that waited for a block that did not come does not try again.
    if (!follows || waited || slot.coming_file != SIZE_MAX) return nullptr;
    if (slot.bad_file == file && slot.bad_begin == begin) return nullptr;
    slot.coming_file = file;
    slot.coming_begin = begin;
  }
  auto block = ReadBlock(file, begin, block_bytes);
  std::shared_ptr<const Block> before;  // freed without the lock
  MutexLock lock(&slot.mu);
  if (block.ok()) before = std::exchange(slot.block, *block);
  slot.coming_file = SIZE_MAX;
  slot.changed.NotifyAll();
  if (block.ok() || IsAway(block.status())) return block;
  slot.bad_file = file;
  slot.bad_begin = begin;
  return nullptr;
}

absl::Status PackedReader::Read(size_t file, uint64_t offset,
                                std::span<std::byte> into) const {
  RETURN_IF_ERROR(CheckBounds(file, offset, into.size()));
  if (into.size() <= kSmall) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Block> block,
                     BlockOf(file, offset, into.size()));
    if (block != nullptr) {
      std::memcpy(into.data(), block->bytes.get() + (offset - block->begin),
                  into.size());
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const StorageFile> stored, Open(file));
  return stored->ReadAt(offset, into);
}

absl::Status PackedReader::ReadAtOnce(
    std::span<PackedRead* const> reads) const {
  std::vector<ReadRange> ranges;
  for (const PackedRead* read : reads) {
    RETURN_IF_ERROR(
        CheckBounds(read->file, read->range.offset, read->range.into.size()));
    ranges.push_back(read->range);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const StorageFile> stored,
                   Open(reads.front()->file));
  return stored->ReadRanges(ranges);
}

bool PackedReader::TryBlock(std::span<PackedRead> run) const {
  const size_t file = run.front().file;
  const uint64_t begin = run.front().range.offset;
  const uint64_t size = RangeEnd(run.back().range) - begin;
  if (size > kSmall || !CheckBounds(file, begin, size).ok()) return false;
  const auto block = BlockOf(file, begin, size);
  if (!block.ok()) {
    for (PackedRead& read : run) read.status = block.status();
    return true;
  }
  if (*block == nullptr) return false;
  for (PackedRead& read : run)
    std::memcpy(read.range.into.data(),
                (*block)->bytes.get() + (read.range.offset - (*block)->begin),
                read.range.into.size());
  return true;
}

void PackedReader::ReadOfFile(std::span<PackedRead> reads) const {
  std::vector<PackedRead*> left;
  while (!reads.empty()) {
    const std::span<PackedRead> run = reads.first(AdjacentIn(reads));
    reads = reads.subspan(run.size());
    if (TryBlock(run)) continue;
    for (PackedRead& read : run) left.push_back(&read);
  }
  if (left.empty()) return;
  const absl::Status at_once = ReadAtOnce(left);
  for (PackedRead* read : left) {
    read->status = at_once;
    if (left.size() > 1 && !at_once.ok() && !IsAway(at_once))
      read->status = ReadAtOnce({&read, 1});
  }
}

void PackedReader::ReadMany(std::span<PackedRead> reads) const {
  while (!reads.empty()) {
    const auto end =
        std::find_if(reads.begin(), reads.end(), [&](const PackedRead& read) {
          return read.file != reads.front().file;
        });
    const auto count = static_cast<size_t>(end - reads.begin());
    ReadOfFile(reads.first(count));
    reads = reads.subspan(count);
  }
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
