// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/bits.h"

namespace leat::worker {

ScanBits ScanBits::RefilledByByte(ScanBits scan) {
  while (scan.count < 56) {
    uint64_t byte = 0;
    if (scan.at < scan.end && *scan.at != 0xff) {
      byte = *scan.at++;
    } else if (scan.end - scan.at >= 2 && scan.at[1] == 0) {
      byte = 0xff;
      scan.at += 2;
    } else {
      scan.padding += 8;
    }
    scan.bits |= byte << (56 - scan.count);
    scan.count += 8;
  }
  return scan;
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
