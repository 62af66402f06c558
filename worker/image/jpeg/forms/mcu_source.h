// SPDX-License-Identifier: Apache-2.0
//
// McuSource: gives libjpeg the coefficients of a scan, one MCU after the other.
// libjpeg does the rest, so that pixels have its bits: dequantisation, IDCT,
// upsampling, colour.
#pragma once

#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

namespace leat::worker {

class McuSource {
 public:
  // Reads the next MCU, in the scan's order. Its blocks are all zero; nullptr:
  // they are not used. It must not throw or keep objects alive that have
  // destructors, since libjpeg is its caller and may jump. Returns false if the
  // coefficients are not available, and libjpeg has to decode the file itself.
  virtual bool Next(JBLOCKROW* blocks) = 0;

 protected:
  ~McuSource() = default;
};

}  // namespace leat::worker
