// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli, as in RFC 3720), for records in files.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat::server {

uint32_t Crc32c(std::string_view bytes);

}  // namespace leat::server
