// SPDX-License-Identifier: Apache-2.0
#include "worker/source/array_record/highway_hash.h"

#include <cstring>

namespace leat::worker {
namespace {

using Lanes = std::array<uint64_t, 4>;

uint64_t Halves(uint64_t x) { return (x >> 32) | (x << 32); }

// Moves the bytes of two lanes so that good bytes come beside bad ones.
void ZipperMergeAndAdd(uint64_t v1, uint64_t v0, uint64_t* add1,
                       uint64_t* add0) {
  *add0 += (((v0 & 0xff000000) | (v1 & 0xff00000000)) >> 24) |
           (((v0 & 0xff0000000000) | (v1 & 0xff000000000000)) >> 16) |
           (v0 & 0xff0000) | ((v0 & 0xff00) << 32) |
           ((v1 & 0xff00000000000000) >> 8) | (v0 << 56);
  *add1 += (((v1 & 0xff000000) | (v0 & 0xff00000000)) >> 24) | (v1 & 0xff0000) |
           ((v1 & 0xff0000000000) >> 16) | ((v1 & 0xff00) << 24) |
           ((v0 & 0xff000000000000) >> 8) | ((v1 & 0xff) << 48) |
           (v0 & 0xff00000000000000);
}

class State {
 public:
  explicit State(const Lanes& key) {
    for (int i = 0; i < 4; ++i) {
      v0_[i] = mul0_[i] ^ key[i];
      v1_[i] = mul1_[i] ^ Halves(key[i]);
    }
  }

  void Update(const std::byte* packet) {
    Lanes lanes;
    std::memcpy(lanes.data(), packet, sizeof lanes);
    Update(lanes);
  }

  void UpdateLast(std::span<const std::byte> rest) {
    const uint64_t size = rest.size();
    for (int i = 0; i < 4; ++i) {
      v0_[i] += (size << 32) + size;
      const auto low = static_cast<uint32_t>(v1_[i]);
      const auto high = static_cast<uint32_t>(v1_[i] >> 32);
      v1_[i] = Rotated(low, size) | (uint64_t{Rotated(high, size)} << 32);
    }
    std::byte packet[32] = {};
    const size_t whole = size & ~size_t{3};
    const size_t odd = size & 3;
    std::memcpy(packet, rest.data(), whole);
    if (size & 16) {
      std::memcpy(packet + 28, rest.data() + size - 4, 4);
    } else if (odd > 0) {
      packet[16] = rest[whole];
      packet[17] = rest[whole + (odd >> 1)];
      packet[18] = rest[whole + odd - 1];
    }
    Update(packet);
  }

  uint64_t Finish() {
    for (int i = 0; i < 4; ++i)
      Update(Lanes{Halves(v0_[2]), Halves(v0_[3]), Halves(v0_[0]),
                   Halves(v0_[1])});
    return v0_[0] + v1_[0] + mul0_[0] + mul1_[0];
  }

 private:
  static uint32_t Rotated(uint32_t x, uint64_t by) {
    return by == 0 ? x : (x << by) | (x >> (32 - by));
  }

  void Update(const Lanes& lanes) {
    for (int i = 0; i < 4; ++i) {
      v1_[i] += mul0_[i] + lanes[i];
      mul0_[i] ^= (v1_[i] & 0xffffffff) * (v0_[i] >> 32);
      v0_[i] += mul1_[i];
      mul1_[i] ^= (v0_[i] & 0xffffffff) * (v1_[i] >> 32);
    }
    ZipperMergeAndAdd(v1_[1], v1_[0], &v0_[1], &v0_[0]);
    ZipperMergeAndAdd(v1_[3], v1_[2], &v0_[3], &v0_[2]);
    ZipperMergeAndAdd(v0_[1], v0_[0], &v1_[1], &v1_[0]);
    ZipperMergeAndAdd(v0_[3], v0_[2], &v1_[3], &v1_[2]);
  }

  Lanes mul0_ = {0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344,
                 0x243f6a8885a308d3};
  Lanes mul1_ = {0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c,
                 0x452821e638d01377};
  Lanes v0_;
  Lanes v1_;
};

}  // namespace

uint64_t HighwayHash64(const std::array<uint64_t, 4>& key,
                       std::span<const std::byte> bytes) {
  State state(key);
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) state.Update(bytes.data() + at);
  if (at < bytes.size()) state.UpdateLast(bytes.subspan(at));
  return state.Finish();
}

}  // namespace leat::worker
