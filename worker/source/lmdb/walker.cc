// SPDX-License-Identifier: Apache-2.0
//
// The format (lmdb 0.9, mdb.c). A page has a header of 16 bytes:
//
//   0 number (8)   8 unused (2)   10 flags (2)   12 lower (2)   14 upper (2)
//
// or, for the first of several pages of one large value, their count (4) at 12.
// Pages 0 and 1 are meta pages; the one with the later transaction counts:
//
//   16 magic (4)   20 version (4)   24 address (8)   32 map's size (8)
//   40 record of the free list (48)   88 record of the database (48)
//   136 last page (8)   144 transaction (8)
//
// and a database's record:
//
//   0 page size, in the free list's (4)   4 flags (2)   6 depth (2)
//   8 branch, leaf, overflow pages (8 each)   32 entries (8)   40 root (8)
//
// In a branch or leaf page, 2-byte positions of nodes follow the header, up to
// lower; nodes are from upper on, in any order:
//
//   0 low (2)   2 high (2)   4 flags (2)   6 key's size (2)   8 key   data
//
// Low, high and (in branches) flags are a child's number; in leaves, low and
// high are the data's size. The data of a node with flag 1 is the number of the
// first overflow page, where the value follows the header.
#include "worker/source/lmdb/walker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "core/status.h"
#include "worker/source/record_file.h"

