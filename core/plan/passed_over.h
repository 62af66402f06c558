// SPDX-License-Identifier: Apache-2.0
//
// What a listing found and did not take, counted by kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

// At most so many kinds are told; the rest are one: "others".
inline constexpr size_t kMaxPassedOver = 32;

struct PassedOver {
  std::string what;  // for people: "files .heic"
  uint64_t count = 0;
  std::string first;  // one of them, the first by name or place
  friend bool operator==(const PassedOver&, const PassedOver&) = default;
};

// Not thread-safe.
class PassedOverCounts {
 public:
  void Add(std::string_view what, std::string_view which, uint64_t count = 1);
  void Add(const PassedOverCounts& other);
  // The most frequent first; of equal ones by name.
  std::vector<PassedOver> Take() const;
  bool empty() const { return kinds_.empty(); }

 private:
  struct Kind {
    uint64_t count = 0;
    std::string first;
  };
  // A folder may have as many endings as files.
  static constexpr size_t kMaxKinds = 1024;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace leat
