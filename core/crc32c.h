// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli, as in RFC 3720), for records in files and for messages.
// By the processor's instructions where it has some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat {

uint32_t Crc32c(std::span<const std::byte> bytes);
uint32_t Crc32c(std::string_view bytes);
// The sum of what `crc` is the sum of, and `bytes` behind it. The sum of no
// bytes is 0.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes);
// The same by a table, a byte at a time: what the fast ways are tested against.
uint32_t Crc32cByTable(std::span<const std::byte> bytes);
// Computes the same without vectors, as processors without VPCLMULQDQ do.
uint32_t Crc32cWithoutVectors(std::span<const std::byte> bytes);

}  // namespace leat
