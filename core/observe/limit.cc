// SPDX-License-Identifier: Apache-2.0
#include "core/observe/limit.h"

#include <array>
#include <cstddef>
#include <utility>

namespace leat {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10>
    kLimitNames = {{{"unknown", "not known yet"},
                    {"trainer", "trainer"},
                    {"network", "network"},
                    {"storage", "storage"},
                    {"decode_cpu", "decode and augment"},
                    {"decode_gpu", "decode and augment (GPU)"},
                    {"straggler", "one straggler"},
                    {"window", "too small a window"},
                    {"source", "the script's own source"},
                    {"workers", "no workers"}}};

}  // namespace

std::string_view Name(Limit limit) {
  return kLimitNames.at(static_cast<size_t>(limit)).first;
}

std::string_view Title(Limit limit) {
  return kLimitNames.at(static_cast<size_t>(limit)).second;
}

std::string_view TitleOf(std::string_view name) {
  for (const auto& [known, title] : kLimitNames)
    if (known == name) return title;
  return name;
}

}  // namespace leat
