// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/broadcast.h"

#include <algorithm>

namespace leat {

bool Broadcast(std::span<const int64_t> other, Shape* shape) {
  if (other.size() > shape->size())
    shape->insert(shape->begin(), other.size() - shape->size(), 1);
  auto mine = shape->end() - static_cast<ptrdiff_t>(other.size());
  for (const int64_t size : other) {
    int64_t& joined = *mine++;
    if (joined == size || size == 1) continue;
    if (joined == 1 || (joined < 0 && size > 1))
      joined = size;
    else if (size >= 0)
      return false;
  }
  return true;
}

}  // namespace leat
