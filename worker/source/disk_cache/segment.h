// SPDX-License-Identifier: Apache-2.0
//
// What a disk cache's directory has in it, and how its files are opened.
//
// DIR/lock                             held by the process that uses it
// DIR/<64 hex>-<2 hex>-<16 hex>.data   ranges, one after the other
// DIR/<64 hex>-<2 hex>-<16 hex>.index  a DiskEntry each, written behind it
//
// A segment's name is its dataset, stratum, and a number that none had before
// it.
//
// Strata: ranks are numbers below 2^64. From an eighth of that on a stratum is
// a 64th of them; below, each halving has eight, down to 2^51. So it is small
// against all ranks, and against those below it.
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

// As on disk: little-endian, as all processors that we run on.
struct DiskEntry {
  char magic[8] = {'l', 'e', 'a', 't', 'd', 'c', '0', '1'};
  uint64_t high = 0, low = 0;  // the key
  uint64_t offset = 0;
  uint32_t size = 0;
  uint32_t crc = 0;  // of the range
  uint32_t reserved = 0;
  uint32_t entry_crc = 0;  // of what is before it

  uint32_t Crc() const;
  // Whether it is one of this version, of a range in so many bytes.
  bool IsSound(uint64_t data_bytes) const;
};
static_assert(sizeof(DiskEntry) == 48);

struct DiskSegmentName {
  Digest dataset{};
  uint32_t stratum = 0;
  uint64_t number = 0;

  // `kind`: "data" or "index".
  std::string File(std::string_view kind) const;
  // nullopt: no segment's file.
  static std::optional<DiskSegmentName> Of(std::string_view file);
};

// Whether a release that named segments otherwise made the file.
bool IsOfOtherVersion(std::string_view file);

// Whether only this process's user can have written there. kFailedPrecondition:
// it is no directory, a link, another user's, or others may write to it.
absl::Status CheckOwnDirectory(const std::string& directory);
// A descriptor, or -1 and errno. Links are not followed.
int OpenOwn(const std::string& path, int flags);
// False: not all of it is there, or can be read.
bool ReadFully(int fd, std::span<std::byte> into, uint64_t offset);

}  // namespace leat::worker
