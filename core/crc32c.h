// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli, as in RFC 3720), for records in files and for messages.
// Uses the processor's instructions if it has some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat {

uint32_t Crc32c(std::span<const std::byte> bytes);
uint32_t Crc32c(std::string_view bytes);
// Returns the sum of the bytes that `crc` is the sum of, followed by `bytes`.
// The sum of no bytes is 0.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes);
// Computes the same with a table, one byte at a time. Tests compare the fast
// implementations with it.
uint32_t Crc32cByTable(std::span<const std::byte> bytes);
// Computes the same without vectors, as processors without VPCLMULQDQ do.
uint32_t Crc32cWithoutVectors(std::span<const std::byte> bytes);

}  // namespace leat
