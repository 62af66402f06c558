// SPDX-License-Identifier: Apache-2.0
#include "core/counted.h"

#include "fmt/format.h"

namespace leat {

std::string Counted(uint64_t count, std::string_view one,
                    std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  if (!many.empty()) return fmt::format("{} {}", count, many);
  return fmt::format("{} {}s", count, one);
}

}  // namespace leat
