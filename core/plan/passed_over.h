// SPDX-License-Identifier: Apache-2.0
//
// PassedOver counts, by kind, what a listing found and left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// Maximum number of kinds that are reported; the rest are counted as "others".
inline constexpr size_t kMaxPassedOver = 32;

struct PassedOver {
  std::string what;  // for people: "files .heic"
  uint64_t count = 0;
  std::string first;  // an example: the first by name or position
  friend bool operator==(const PassedOver&, const PassedOver&) = default;
};

// Not thread-safe.
class PassedOverCounts {
 public:
  void Add(std::string_view what, std::string_view which, uint64_t count = 1);
  void Add(const PassedOverCounts& other);
  // Returns the kinds, the most frequent first; equally frequent ones by name.
  std::vector<PassedOver> Take() const;
  bool empty() const { return kinds_.empty(); }

 private:
  struct Kind {
    uint64_t count = 0;
    std::string first;
  };
  // Bounds the kinds, since a folder may have as many extensions as files.
  static constexpr size_t kMaxKinds = 1024;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace leat
