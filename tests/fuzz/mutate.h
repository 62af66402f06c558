// SPDX-License-Identifier: Apache-2.0
//
// Mutated() returns one of some inputs, changed a little. It depends only on
// the inputs and the generator's numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace leat::fuzz {

using Random = std::mt19937_64;  // gives the same numbers on every machine

class Mutation {
 public:
  Mutation(const std::vector<std::string>& corpus, Random* random)
      : corpus_(corpus), random_(*random), bytes_(Any()) {}

  void Step() {
    switch (Below(8)) {
      case 0:
        return Flip();
      case 1:
        if (!bytes_.empty()) bytes_[At()] = static_cast<char>(random_());
        return;
      case 2:
      case 3:
        return PutInteresting();
      case 4:
        return bytes_.resize(Below(bytes_.size() + 1));
      case 5:
        return Insert();
      case 6:
        return Erase();
      default:
        return Splice();
    }
  }
  std::string Take() { return std::move(bytes_); }

 private:
  static constexpr size_t kMaxBytes = 64 << 10;
  static constexpr size_t kMaxRun = 64;  // bytes inserted or deleted at once

  size_t Below(size_t end) { return random_() % end; }
  // REQUIRES: the bytes are not empty.
  size_t At() { return Below(bytes_.size()); }
  const std::string& Any() { return corpus_[Below(corpus_.size())]; }

  void Flip() {
    if (bytes_.empty()) return;
    char& at = bytes_[At()];
    at = static_cast<char>(at ^ (1 << Below(8)));
  }
  // Puts numbers at which parsers fail, of 1 to 8 bytes, in either byte order.
  void PutInteresting() {
    constexpr uint64_t kNumbers[] = {0,
                                     1,
                                     7,
                                     8,
                                     16,
                                     127,
                                     128,
                                     255,
                                     256,
                                     511,
                                     512,
                                     4095,
                                     4096,
                                     32767,
                                     65535,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x100000000,
                                     INT64_MAX,
                                     uint64_t{1} << 63,
                                     ~uint64_t{0},
                                     ~uint64_t{0} - 15};
    uint64_t number = kNumbers[Below(std::size(kNumbers))];
    if (Below(4) == 0) number = bytes_.size() - Below(3);
    const size_t width = size_t{1} << Below(4);
    if (bytes_.size() < width) return;
    char* const to = bytes_.data() + Below(bytes_.size() - width + 1);
    const bool reversed = Below(2) == 0;
    for (size_t i = 0; i < width; ++i)
      to[reversed ? width - 1 - i : i] = static_cast<char>(number >> (8 * i));
  }
  void Insert() {
    if (bytes_.size() > kMaxBytes) return;
    const size_t at = Below(bytes_.size() + 1);
    const size_t count = 1 + Below(kMaxRun);
    if (Below(2) == 0 || bytes_.empty()) {
      bytes_.insert(at, count, static_cast<char>(random_()));
    } else {
      const std::string copy = bytes_.substr(At(), count);
      bytes_.insert(at, copy);
    }
  }
  void Erase() {
    if (!bytes_.empty()) bytes_.erase(At(), 1 + Below(kMaxRun));
  }
  // Joins the beginning of this one and the end of another.
  void Splice() {
    const std::string& other = Any();
    bytes_.resize(Below(bytes_.size() + 1));
    if (bytes_.size() < kMaxBytes)
      bytes_ += other.substr(Below(other.size() + 1));
  }

  const std::vector<std::string>& corpus_;
  Random& random_;
  std::string bytes_;
};

// REQUIRES: `corpus` is not empty.
inline std::string Mutated(const std::vector<std::string>& corpus,
                           Random* random) {
  Mutation mutation(corpus, random);
  for (uint64_t steps = 1 + (*random)() % 4; steps > 0; --steps)
    mutation.Step();
  return mutation.Take();
}

}  // namespace leat::fuzz
