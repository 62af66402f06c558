// SPDX-License-Identifier: Apache-2.0
//
// Sha256 computes the hash of fingerprints, plan hashes and oracles (FIPS
// 180-4, by OpenSSL).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace leat {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& Update(std::string_view bytes);
  Sha256& Update(std::span<const std::byte> bytes);
  // Hashes the length of `bytes` before them, so that a sequence of fields is
  // unambiguous.
  Sha256& UpdateField(std::string_view bytes);
  Sha256& UpdateU64(uint64_t value);  // little-endian
  // REQUIRES: called once, last.
  Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest HashOf(std::string_view bytes);
// Returns the digest's bytes, unconverted. The view is valid as long as the
// digest.
std::string_view AsText(const Digest& digest);
std::string BytesOf(const Digest& digest);
// The reverse of BytesOf. Errors: `code`, naming `what`, if `bytes` has another
// length.
absl::StatusOr<Digest> DigestOf(
    std::string_view what, std::string_view bytes,
    absl::StatusCode code = absl::StatusCode::kInvalidArgument);
std::string ToHex(std::span<const uint8_t> bytes);
// Returns the first 12 hexadecimal digits, for people.
std::string ShortHex(const Digest& digest);

}  // namespace leat
