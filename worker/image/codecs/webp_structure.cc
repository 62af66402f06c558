// SPDX-License-Identifier: Apache-2.0
//
// A lossless stream consists of transforms, the size of a cache of colours, an
// image of groups, the groups' codes, and pixels. Transforms and the image of
// groups hold images that have one group of codes. To find where such an image
// ends, its symbols are read, but no pixels are made: what is copied from earlier
// pixels or from the cache is a pixel that was read before.
#include "worker/image/codecs/webp_structure.h"

#include <algorithm>
#include <array>
#include <vector>

#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kFirstChunk = 12, kBeforeContent = 8;
constexpr size_t kStreamHeader = 5;  // a mark and the size; alpha has 1 byte
constexpr uint32_t kLengthCodes = 24, kDistanceCodes = 40;
constexpr int kMostCodeBits = 15;
// libwebp's tables for the five codes of a group: for all but green, and for
// green by the bits of the cache, in entries of 4 bytes.
constexpr uint64_t kOtherEntries = 630 * 3 + 410;
constexpr uint64_t kGreenEntries[] = {654, 656, 658, 662,  670,  686,
                                      718, 782, 912, 1168, 1680, 2704};
constexpr uint64_t kEntryBytes = 4;
// The rest of a group, rounded up.
constexpr uint64_t kGroupBytes = 600;
constexpr int kMostCacheBits = 11;
// From so many groups on, libwebp leaves out those that no block uses.
constexpr size_t kGroupsKept = 1000;

// Reads bits, the lowest of a byte first. Behind the end there are zeros.
class WebpBits {
 public:
  explicit WebpBits(Bytes bytes) : bytes_(bytes) {}

  uint32_t Read(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      if (at_ >= 8 * bytes_.size()) {
        ended_ = true;
        return 0;
      }
      value |= (static_cast<uint32_t>(bytes_[at_ / 8]) >> at_ % 8 & 1) << i;
    }
    return value;
  }
  // True if more was read than there is.
  bool ended() const { return ended_; }

 private:
  const Bytes bytes_;
  size_t at_ = 0;
  bool ended_ = false;
};

// A canonical Huffman code.
class SymbolCode {
 public:
  // Returns false if the lengths are those of no complete code.
  bool Build(std::span<const uint8_t> lengths) {
    counts_ = {};
    symbols_.clear();
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    for (int bits = 1; bits <= kMostCodeBits; ++bits)
      for (uint32_t i = 0; counts_[bits] > 0 && i < lengths.size(); ++i)
        if (lengths[i] == bits) symbols_.push_back(i);
    if (symbols_.size() == 1) return true;
    int left = 1;
    for (int bits = 1; bits <= kMostCodeBits; ++bits) {
      left = 2 * left - counts_[bits];
      if (left < 0) return false;
    }
    return left == 0;
  }

  // A code of one symbol takes no bits. REQUIRES: Build succeeded.
  uint32_t Read(WebpBits* bits) const {
    if (symbols_.size() == 1) return symbols_[0];
    int code = 0, first = 0, index = 0;
    for (int i = 1; i <= kMostCodeBits; ++i) {
      code |= static_cast<int>(bits->Read(1));
      if (code - first < counts_[i])
        return symbols_[static_cast<size_t>(index + code - first)];
      index += counts_[i];
      first = 2 * (first + counts_[i]);
      code *= 2;
    }
    return 0;  // is not reached by a complete code
  }

 private:
  std::array<int, 16> counts_{};
  std::vector<uint32_t> symbols_;
};

uint32_t BlocksOf(uint32_t side, int bits) {
  return (side + (1u << bits) - 1) >> bits;
}

class LosslessReader {
 public:
  LosslessReader(Bytes stream, StoredSize size)
      : bits_(stream),
        width_(static_cast<uint32_t>(size.width)),
        height_(static_cast<uint32_t>(size.height)) {}

  uint64_t TableBytes() {
    while (bits_.Read(1) != 0)
      if (!SkipTransform()) return 0;
    int cache_bits = 0;
    if (!ReadCacheBits(&cache_bits)) return 0;
    uint64_t groups = 1;
    if (bits_.Read(1) != 0) {
      const int bits = static_cast<int>(bits_.Read(3)) + 2;
      std::vector<bool> used(size_t{1} << 16);
      if (!ReadImage(BlocksOf(width_, bits), BlocksOf(height_, bits), &used))
        return 0;
      groups = GroupsOf(used);
    }
    const uint64_t entries = kOtherEntries + kGreenEntries[cache_bits];
    return groups * (entries * kEntryBytes + kGroupBytes);
  }

 private:
  enum Transform : uint32_t { kPredictor, kColours, kGreen, kPalette };

  uint64_t GroupsOf(const std::vector<bool>& used) const {
    const auto last = std::find(used.rbegin(), used.rend(), true);
    const auto all = static_cast<size_t>(used.rend() - last);
    if (all <= kGroupsKept && all <= uint64_t{width_} * height_) return all;
    return static_cast<uint64_t>(std::count(used.begin(), used.end(), true));
  }

  bool SkipTransform() {
    const uint32_t type = bits_.Read(2);
    if ((seen_ >> type & 1) != 0) return false;
    seen_ |= 1u << type;
    if (type == kGreen) return true;
    if (type == kPalette) {
      const uint32_t colours = bits_.Read(8) + 1;
      const int packing = colours > 16  ? 0
                          : colours > 4 ? 1
                          : colours > 2 ? 2
                                        : 3;
      width_ = BlocksOf(width_, packing);
      return ReadImage(colours, 1, nullptr);
    }
    const int bits = static_cast<int>(bits_.Read(3)) + 2;
    return ReadImage(BlocksOf(width_, bits), BlocksOf(height_, bits), nullptr);
  }

