// SPDX-License-Identifier: Apache-2.0
//
// LongList: a list argument that is data and too long for a message: the files
// of a dataset, and their labels.
//
// A graph has its digest: how many entries, the first ones, a hash. The entries
// are bytes that are cut into blocks, which travel by themselves and are named
// by their hashes, as those of indexes are:
//
//   texts  each entry and a byte 0         "a.jpg\0b.jpg\0…"
//   ints   8 bytes an entry, little-endian
//
//   client, makes a job        coordinator             worker, lists
//   block ── PutListBlock ────► file ── GetIndexBlock ─► values
//
// Two lists with the same entries have the same digest, whoever sent them. A
// list that fits a message is a vector in the graph, and never a LongList, so
// that a reader has one canonical text.
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

// A list in a message has at most so many entries.
inline constexpr size_t kMaxShortNumbers = 4096;
inline constexpr size_t kMaxShortTexts = 65'536;
// Of the texts of all lists of a reader in a message. Requests to the
// coordinator have 8 MiB at most.
inline constexpr uint64_t kMaxShortBytes = 15ull << 19;

inline constexpr uint64_t kMaxListEntries = 4'194'304;
inline constexpr uint64_t kMaxListBytes = 512ull << 20;
// All lists of a pipeline together have at most so much.
inline constexpr size_t kMaxLists = 16;
inline constexpr uint64_t kMaxListsBytes = 1ull << 30;
// Every block but the last has so many bytes.
inline constexpr uint64_t kListBlockBytes = 1ull << 20;
inline constexpr size_t kShownEntries = 3;
inline constexpr size_t kMaxEntryBytes = 4096;  // of a text

struct LongList {
  enum class Kind : uint8_t { kTexts = 1, kInts = 2 };  // the wire's numbers
  Kind kind = Kind::kTexts;
  uint64_t count = 0;
  uint64_t bytes = 0;              // of all blocks
  std::vector<Digest> blocks;      // their names, in order
  std::vector<std::string> first;  // the first entries, as texts
  Digest digest{};                 // of all of the above
  // The bytes. Null: they are elsewhere. Shared by all copies of the list.
  std::shared_ptr<const std::string> values;

  // Whether the entries are the same.
  friend bool operator==(const LongList& a, const LongList& b) {
    return a.digest == b.digest;
  }
};

// The list whose bytes are `values`. kInvalidArgument: no entry, an entry that
// is cut off, over kMaxListEntries, kMaxListBytes or kMaxEntryBytes; says the
// number and the bound.
absl::StatusOr<LongList> MakeLongList(LongList::Kind kind, std::string values);
absl::StatusOr<LongList> LongListOf(std::span<const std::string> texts);
absl::StatusOr<LongList> LongListOf(std::span<const int64_t> ints);

// Completes a list that came without values by its digest. kInvalidArgument:
// its parts cannot belong together, or are over a bound.
absl::Status CompleteLongList(LongList* list);

// REQUIRES: values, of that kind.
std::vector<std::string> TextsOf(const LongList& list);
std::vector<int64_t> IntsOf(const LongList& list);

uint64_t BlockBytes(const LongList& list, size_t block);
// REQUIRES: values.
std::string_view BlockOf(const LongList& list, size_t block);

}  // namespace leat
