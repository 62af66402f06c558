// SPDX-License-Identifier: Apache-2.0
//
// Tar archives: their members, one after the other, as POSIX ustar and pax, GNU
// tar and the tar of Unix V7 write them.
//
// A member is a header of 512 bytes, then its bytes, padded to a multiple of
// 512 (offsets in bytes):
//
//     0 name, 100      124 size, 12       148 sum, 8      156 type
//   257 magic, 6       345 prefix of the name, 155 ("ustar" and a zero byte)
//
// Numbers are octal digits, or, if the first bit is set, big-endian (GNU's
// base-256). The sum is that of the header's bytes with spaces in place of the
// sum itself, as unsigned or (old Sun tars) as signed bytes. A header may be
// preceded by more data about it, which are themselves members: type L with a
// long name (GNU), type x with records "length key=value" (pax; path and size
// count here), type g with records for all that follow (skipped).
//
// A block of zeros ends the archive, and so does the end of the file: data
// after that block (a second archive after `cat a.tar b.tar`) is not read, as
// in other readers. Names are not used as paths: nothing is written anywhere,
// so absolute names and those with ".." are harmless.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

inline constexpr uint64_t kTarBlock = 512;

// A header by itself.
struct TarHeader {
  std::string name;
  uint64_t size = 0;  // of the member; 0 if its type has no bytes
  char type = '0';
  bool is_file() const { return type == '0' || type == '7'; }
};
// kDataLoss: the sum or a number is wrong. kUnimplemented: sparse files, parts
// of archives over several volumes. REQUIRES: not all zeros.
absl::StatusOr<TarHeader> ParseTarHeader(
    std::span<const std::byte, kTarBlock> header);

struct TarMember {
  std::string name;
  uint64_t offset = 0;  // of its bytes
  uint64_t size = 0;
};

// Calls take() for each regular file; links, directories and devices are
// skipped. Stops at the first error, also take()'s. kDataLoss, kUnimplemented:
// as ParseTarHeader, or the archive was cut off; name file and offset.
// kCancelled.
absl::Status WalkTar(const StorageFile& file,
                     const std::atomic<bool>* cancelled,
                     const std::function<absl::Status(TarMember)>& take);

}  // namespace leat::worker
