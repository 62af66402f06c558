// SPDX-License-Identifier: Apache-2.0
#include "core/packing/cut_window.h"

#include <algorithm>

namespace leat {

CutWindow::CutWindow(std::span<const uint64_t> lengths) {
  ends_.reserve(lengths.size());
  uint64_t end = 0;
  for (const uint64_t length : lengths) ends_.push_back(end += length);
}

uint64_t CutWindow::AppendPieces(uint64_t first, uint64_t wanted,
                                 std::vector<Piece>* pieces) const {
  const uint64_t total = num_elements();
  if (first >= total) return 0;
  const uint64_t last = first + std::min(wanted, total - first);
  auto end = std::upper_bound(ends_.begin(), ends_.end(), first);
  for (uint64_t at = first; at < last; ++end) {
    const uint64_t begin = end == ends_.begin() ? 0 : *(end - 1);
    const uint64_t stop = std::min(*end, last);
    if (stop == at) continue;  // an empty document
    pieces->push_back(
        {static_cast<uint64_t>(end - ends_.begin()), at - begin, stop - at});
    at = stop;
  }
  return last - first;
}

}  // namespace leat