  bool ReadCacheBits(int* cache_bits) {
    if (bits_.Read(1) == 0) return true;
    *cache_bits = static_cast<int>(bits_.Read(4));
    return *cache_bits >= 1 && *cache_bits <= kMostCacheBits;
  }

  // Reads an image that has one group of codes. Notes which values of red and
  // green, as one number, its pixels have; the cache begins with zeros.
  bool ReadImage(uint32_t width, uint32_t height, std::vector<bool>* values) {
    int cache_bits = 0;
    if (!ReadCacheBits(&cache_bits)) return false;
    const uint32_t cached = cache_bits == 0 ? 0 : 1u << cache_bits;
    const uint32_t sizes[] = {256 + kLengthCodes + cached, 256, 256, 256,
                              kDistanceCodes};
    std::array<SymbolCode, 5> codes;
    for (size_t i = 0; i < codes.size(); ++i)
      if (!ReadCode(sizes[i], &codes[i])) return false;
    const uint64_t pixels = uint64_t{width} * height;
    for (uint64_t at = 0; at < pixels && !bits_.ended(); ++at) {
      const uint32_t green = codes[0].Read(&bits_);
      uint32_t value = 0;
      if (green < 256) {
        value = codes[1].Read(&bits_) << 8 | green;
        (void)codes[2].Read(&bits_);
        (void)codes[3].Read(&bits_);
      } else if (green < 256 + kLengthCodes) {
        const uint64_t length = ReadPrefixed(green - 256);
        (void)ReadPrefixed(codes[4].Read(&bits_));
        if (at == 0 || length > pixels - at) return false;
        at += length - 1;
        continue;
      }
      if (values != nullptr) (*values)[value] = true;
    }
    return !bits_.ended();
  }

  uint32_t ReadPrefixed(uint32_t symbol) {
    if (symbol < 4) return symbol + 1;
    const uint32_t extra = (symbol - 2) / 2;
    return ((2 + symbol % 2) << extra) + bits_.Read(static_cast<int>(extra)) +
           1;
  }

  bool ReadCode(uint32_t size, SymbolCode* code) {
    std::vector<uint8_t> lengths(size);
    const auto add = [&](uint32_t symbol) {
      if (symbol < size) lengths[symbol] = 1;
    };
    if (bits_.Read(1) != 0) {  // one symbol or two
      const bool two = bits_.Read(1) != 0;
      add(bits_.Read(bits_.Read(1) != 0 ? 8 : 1));
      if (two) add(bits_.Read(8));
    } else if (!ReadLengths(&lengths)) {
      return false;
    }
    return code->Build(lengths);
  }

  bool ReadLengths(std::vector<uint8_t>* lengths) {
    constexpr uint8_t kOrder[] = {17, 18, 0, 1,  2,  3,  4,  5,  16, 6,
                                  7,  8,  9, 10, 11, 12, 13, 14, 15};
    std::array<uint8_t, std::size(kOrder)> own{};
    const uint32_t count = bits_.Read(4) + 4;
    for (uint32_t i = 0; i < count; ++i)
      own[kOrder[i]] = static_cast<uint8_t>(bits_.Read(3));
    SymbolCode code;
    if (!code.Build(own)) return false;
    uint32_t left = static_cast<uint32_t>(lengths->size());
    if (bits_.Read(1) != 0) {
      const int bits = 2 + 2 * static_cast<int>(bits_.Read(3));
      const uint32_t said = 2 + bits_.Read(bits);
      if (said > left) return false;
      left = said;
    }
    uint8_t last = 8;
    for (size_t i = 0; i < lengths->size() && left > 0; --left) {
      const uint32_t symbol = code.Read(&bits_);
      if (symbol < 16) {
        (*lengths)[i++] = static_cast<uint8_t>(symbol);
        if (symbol != 0) last = static_cast<uint8_t>(symbol);
        continue;
      }
      constexpr int kBits[] = {2, 3, 7};
      constexpr uint32_t kLeast[] = {3, 3, 11};
      const uint32_t repeat =
          bits_.Read(kBits[symbol - 16]) + kLeast[symbol - 16];
      if (repeat > lengths->size() - i) return false;
      std::fill_n(lengths->begin() + static_cast<ptrdiff_t>(i), repeat,
                  symbol == 16 ? last : 0);
      i += repeat;
    }
    return true;
  }

  WebpBits bits_;
  uint32_t width_, height_;
  uint32_t seen_ = 0;  // kinds of transforms
};

}  // namespace

uint64_t WebpTableBytes(Bytes file, StoredSize size) {
  Bytes alpha;
  for (size_t at = kFirstChunk; at + kBeforeContent <= file.size();) {
    const uint64_t length = LittleEndian(file, at + 4, 4);
    const size_t begin = at + kBeforeContent;
    const Bytes content =
        file.subspan(begin, std::min<uint64_t>(length, file.size() - begin));
    if (BytesAre(file, at, "VP8L"))
      return content.size() < kStreamHeader
                 ? 0
                 : LosslessReader(content.subspan(kStreamHeader), size)
                       .TableBytes();
    if (BytesAre(file, at, "VP8 ")) break;
    if (BytesAre(file, at, "ALPH")) alpha = content;
    if (length > file.size() - begin) return 0;
    at = begin + length + length % 2;
  }
  constexpr uint32_t kPacked = 1;  // in the low bits of alpha's header
  if (alpha.empty() || (LittleEndian(alpha, 0, 1) & 3) != kPacked) return 0;
  return LosslessReader(alpha.subspan(1), size).TableBytes();
}

}  // namespace leat::worker
