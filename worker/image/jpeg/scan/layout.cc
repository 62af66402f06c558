// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/layout.h"

#include <algorithm>

#include "core/status.h"

namespace leat::worker {
namespace {

// Samples along a side, at the scale that is decoded.
int SamplesOfBlock(const jpeg_component_info& component) {
#if JPEG_LIB_VERSION >= 70
  return std::max(component.DCT_h_scaled_size, component.DCT_v_scaled_size);
#else
  return component.DCT_scaled_size;
#endif
}

constexpr uint64_t kMaxScanBytes = uint64_t{1} << 28;  // bit offsets fit

template <class Value>
absl::Status Refused(const char* what, const Value& value) {
  return FailedPrecondition(
      "JPEG has {} ({}): forms are made of files of one sequential scan, "
      "Huffman coded, 8 bits, without restart markers",
      what, value);
}

}  // namespace

absl::Status CheckHasForms(const jpeg_decompress_struct& cinfo) {
  if (cinfo.restart_interval != 0)
    return Refused("a restart interval", cinfo.restart_interval);
  return CheckHasCodes(cinfo);
}

absl::Status CheckHasCodes(const jpeg_decompress_struct& cinfo) {
  if (cinfo.progressive_mode) return Refused("several scans", "progressive");
  if (cinfo.arith_code) return Refused("another coding", "arithmetic");
  if (cinfo.data_precision != 8)
    return Refused("another number of bits", cinfo.data_precision);
  if (cinfo.comps_in_scan != cinfo.num_components)
    return Refused("several scans", cinfo.comps_in_scan);
  if (cinfo.num_components < 1 ||
      cinfo.num_components > static_cast<int>(kMaxJpegComponents))
    return Refused("too many components", cinfo.num_components);
  if (cinfo.src->bytes_in_buffer > kMaxScanBytes)
    return Refused("too many bytes", cinfo.src->bytes_in_buffer);
  return absl::OkStatus();
}

bool DescribeScan(const jpeg_decompress_struct& cinfo,
                  std::span<const std::byte> file, HuffmanTables* tables,
                  FileScan* scan, WantedBlocks* wanted) {
  const size_t left = cinfo.src->bytes_in_buffer;
  if (left > file.size() || cinfo.blocks_in_MCU < 1 ||
      cinfo.blocks_in_MCU > static_cast<int>(kMaxMcuBlocks))
    return false;
  ScanLayout& layout = scan->layout;
  layout = {.width = static_cast<uint16_t>(cinfo.image_width),
            .height = static_cast<uint16_t>(cinfo.image_height),
            .components = static_cast<uint8_t>(cinfo.num_components),
            .blocks = static_cast<uint8_t>(cinfo.blocks_in_MCU),
            .columns = cinfo.MCUs_per_row,
            .rows = cinfo.MCU_rows_in_scan,
            .scan_begin = static_cast<uint32_t>(file.size() - left)};
  scan->data = {
      reinterpret_cast<const uint8_t*>(file.data()) + file.size() - left, left};
  if (tables != nullptr && !tables->Build(cinfo, left)) return false;
  for (size_t i = 0; i < layout.blocks; ++i) {
    const int number = cinfo.MCU_membership[i];
    if (number < 0 || number >= layout.components) return false;
    const jpeg_component_info& component = *cinfo.cur_comp_info[number];
    layout.component_of[i] = static_cast<uint8_t>(number);
    scan->dc[i] =
        tables == nullptr ? nullptr : &tables->dc(component.dc_tbl_no);
    scan->ac[i] =
        tables == nullptr ? nullptr : &tables->ac(component.ac_tbl_no);
    wanted->of_needed_component[i] = component.component_needed != FALSE;
    wanted->dc_only[i] = SamplesOfBlock(component) == 1;
  }
  return true;
}

}  // namespace leat::worker
