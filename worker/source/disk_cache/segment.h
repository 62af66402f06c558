// SPDX-License-Identifier: Apache-2.0
//
// The contents of a disk cache's directory, and functions that open its files.
//
// DIR/lock                             held by the process that uses it
// DIR/<64 hex>-<2 hex>-<16 hex>.data   ranges, one after the other
// DIR/<64 hex>-<2 hex>-<16 hex>.index  one DiskEntry per range, written last
//
// A segment's name consists of its dataset, its stratum, and a number that no
// earlier one had.
//
// Strata: ranks are numbers below 2^64. From an eighth of that on, a stratum is
// a 64th of them; below, each halving has eight strata, down to 2^51. So a
// stratum is small compared with all ranks, and with those below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/hash.h"

namespace leat::worker {

constexpr uint32_t kDiskStrata = 137;
uint32_t StratumOf(uint64_t rank);
uint64_t LowestRankOf(uint32_t stratum);

// The layout on disk: little-endian, like all supported processors.
struct DiskEntry {
  char magic[8] = {'l', 'e', 'a', 't', 'd', 'c', '0', '1'};
  uint64_t high = 0, low = 0;  // the key
  uint64_t offset = 0;
  uint32_t size = 0;
  uint32_t crc = 0;  // of the range
  uint32_t reserved = 0;
  uint32_t entry_crc = 0;  // of the bytes before it

  uint32_t Crc() const;
  // True if it is an entry of this version, for a range within `data_bytes`.
  bool IsSound(uint64_t data_bytes) const;
};
static_assert(sizeof(DiskEntry) == 48);

struct DiskSegmentName {
  Digest dataset{};
  uint32_t stratum = 0;
  uint64_t number = 0;

  // `kind`: "data" or "index".
  std::string File(std::string_view kind) const;
  // nullopt: not a segment's file.
  static std::optional<DiskSegmentName> Of(std::string_view file);
};

// True if a release with another naming of segments created the file.
bool IsOfOtherVersion(std::string_view file);

// Checks that only this process's user can write there. kFailedPrecondition: it
// is not a directory, a link, another user's, or others may write to it.
absl::Status CheckOwnDirectory(const std::string& directory);
// Returns a descriptor, or -1 and errno. Links are not followed.
int OpenOwn(const std::string& path, int flags);
// Returns false if not all of it is there, or it cannot be read.
bool ReadFully(int fd, std::span<std::byte> into, uint64_t offset);

}  // namespace leat::worker
