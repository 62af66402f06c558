// SPDX-License-Identifier: Apache-2.0
//
// Target is a function that accepts any bytes, and must neither crash nor
// violate its checks (abort()).
//
// Each *_fuzz.cc defines one, by a Target at namespace scope. libfuzzer.cc
// makes a program of one of these files; driver.cc makes one of all, for
// tests/run. The behaviour of a target depends only on its bytes.
#pragma once

#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::fuzz {

struct TargetInfo {
  std::string_view name;  // also the name of its corpus folder
  void (*run)(std::string_view bytes) = nullptr;
  // Returns the initial inputs.
  std::vector<std::string> (*seeds)() = nullptr;
  // The number of runs on changed files in tests/run.
  int runs = 1000;
  // Corrects sums that would otherwise end all inputs. May be nullptr.
  void (*repair)(std::span<char> bytes) = nullptr;
  // Changes an input so that most of them get far; the driver calls it instead
  // of its own changes, except for a few. May be nullptr.
  void (*change)(std::string& bytes, std::mt19937_64& random) = nullptr;
  // Returns what the runs until now were, for a long run's lines. May be
  // nullptr.
  std::string (*counts)() = nullptr;
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

// Aborts the run unless `holds`.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace leat::fuzz