namespace leat::worker {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kHeader = 16, kNode = 8, kMetaEnd = 152;
constexpr uint32_t kLmdbMagic = 0xbeefc0de, kSwappedMagic = 0xdec0efbe;
constexpr uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8;
// Kinds of pages; other flags have no meaning for committed ones.
constexpr uint16_t kKinds = 0x6f;
constexpr uint16_t kBigData = 1;
constexpr uint16_t kKnownDatabaseFlags = 0x02;  // keys compared backwards
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr int kMaxDepth = 32;  // liblmdb's own bound
constexpr uint64_t kMinPage = 256, kMaxPage = 65536;

template <class T>
T Number(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Meta {
  uint64_t page_bytes = 0;
  uint64_t transaction = 0;
  uint64_t root = 0;
  uint64_t entries = 0;
  int depth = 0;
  uint16_t flags = 0;
};

absl::StatusOr<Meta> ReadMeta(const StorageFile& file, uint64_t offset) {
  std::array<std::byte, kMetaEnd> page;
  if (offset > file.size() || file.size() - offset < page.size())
    return DataLoss("{}: {} bytes end in the meta page at {}", file.name(),
                    file.size(), offset);
  RETURN_IF_ERROR(file.ReadAt(offset, page));
  const uint32_t magic = Number<uint32_t>(page, kHeader);
  if (magic == kSwappedMagic)
    return FailedPrecondition(
        "{}: LMDB of a big-endian machine, want little-endian", file.name());
  if (magic != kLmdbMagic && Number<uint32_t>(page, kHeader - 4) == kLmdbMagic)
    return FailedPrecondition("{}: LMDB of a 32-bit machine, want 64-bit",
                              file.name());
  if (magic != kLmdbMagic || (Number<uint16_t>(page, 10) & kKinds) != kMeta)
    return DataLoss("{}: no LMDB meta page at {}", file.name(), offset);
  if (const uint32_t version = Number<uint32_t>(page, 20); version != 1)
    return FailedPrecondition("{}: LMDB of version {}, want 1", file.name(),
                              version);
  const auto database = std::span(page).subspan(88, 48);
  Meta meta{.page_bytes = Number<uint32_t>(page, 40),
            .transaction = Number<uint64_t>(page, 144),
            .root = Number<uint64_t>(database, 40),
            .entries = Number<uint64_t>(database, 32),
            .depth = Number<uint16_t>(database, 6),
            .flags = Number<uint16_t>(database, 4)};
  if (meta.page_bytes < kMinPage || meta.page_bytes > kMaxPage ||
      !std::has_single_bit(meta.page_bytes))
    return DataLoss("{}: pages of {} bytes, want a power of 2 from {} to {}",
                    file.name(), meta.page_bytes, kMinPage, kMaxPage);
  return meta;
}

absl::StatusOr<Meta> NewestMeta(const StorageFile& file) {
  ASSIGN_OR_RETURN(const Meta first, ReadMeta(file, 0));
  ASSIGN_OR_RETURN(const Meta second, ReadMeta(file, first.page_bytes));
  if (first.page_bytes != second.page_bytes)
    return DataLoss("{}: meta pages of {} and of {} bytes", file.name(),
                    first.page_bytes, second.page_bytes);
  return first.transaction < second.transaction ? second : first;
}

// A branch or leaf page.
struct Page {
  uint64_t number = 0;
  std::vector<std::byte> bytes;
  size_t nodes = 0;
  size_t next = 0;  // node

  // REQUIRES: i < nodes.
  size_t NodeAt(size_t i) const {
    return Number<uint16_t>(bytes, kHeader + 2 * i);
  }
};

class Walker {
 public:
  Walker(const StorageFile& file, const Meta& meta, const SourceLimits& limits)
      : file_(file),
        meta_(meta),
        limits_(limits),
        pages_(file.size() / meta.page_bytes) {}

  absl::StatusOr<std::vector<LmdbValue>> Run() {
    RETURN_IF_ERROR(CheckDatabase());
    if (meta_.root != kNoPage) RETURN_IF_ERROR(Walk());
    if (values_.size() != meta_.entries)
      return DataLoss("{}: {} values found, the meta page says {}",
                      file_.name(), values_.size(), meta_.entries);
    return std::move(values_);
  }

 private:
  template <class... Args>
  absl::Status Damaged(uint64_t page, fmt::format_string<Args...> format,
                       Args&&... args) const {
    return DataLoss("{}: page {}: {}", file_.name(), page,
                    fmt::format(format, std::forward<Args>(args)...));
  }

  absl::Status CheckDatabase() const {
    if ((meta_.flags & ~kKnownDatabaseFlags) != 0)
      return FailedPrecondition(
          "{}: LMDB with flags {:#x} (several values a key, or keys that are "
          "integers), want one value a key",
          file_.name(), meta_.flags);
    if (meta_.entries > limits_.max_files)
      return ResourceExhausted("{}: {} values, the limit is {}", file_.name(),
                               meta_.entries, limits_.max_files);
    const int least = meta_.root == kNoPage ? 0 : 1;
    if (meta_.depth < least || meta_.depth > kMaxDepth)
      return DataLoss("{}: a tree of depth {}, want {} to {}", file_.name(),
                      meta_.depth, least, kMaxDepth);
    return absl::OkStatus();
  }

  // Marks [first, first + count) as used.
  absl::Status Claim(uint64_t first, uint64_t count) {
    if (first < 2 || first >= pages_ || count > pages_ - first)
      return Damaged(first, "{} pages there, want pages 2 to {}", count,
                     pages_ - 1);
    for (uint64_t page = first; page < first + count; ++page) {
      auto seen = seen_[page / kTogether][page % kTogether];
      if (seen) return Damaged(page, "used twice");
      seen = true;
    }
    return absl::OkStatus();
  }

  absl::Status CheckHeader(std::span<const std::byte> header, uint64_t number,
                           uint16_t kind) const {
    if (Number<uint64_t>(header, 0) != number)
      return Damaged(number, "says it is page {}", Number<uint64_t>(header, 0));
    const uint16_t flags = Number<uint16_t>(header, 10);
    if ((flags & kKinds) == kind) return absl::OkStatus();
    return Damaged(number, "flags {:#x}, want {:#x}", flags, kind);
  }

  absl::Status Load(uint64_t number, uint16_t kind, Page* page) {
    RETURN_IF_ERROR(CheckCancelled(limits_, file_.name()));
    RETURN_IF_ERROR(Claim(number, 1));
    page->number = number;
    page->next = 0;
    page->bytes.resize(meta_.page_bytes);
    RETURN_IF_ERROR(file_.ReadAt(number * meta_.page_bytes, page->bytes));
    RETURN_IF_ERROR(CheckHeader(page->bytes, number, kind));
    const uint64_t lower = Number<uint16_t>(page->bytes, 12);
    const uint64_t upper = Number<uint16_t>(page->bytes, 14);
    if (lower < kHeader || lower % 2 != 0 || lower > upper ||
        upper > meta_.page_bytes)
      return Damaged(number, "nodes' places end at {}, nodes begin at {}",
                     lower, upper);
    page->nodes = (lower - kHeader) / 2;
    for (size_t i = 0; i < page->nodes; ++i) {
      const uint64_t at = page->NodeAt(i);
      if (at < upper || at + kNode > meta_.page_bytes)
        return Damaged(number, "node {} at byte {}", i, at);
    }
    return absl::OkStatus();
  }

  // Walks depth first, with one page per level.
  absl::Status Walk() {
    std::vector<Page> path(static_cast<size_t>(meta_.depth));
    size_t level = 0;
    RETURN_IF_ERROR(Load(meta_.root, KindAt(0), &path[0]));
    while (true) {
      Page& page = path[level];
      if (KindAt(level) == kLeaf) {
        for (; page.next < page.nodes; ++page.next)
          RETURN_IF_ERROR(TakeValue(page, page.NodeAt(page.next)));
      }
      if (page.next == page.nodes) {
        if (level == 0) return absl::OkStatus();
        --level;
        continue;
      }
      const size_t at = page.NodeAt(page.next++);
      const uint64_t child = Number<uint32_t>(page.bytes, at) |
                             uint64_t{Number<uint16_t>(page.bytes, at + 4)}
                                 << 32;
      ++level;
      RETURN_IF_ERROR(Load(child, KindAt(level), &path[level]));
    }
  }

  uint16_t KindAt(size_t level) const {
    return level + 1 == static_cast<size_t>(meta_.depth) ? kLeaf : kBranch;
  }

  absl::Status TakeValue(const Page& page, size_t at) {
    const uint64_t bytes = Number<uint32_t>(page.bytes, at);
    const uint16_t flags = Number<uint16_t>(page.bytes, at + 4);
    const uint64_t data = at + kNode + Number<uint16_t>(page.bytes, at + 6);
    if ((flags & ~kBigData) != 0)
      return FailedPrecondition(
          "{}: page {}: a node with flags {:#x} (a database inside, or several "
          "values a key), want one value a key",
          file_.name(), page.number, flags);
    const bool big = flags == kBigData;
    if (data + (big ? sizeof(uint64_t) : bytes) > meta_.page_bytes)
      return Damaged(page.number, "{} bytes at {} of {}", bytes, data,
                     meta_.page_bytes);
    if (values_.size() == meta_.entries)
      return Damaged(page.number, "more than {} values: the meta page's number",
                     meta_.entries);
    uint64_t offset = page.number * meta_.page_bytes + data;
    if (big) {
      ASSIGN_OR_RETURN(offset, BigValueAt(page, data, bytes));
    }
    values_.push_back({.offset = offset, .bytes = bytes});
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> BigValueAt(const Page& page, uint64_t data,
                                      uint64_t bytes) {
    const uint64_t first = Number<uint64_t>(page.bytes, data);
    const uint64_t count =
        (kHeader + bytes + meta_.page_bytes - 1) / meta_.page_bytes;
    RETURN_IF_ERROR(Claim(first, count));
    std::array<std::byte, kHeader> header;
    RETURN_IF_ERROR(file_.ReadAt(first * meta_.page_bytes, header));
    RETURN_IF_ERROR(CheckHeader(header, first, kOverflow));
    // A value that was replaced by a smaller one keeps its pages.
    if (const uint32_t there = Number<uint32_t>(header, 12); there < count)
      return Damaged(first, "{} pages for {} bytes", there, bytes);
    return first * meta_.page_bytes + kHeader;
  }

  const StorageFile& file_;
  const Meta meta_;
  const SourceLimits& limits_;
  const uint64_t pages_;  // of the file, whole ones
  // The pages that were seen, by kTogether. A server may claim any size, so it
  // takes memory for what is read and not for the file.
  static constexpr size_t kTogether = 4096;
  absl::flat_hash_map<uint64_t, std::bitset<kTogether>> seen_;
  std::vector<LmdbValue> values_;
};

}  // namespace

absl::StatusOr<LmdbListing> ListLmdb(const StorageFile& file,
                                     const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const Meta meta, NewestMeta(file));
  LmdbListing listing{.transaction = meta.transaction, .values = {}};
  ASSIGN_OR_RETURN(listing.values, Walker(file, meta, limits).Run());
  ASSIGN_OR_RETURN(const uint64_t now, LmdbTransaction(file));
  if (now != listing.transaction)
    return FailedPrecondition(
        "{}: changed while it was listed: transaction {}, then {}", file.name(),
        listing.transaction, now);
  return listing;
}

absl::StatusOr<uint64_t> LmdbTransaction(const StorageFile& file) {
  ASSIGN_OR_RETURN(const Meta meta, NewestMeta(file));
  return meta.transaction;
}

}  // namespace leat::worker
