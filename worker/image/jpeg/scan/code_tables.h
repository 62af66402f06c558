// SPDX-License-Identifier: Apache-2.0
//
// CodeTables: the Huffman tables of a scan as kernels look them up. Most files
// have the same tables as the file before; these are built once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

#include "worker/image/formulas/jpeg_codes.h"
#include "worker/image/jpeg/scan/huffman.h"

namespace leat::worker {

// Thread-compatible.
class CodeTables {
 public:
  // Return the table of this number; nullptr: it is missing, or makes no code.
  // It is valid until the next call with this number.
  const CodeTable* Dc(const jpeg_decompress_struct& cinfo, int number) {
    return Of(cinfo.dc_huff_tbl_ptrs, number, 0);
  }
  const CodeTable* Ac(const jpeg_decompress_struct& cinfo, int number) {
    return Of(cinfo.ac_huff_tbl_ptrs, number, NUM_HUFF_TBLS);
  }

 private:
  struct Table {
    HuffmanCode code;
    CodeTable table;
  };
  const CodeTable* Of(JHUFF_TBL* const (&tables)[NUM_HUFF_TBLS], int number,
                      size_t first);

  std::array<Table, 2 * NUM_HUFF_TBLS> tables_{};
};

}  // namespace leat::worker
