// SPDX-License-Identifier: Apache-2.0
//
// LongList is a list argument that is data and too long for a message: the
// files of a dataset, and their labels.
//
// A graph has the list's digest: the number of entries, the first ones, a hash.
// The entries are bytes divided into blocks, which are sent separately and
// named by their hashes, as the blocks of an index are:
//
//   texts  each entry followed by a zero byte   "a.jpg\0b.jpg\0…"
//   ints   8 bytes per entry, little-endian
//
//   client, makes a job        coordinator             worker, lists
//   block ── PutListBlock ────► file ── GetIndexBlock ─► values
//
// Two lists with the same entries have the same digest, independent of their
// sender. A list that fits in a message is a vector in the graph, and never a
// LongList, so that a reader has one canonical text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"

namespace leat {

// Maximum number of entries of a list in a message.
inline constexpr size_t kMaxShortNumbers = 4096;
inline constexpr size_t kMaxShortTexts = 65'536;
// Maximum size of the texts of all lists of a reader in a message. Requests to
// the coordinator have at most 8 MiB.
inline constexpr uint64_t kMaxShortBytes = 15ull << 19;

inline constexpr uint64_t kMaxListEntries = 4'194'304;
inline constexpr uint64_t kMaxListBytes = 512ull << 20;
// Maximum number and size of all lists of a pipeline together.
inline constexpr size_t kMaxLists = 16;
inline constexpr uint64_t kMaxListsBytes = 1ull << 30;
// Size of every block except the last.
inline constexpr uint64_t kListBlockBytes = 1ull << 20;
inline constexpr size_t kShownEntries = 3;
inline constexpr size_t kMaxEntryBytes = 4096;  // of one text

struct LongList {
  enum class Kind : uint8_t { kTexts = 1, kInts = 2 };  // the wire's numbers
  Kind kind = Kind::kTexts;
  uint64_t count = 0;
  uint64_t bytes = 0;              // of all blocks
  std::vector<Digest> blocks;      // their names, in order
  std::vector<std::string> first;  // the first entries, as texts
  Digest digest{};                 // of all of the above
  // The bytes; nullptr if they are stored elsewhere. Shared by all copies.
  std::shared_ptr<const std::string> values;

  // Returns whether the entries are the same.
  friend bool operator==(const LongList& a, const LongList& b) {
    return a.digest == b.digest;
  }
};

// Makes the list whose bytes are `values`. kInvalidArgument: no entry, a
// truncated entry, or over kMaxListEntries, kMaxListBytes or kMaxEntryBytes;
// the message has the number and the bound.
absl::StatusOr<LongList> MakeLongList(LongList::Kind kind, std::string values);
absl::StatusOr<LongList> LongListOf(std::span<const std::string> texts);
absl::StatusOr<LongList> LongListOf(std::span<const int64_t> ints);

// Computes the digest of a list that was received without values.
// kInvalidArgument: its parts are inconsistent, or over a bound.
absl::Status CompleteLongList(LongList* list);

// REQUIRES: the list has its values, of that kind.
std::vector<std::string> TextsOf(const LongList& list);
std::vector<int64_t> IntsOf(const LongList& list);

uint64_t BlockBytes(const LongList& list, size_t block);
// REQUIRES: the list has its values.
std::string_view BlockOf(const LongList& list, size_t block);

}  // namespace leat
