// SPDX-License-Identifier: Apache-2.0
//
// Unpacks compressed files whose unpacked size is known beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::worker {

// The values are stored in indexes.
enum class Compression : uint8_t {
  kNone = 0,
  kZstd = 1,
  kGzip = 2,
  kBrotli = 3
};

// Parses "zstd", "gz" or "br", each also with a level ("zstd:7").
// kUnimplemented: another.
absl::StatusOr<Compression> ParseCompression(std::string_view name);

// Fills `to` completely. kDataLoss: malformed, or of another size unpacked.
// REQUIRES: not kNone.
absl::Status Unpack(Compression compression, std::span<const std::byte> from,
                    std::span<std::byte> to);

// True if a hash with this name ("sha1", "md5", "sha256", ...) can be computed
// here; xxHash's cannot.
bool IsKnownHash(std::string_view name);
// `hashes`: "name:hexadecimal digits" each; unknown ones are skipped.
// kDataLoss: one differs; names it.
absl::Status CheckHashes(const std::vector<std::string>& hashes,
                         std::span<const std::byte> bytes);

}  // namespace leat::worker
