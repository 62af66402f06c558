// SPDX-License-Identifier: Apache-2.0
//
// Target: something that takes any bytes, and must neither crash nor break
// what it checks (abort()).
//
// Each *_fuzz.cc defines one, by a Target at namespace scope. libfuzzer.cc
// makes a program of one of these files; driver.cc makes one of them all, for
// tests/run. What a target does depends on its bytes alone.
#pragma once

#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::fuzz {

struct TargetInfo {
  std::string_view name;  // also of the folder of its corpus
  void (*run)(std::string_view bytes) = nullptr;
  // What to begin with.
  std::vector<std::string> (*seeds)() = nullptr;
  // Runs on changed files that tests/run does.
  int runs = 1000;
  // Puts sums right where all inputs would otherwise end. May be null.
  void (*repair)(std::span<char> bytes) = nullptr;
};

class Target {
 public:
  explicit Target(const TargetInfo& info) { Mutable().push_back(info); }
  static const std::vector<TargetInfo>& All() { return Mutable(); }

 private:
  static std::vector<TargetInfo>& Mutable() {
    static std::vector<TargetInfo>& all = *new std::vector<TargetInfo>;
    return all;
  }
};

// Ends the run unless `holds`.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace leat::fuzz
