// SPDX-License-Identifier: Apache-2.0
//
// DeviceCodes: the codes of a window's MCUs, for a device that decodes them and
// makes pixels from them with the bits of libjpeg
// (worker/image/formulas/jpeg_codes.h, jpeg_pixel.h).
//
// A run begins where decoding can begin, and the device finds the blocks that
// are not exact:
//
//   by a seek index       for each row of MCUs, at each entry from the one that
//                         leads to the window's first column on; the decode
//                         that made the index has found all codes of its rows
//                         sound
//   by restart markers    at the file's begin and behind each marker, down to
//                         the last MCU that libjpeg would decode
//   by neither            there are no runs: the device finds its places in the
//                         whole scan by itself (formulas/jpeg_sync.h)
//
// Example: the window needs the columns 20 to 40 of MCUs. Each of its rows has
// runs from column 16 on and from 32 on; the first one decodes and drops 4 MCUs,
// and the second one ends after 9.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/image/formulas/jpeg_codes.h"
#include "worker/image/jpeg/forms/block_reader.h"
#include "worker/image/jpeg/forms/seek_index.h"
#include "worker/image/jpeg/scan/block_window.h"

namespace leat::worker {

// Borrows the file and the tables. A thread reuses one from file to file, so
// that it allocates nothing.
struct DeviceCodes {
  BlockWindow window;
  std::array<BlockSteps, 3> steps{};
  ScanLayout layout;
  // Per component.
  std::array<const CodeTable*, 3> dc{}, ac{};
  // The data from the first run on, and the runs, whose bits are counted from
  // the data's begin. No runs: the data from the scan's begin on.
  std::span<const uint8_t> data;
  std::vector<CodeRun> runs;
  bool restarts = false;  // the runs are by restart markers
  // True if the device is to leave a seek index of the rows down to
  // window.end_row.
  bool leaves_index = false;

  uint32_t first_group() const {
    return window.first_column / SeekIndex::kStep;
  }
  uint32_t runs_of_row() const {
    return (window.first_column + window.columns - 1) / SeekIndex::kStep -
           first_group() + 1;
  }

  // Sets `data` and `runs`. Returns false if the index does not know all rows
  // that have to be sound for the window. REQUIRES: `window` is set, and is one
  // of the scan's image; the index fits the scan.
  bool Find(const FileScan& scan, const SeekIndex& index);
  // The same by restart markers, each behind `interval` MCUs. Returns false if
  // one is missing, has another number than the next one, or is far behind the
  // one before: libjpeg finds out what that means. REQUIRES: interval > 0.
  bool FindRestarts(const FileScan& scan, uint32_t interval);
  // The same without either. Returns false if the scan is too long.
  bool Take(const FileScan& scan);
};

}  // namespace leat::worker
