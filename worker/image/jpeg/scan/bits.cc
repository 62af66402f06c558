// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/bits.h"

namespace leat::worker {

ScanBits::ByBytes ScanBits::RefillByBytes(const uint8_t* at, const uint8_t* end,
                                          uint64_t bits, int count) {
  const uint8_t* const begin = at;
  int padding = 0;
  for (; count < 56; count += 8) {
    uint64_t byte = 0;
    if (at < end && *at != 0xff) {
      byte = *at++;
    } else if (end - at >= 2 && at[1] == 0) {
      byte = 0xff;
      at += 2;
    } else {
      padding += 8;
    }
    bits |= byte << (56 - count);
  }
  return {.bits = bits,
          .count = static_cast<uint8_t>(count),
          .bytes = static_cast<uint8_t>(at - begin),
          .padding = static_cast<uint8_t>(padding)};
}

uint32_t ScanBits::Offset(std::span<const uint8_t> data) const {
  const auto unread = static_cast<size_t>(count - padding);
  const uint8_t* byte = at;
  for (size_t back = (unread + 7) / 8; back > 0; --back) {
    --byte;
    if (*byte == 0 && byte > data.data() && byte[-1] == 0xff) --byte;
  }
  return static_cast<uint32_t>((byte - data.data()) * 8) +
         static_cast<uint32_t>((8 - unread % 8) % 8);
}

}  // namespace leat::worker
