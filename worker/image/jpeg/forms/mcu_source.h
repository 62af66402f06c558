// SPDX-License-Identifier: Apache-2.0
//
// McuSource: what gives libjpeg the coefficients of a scan, an MCU after the
// other. libjpeg does the rest, so that pixels have its bits: dequantisation,
// IDCT, upsampling, colour.
#pragma once

#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

namespace leat::worker {

class McuSource {
 public:
  // The next MCU, in the scan's order. Its blocks are all zero; null: nobody
  // looks at them. Neither throws nor keeps objects alive that have
  // destructors, since libjpeg is below. False: the coefficients are not to be
  // had, and libjpeg has to decode the file itself.
  virtual bool Next(JBLOCKROW* blocks) = 0;

 protected:
  ~McuSource() = default;
};

}  // namespace leat::worker
