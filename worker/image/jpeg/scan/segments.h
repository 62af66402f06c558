// SPDX-License-Identifier: Apache-2.0
//
// JpegSegments: a JPEG file is a sequence of segments: 0xFF, a marker byte and,
// for most markers, a 16-bit length and that much content. After the
// start-of-scan segment follow entropy-coded data, in which every 0xFF byte is
// followed by 0 or a restart marker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::worker {

struct JpegSegment {
  uint8_t marker = 0;
  std::span<const std::byte> content;
};

// Walks the segments before the first scan.
class JpegSegments {
 public:
  explicit JpegSegments(std::span<const std::byte> jpeg) : jpeg_(jpeg) {}

  // Returns the next segment; nullopt if the first scan's header was reached
  // (position() is at it), or the bytes end.
  std::optional<JpegSegment> Next() {
    while (position_ + 4 <= jpeg_.size()) {
      if (At(position_) != 0xff) {
        ++position_;
        continue;
      }
      const uint8_t marker = At(position_ + 1);
      if (marker == 0xff) {  // fill byte
        ++position_;
        continue;
      }
      if (marker == 0xda) return std::nullopt;
      if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd9)) {
        position_ += 2;
        continue;
      }
      const size_t length =
          size_t{At(position_ + 2)} << 8 | size_t{At(position_ + 3)};
      const size_t begin = position_ + 4;
      if (length < 2 || begin + length - 2 > jpeg_.size()) break;
      position_ += 2 + length;
      return JpegSegment{marker, jpeg_.subspan(begin, length - 2)};
    }
    position_ = std::min(position_, jpeg_.size());
    return std::nullopt;
  }
  size_t position() const { return position_; }

 private:
  uint8_t At(size_t i) const { return static_cast<uint8_t>(jpeg_[i]); }

  const std::span<const std::byte> jpeg_;
  size_t position_ = 2;  // after the start of image
};

}  // namespace leat::worker
