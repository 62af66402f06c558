// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/device_codes.h"

#include <algorithm>
#include <cstring>

namespace leat::worker {
namespace {

// One thread of a device adds up the segments of longer scans for too long.
constexpr size_t kMostScanBytes = size_t{8} << 20;

// A thread decodes the data between two restart markers: some milliseconds.
constexpr ptrdiff_t kMostRunBytes = ptrdiff_t{64} << 10;
// The runs between restart markers take fewer bytes than a large file.
constexpr size_t kMostRuns = size_t{1} << 16;

// Returns the first 0xff that is no data: any byte but a 0 is behind it.
const uint8_t* EndOfData(const uint8_t* at, const uint8_t* end) {
  while (at < end) {
    const void* const found =
        std::memchr(at, 0xff, static_cast<size_t>(end - at));
    if (found == nullptr) return end;
    at = static_cast<const uint8_t*>(found);
    if (end - at < 2 || at[1] != 0) return at;
    at += 2;
  }
  return end;
}

// Moves behind restart marker number `interval` modulo 8, before which further
// bytes 0xff mean nothing. Returns false if there is another one, or none.
bool PassRestart(uint64_t interval, const uint8_t** at, const uint8_t* end) {
  while (*at < end && **at == 0xff) ++*at;
  if (*at == end || **at != 0xd0 + interval % 8) return false;
  ++*at;
  return true;
}

// Returns the end of the data that the MCUs before an entry's have bits of: of
// its own byte, and of the 0 after it if that byte is 0xff.
size_t EndBefore(uint32_t bit_offset, size_t data_bytes) {
  return std::min<size_t>(size_t{bit_offset} / 8 + 2, data_bytes);
}

}  // namespace

bool DeviceCodes::Take(const FileScan& scan) {
  if (scan.data.empty() || scan.data.size() > kMostScanBytes) return false;
  layout = scan.layout;
  data = scan.data;
  runs.clear();
  restarts = false;
  return true;
}

bool DeviceCodes::FindRestarts(const FileScan& scan, uint32_t interval) {
  layout = scan.layout;
  runs.clear();
  restarts = true;
  const uint32_t needed = window.end_row * layout.columns;
  const uint8_t* const begin = scan.data.data();
  const uint8_t* const end = begin + std::min(scan.data.size(), kMostScanBytes);
  const uint8_t* at = begin;
  for (uint32_t first = 0;;) {
    const uint32_t count = std::min(interval, needed - first);
    const uint8_t* const stop = EndOfData(at, end);
    if (stop - at > kMostRunBytes || runs.size() == kMostRuns) return false;
    runs.push_back({.begin = {.bit = static_cast<uint32_t>(8 * (at - begin))},
                    .first = first,
                    .end = first + count});
    at = stop;
    first += count;
    if (first == needed) break;
    if (!PassRestart(runs.size() - 1, &at, end)) return false;
  }
  data = scan.data.first(static_cast<size_t>(at - begin));
  return true;
}

bool DeviceCodes::Find(const FileScan& scan, const SeekIndex& index) {
  if (index.rows() < window.end_row) return false;
  layout = scan.layout;
  const uint32_t first = first_group(), count = runs_of_row();
  const uint32_t end_row = window.first_row + window.rows;
  const uint32_t end_column = window.first_column + window.columns;
  runs.clear();
  restarts = false;
  const uint32_t begin = index.At(window.first_row, first).bit_offset / 8;
  for (uint32_t row = window.first_row; row < end_row; ++row)
    for (uint32_t group = first; group < first + count; ++group) {
      const SeekIndex::Entry entry = index.At(row, group);
      CodeRun& run = runs.emplace_back();
      run.begin.bit = entry.bit_offset - 8 * begin;
      for (size_t i = 0; i < entry.predictors.size(); ++i)
        run.begin.predictors[i] = static_cast<int16_t>(entry.predictors[i]);
      run.first = row * layout.columns + group * SeekIndex::kStep;
      run.end = row * layout.columns +
                std::min((group + 1) * SeekIndex::kStep, end_column);
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
