// SPDX-License-Identifier: Apache-2.0
//
// JPEG files and damaged copies of them, the same in every run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/jpeg_maker.h"

namespace leat::worker {

// One file of each kind whose rows libjpeg makes in a different way.
inline std::vector<std::string> JpegsOfManyKinds() {
  using testing::JpegColor;
  using testing::JpegSpec;
  std::vector<std::string> files;
  for (const JpegSpec& spec :
       {JpegSpec{.width = 131, .height = 197},
        JpegSpec{.width = 97, .height = 163, .orientation = 6},
        JpegSpec{.width = 120, .height = 90, .h = 2, .v = 1, .orientation = 3},
        JpegSpec{.width = 90, .height = 101, .h = 1, .v = 1},
        JpegSpec{.width = 77, .height = 130, .h = 1, .v = 2, .orientation = 7},
        JpegSpec{.width = 131, .height = 150, .restart_interval = 3},
        JpegSpec{.width = 88, .height = 107, .progressive = true},
        JpegSpec{.width = 101,
        .height = 143,
        .color = JpegColor::kGray,
        .h = 1,
        .v = 1},
        JpegSpec{.width = 75,
        .height = 96,
        .color = JpegColor::kYcck,
        .h = 1,
        .v = 1},
        JpegSpec{.width = 90, .height = 105, .h = 1, .v = 3},
        JpegSpec{.width = 93, .height = 120, .arithmetic = true}})
    files.push_back(testing::MakeJpeg(spec));
  return files;
}

class JpegDamager {
 public:
  JpegDamager(std::string jpeg, uint32_t seed)
      : jpeg_(std::move(jpeg)), random_(seed) {}

  // Returns every `every`-th of the copies below.
  std::vector<std::string> Copies(size_t every = 1) {
    std::vector<std::string> all = Cut(), some;
    for (int i = 0; i < 60; ++i) all.push_back(WithFlippedBit(jpeg_.size()));
    for (int i = 0; i < 30; ++i) all.push_back(WithFlippedBit(HeaderSize()));
    for (int i = 0; i < 60; ++i) all.push_back(WithRun());
    for (std::string& copy : WithOtherMarkers()) all.push_back(std::move(copy));
    for (size_t i = 0; i < all.size(); i += every)
      some.push_back(std::move(all[i]));
    return some;
  }

 private:
  size_t Below(size_t end) { return random_() % end; }
  size_t HeaderSize() const { return jpeg_.find("\xff\xda") + 14; }

  // Cuts at every 1 %, with an end of image and without.
  std::vector<std::string> Cut() const {
    std::vector<std::string> copies;
    for (const char* end : {"\xff\xd9", ""})
      for (size_t percent = 0; percent < 100; ++percent)
        copies.push_back(jpeg_.substr(0, jpeg_.size() * percent / 100) + end);
    return copies;
  }
  std::string WithFlippedBit(size_t end) {
    std::string copy = jpeg_;
    copy[Below(end)] ^= static_cast<char>(1 << Below(8));
    return copy;
  }
  // Some bytes of the data are removed, set, cleared, or a marker.
  std::string WithRun() {
    std::string copy = jpeg_;
    const size_t at =
        HeaderSize() + Below(std::max<size_t>(1, copy.size() - HeaderSize()));
    const size_t count = std::min(1 + Below(40), copy.size() - at);
    switch (Below(4)) {
      case 0:
        return copy.erase(at, count);
      case 1:
        return copy.replace(at, count, count, '\xff');
      case 2:
        return copy.replace(at, count, count, '\0');
      default:
        return copy.insert(at, "\xff\xd3");
    }
  }
  // Restart markers are removed, or have another number.
  std::vector<std::string> WithOtherMarkers() const {
    std::vector<std::string> copies;
    for (size_t at = HeaderSize(); copies.size() < 40; ++at) {
      at = jpeg_.find('\xff', at);
      if (at == std::string::npos || at + 2 > jpeg_.size()) break;
      if ((jpeg_[at + 1] & 0xf8) != 0xd0) continue;
      copies.push_back(std::string(jpeg_).erase(at, 2));
      copies.push_back(jpeg_);
      copies.back()[at + 1] ^= 4;
    }
    return copies;
  }

  const std::string jpeg_;
  std::mt19937 random_;
};

}  // namespace leat::worker
