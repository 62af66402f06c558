// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/window_codes.h"

#include <algorithm>

namespace leat::worker {
namespace {

// One thread of a device adds up the segments of longer scans for too long.
constexpr size_t kMostScanBytes = size_t{8} << 20;

// Returns the end of the data that the MCUs before an entry's have bits of: of
// its own byte, and of the 0 after it if that byte is 0xff.
size_t EndBefore(uint32_t bit_offset, size_t data_bytes) {
  return std::min<size_t>(size_t{bit_offset} / 8 + 2, data_bytes);
}

}  // namespace

bool WindowCodes::Take(const FileScan& scan) {
  if (scan.data.empty() || scan.data.size() > kMostScanBytes) return false;
  layout = scan.layout;
  data = scan.data;
  runs.clear();
  return true;
}

bool WindowCodes::Find(const FileScan& scan, const SeekIndex& index) {
  if (index.rows() < window.end_row) return false;
  layout = scan.layout;
  const uint32_t first = first_group(), count = runs_of_row();
  const uint32_t end_row = window.first_row + window.rows;
  runs.clear();
  const uint32_t begin = index.At(window.first_row, first).bit_offset / 8;
  for (uint32_t row = window.first_row; row < end_row; ++row)
    for (uint32_t group = first; group < first + count; ++group) {
      const SeekIndex::Entry entry = index.At(row, group);
      CodeRun& run = runs.emplace_back();
      run.bit = entry.bit_offset - 8 * begin;
      for (size_t i = 0; i < entry.predictors.size(); ++i)
        run.predictors[i] = static_cast<int16_t>(entry.predictors[i]);
    }
  size_t end = scan.data.size();
  if (first + count < SeekIndex::EntriesOfRow(layout))
    end = EndBefore(index.At(end_row - 1, first + count).bit_offset, end);
  else if (end_row < layout.rows)
    end = EndBefore(index.At(end_row, 0).bit_offset, end);
  data = scan.data.subspan(begin, end - begin);
  return true;
}

}  // namespace leat::worker
