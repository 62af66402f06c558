// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/block_window.h"

#include <algorithm>

namespace leat::worker {

int64_t ChromaAxis::FirstMcu(int64_t first) const {
  const int64_t sample = first / per_sample;
  const bool reaches_back = fancy && first % 2 == 0;
  return std::max<int64_t>(0, sample - (reaches_back ? 1 : 0)) / 8;
}

int64_t ChromaAxis::LastMcu(int64_t last) const {
  const int64_t sample = last / per_sample;
  const bool reaches_on = fancy && last % 2 == 1;
  return std::min(samples() - 1, sample + (reaches_on ? 1 : 0)) / 8;
}

BlockWindow BlockWindow::Of(StoredSize size, const Rect& window, bool chroma,
                            bool gray, int across, int down) {
  BlockWindow of{.size = size,
                 .window = window,
                 .gray = gray,
                 .across = across,
                 .down = down,
                 .components = chroma && !gray ? 3 : 1};
  const bool halved = of.components == 3 && (across == 2 || down == 2);
  // libjpeg has no filter for images with at most two chroma samples per row,
  // unless there is one per column (jdsample.c, jinit_upsampler).
  of.fancy = halved && (across == 1 || of.chroma_size().width > 2);
  const ChromaAxis x{size.width, across, of.fancy && across == 2};
  const ChromaAxis y{size.height, down, of.fancy && down == 2};
  const int64_t last_x = window.x + window.width - 1;
  const int64_t last_y = window.y + window.height - 1;
  const int64_t column = x.FirstMcu(window.x), row = y.FirstMcu(window.y);
  of.first_column = static_cast<uint32_t>(column);
  of.first_row = static_cast<uint32_t>(row);
  of.columns = static_cast<uint32_t>(x.LastMcu(last_x) - column + 1);
  of.rows = static_cast<uint32_t>(y.LastMcu(last_y) - row + 1);
  const int64_t together = y.fancy ? last_y | 1 : last_y;
  of.end_row = static_cast<uint32_t>(y.LastMcu(together) + 1);
  return of;
}

}  // namespace leat::worker
