// SPDX-License-Identifier: Apache-2.0
//
// JpegChoice: the begin of an input that goes on with a JPEG file: flags, two
// windows, and changes of some bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tests/fuzz/input.h"
#include "worker/image/base/rect.h"

namespace leat::worker {

struct JpegChoice {
  static constexpr size_t kMostChanges = 8;
  struct Change {
    uint32_t at = 0;
    uint8_t to = 0;
  };

  explicit JpegChoice(fuzz::Input& input) {
    flags = input.Byte();
    for (uint8_t& part : parts) part = input.Byte();
    changes = std::min<size_t>(input.Byte(), kMostChanges);
    for (size_t i = 0; i < changes; ++i)
      change[i] = {input.Number<uint32_t>(), input.Byte()};
  }
  // Returns the file behind a choice.
  static std::string_view FileOf(std::string_view input) {
    fuzz::Input from(input);
    const JpegChoice choice(from);
    return from.Rest();
  }

  bool gray() const { return (flags & 1) != 0; }

  // Returns the first or the second window.
  Rect Window(StoredSize size, size_t which) const {
    const uint8_t* const p = parts.data() + 4 * which;
    const auto part = [](int64_t length, uint8_t at, uint8_t of) {
      const int64_t taken = std::max<int64_t>(1, length * (of + 1) / 256);
      return std::pair((length - taken) * at / 255, taken);
    };
    const auto [y, height] = part(size.height, p[0], p[1]);
    const auto [x, width] = part(size.width, p[2], p[3]);
    return {x, y, width, height};
  }

  // Returns the bytes that are read back as this choice.
  std::string Put() const {
    std::string bytes = fuzz::PutByte(flags);
    for (const uint8_t part : parts) bytes += fuzz::PutByte(part);
    bytes += fuzz::PutByte(static_cast<int>(changes));
    for (size_t i = 0; i < changes; ++i)
      bytes += fuzz::PutNumber(change[i].at) + fuzz::PutByte(change[i].to);
    return bytes;
  }

  uint8_t flags = 0;
  std::array<uint8_t, 8> parts{};
  size_t changes = 0;
  std::array<Change, kMostChanges> change{};
};

}  // namespace leat::worker
