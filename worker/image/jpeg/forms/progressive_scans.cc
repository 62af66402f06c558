// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/progressive_scans.h"

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/library_check.h"
#include "worker/image/jpeg/scan/blocks.h"
#include "worker/image/jpeg/scan/segments.h"

namespace leat::worker {
namespace {

// Markers (T.81, table B.1).
constexpr uint8_t kSequential = 0xc1, kHuffmanTables = 0xc4, kExtension = 0xc8,
                  kArithmeticTables = 0xcc, kScan = 0xda, kQuantisation = 0xdb,
                  kRestartInterval = 0xdd;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 28;

bool IsFrame(uint8_t marker) {
  return (marker & 0xf0) == 0xc0 && marker != kHuffmanTables &&
         marker != kExtension && marker != kArithmeticTables;
}

// Writes the marker and the length of a segment with `content` bytes of
// content.
void BeginSegment(uint8_t marker, size_t content, std::vector<uint8_t>* to) {
  const size_t length = content + 2;
  to->insert(to->end(), {0xff, marker, static_cast<uint8_t>(length >> 8),
                         static_cast<uint8_t>(length)});
}

void CopySegment(uint8_t marker, std::span<const std::byte> content,
                 std::vector<uint8_t>* to) {
  BeginSegment(marker, content.size(), to);
  for (const std::byte byte : content)
    to->push_back(static_cast<uint8_t>(byte));
}

// Each component gets its own table: if two name the same one, the file may
// have changed it between their first scans.
void WriteTable(const JQUANT_TBL& table, uint8_t number,
                std::vector<uint8_t>* to) {
  BeginSegment(kQuantisation, 1 + 2 * size_t{DCTSIZE2}, to);
  to->push_back(static_cast<uint8_t>(0x10 | number));  // 16 bits each
  for (size_t i = 0; i < DCTSIZE2; ++i) {
    const UINT16 value = table.quantval[kZigzag[i]];
    to->push_back(static_cast<uint8_t>(value >> 8));
    to->push_back(static_cast<uint8_t>(value));
  }
}

// Writes tables of one code, for DC and for AC coefficients. libjpeg demands
// tables, and nothing is decoded with them.
void WriteCodes(std::vector<uint8_t>* to) {
  constexpr size_t kOneCode = 1 + 16 + 1;
  BeginSegment(kHuffmanTables, 2 * kOneCode, to);
  for (const uint8_t number : {0x00, 0x10}) {
    to->push_back(number);
    to->push_back(1);  // one code of one bit
    to->insert(to->end(), 15 + 1, 0);
  }
}

}  // namespace

bool WriteSequentialHeader(std::span<const std::byte> file,
                           const jpeg_decompress_struct& cinfo,
                           std::vector<uint8_t>* to) {
  const auto components = static_cast<size_t>(cinfo.num_components);
  *to = {0xff, 0xd8};
  JpegSegments segments(file);
  int frames = 0;
  while (const auto segment = segments.Next()) {
    const uint8_t marker = segment->marker;
    if (marker == kHuffmanTables || marker == kArithmeticTables ||
        marker == kQuantisation || marker == kRestartInterval)
      continue;
    if (!IsFrame(marker)) {
      CopySegment(marker, segment->content, to);
      continue;
    }
    if (segment->content.size() != 6 + 3 * components) return false;
    CopySegment(kSequential, segment->content, to);
    for (size_t i = 0; i < components; ++i)
      (*to)[to->size() - 3 * (components - i) + 2] = static_cast<uint8_t>(i);
    ++frames;
  }
  if (frames != 1) return false;
  for (size_t i = 0; i < components; ++i) {
    if (cinfo.comp_info[i].quant_table == nullptr) return false;
    WriteTable(*cinfo.comp_info[i].quant_table, static_cast<uint8_t>(i), to);
  }
  WriteCodes(to);
  BeginSegment(kScan, 4 + 2 * components, to);
  to->push_back(static_cast<uint8_t>(components));
  for (size_t i = 0; i < components; ++i) {
    to->push_back(static_cast<uint8_t>(cinfo.comp_info[i].component_id));
    to->push_back(0);
  }
  to->insert(to->end(), {0, DCTSIZE2 - 1, 0});
  return true;
}

// Returns false if one scan cannot have all components.
bool ProgressiveScans::Describe(const jpeg_decompress_struct& cinfo) {
  const int components = cinfo.num_components;
  if (components < 1 || components > static_cast<int>(kMaxJpegComponents) ||
      cinfo.data_precision != 8)
    return false;
  layout_ = {.width = static_cast<uint16_t>(cinfo.image_width),
             .height = static_cast<uint16_t>(cinfo.image_height),
             .components = static_cast<uint8_t>(components)};
  const jpeg_component_info& first = cinfo.comp_info[0];
  if (components == 1) {  // its MCUs are blocks, whatever its sampling
    layout_.blocks = 1;
    layout_.columns = first.width_in_blocks;
    layout_.rows = first.height_in_blocks;
    return true;
  }
  size_t blocks = 0;
  for (int i = 0; i < components; ++i) {
    const jpeg_component_info& component = cinfo.comp_info[i];
    const int more = component.h_samp_factor * component.v_samp_factor;
    for (int j = 0; j < more; ++j) {
      if (blocks == kMaxMcuBlocks) return false;
      layout_.component_of[blocks++] = static_cast<uint8_t>(i);
    }
  }
  const auto mcus = [](JDIMENSION pixels, int factor) {
    const auto side = static_cast<JDIMENSION>(factor * DCTSIZE);
    return (pixels + side - 1) / side;
  };
  layout_.blocks = static_cast<uint8_t>(blocks);
  layout_.columns = mcus(cinfo.image_width, cinfo.max_h_samp_factor);
  layout_.rows = mcus(cinfo.image_height, cinfo.max_v_samp_factor);
  return true;
}

// Keeps no object with a destructor: libjpeg may jump. Returns false if there
// are too many bytes.
bool ProgressiveScans::TakeRow(j_decompress_ptr cinfo, jvirt_barray_ptr* arrays,
                               uint32_t row) {
  JBLOCKARRAY rows[kMaxMcuBlocks] = {};
  for (int i = 0; i < cinfo->num_components; ++i) {
    const auto high = static_cast<JDIMENSION>(
        layout_.components == 1 ? 1 : cinfo->comp_info[i].v_samp_factor);
    rows[i] =
        cinfo->mem->access_virt_barray(reinterpret_cast<j_common_ptr>(cinfo),
                                       arrays[i], row * high, high, FALSE);
  }
  writer_.BeginRow();
  JBLOCK dropped;
  for (uint32_t column = 0; column < layout_.columns; ++column) {
    uint8_t* to = writer_.Room();
    if (to == nullptr) return false;
    for (int i = 0; i < cinfo->num_components; ++i) {
      const jpeg_component_info& component = cinfo->comp_info[i];
      const bool alone = layout_.components == 1;
      const auto wide =
          static_cast<uint32_t>(alone ? 1 : component.h_samp_factor);
      const auto high =
          static_cast<uint32_t>(alone ? 1 : component.v_samp_factor);
      for (uint32_t y = 0; y < high; ++y)
        for (uint32_t x = 0; x < wide; ++x) {
          const JCOEF* const block = rows[i][y][column * wide + x];
          CoefficientSink sink(to, dropped);
          sink.Dc(block[0]);
          for (unsigned at = 1; at < DCTSIZE2; ++at)
            if (block[kZigzag[at]] != 0) sink.Ac(at, block[kZigzag[at]]);
          to = sink.Finish();
        }
    }
    writer_.Took(to);
  }
  return true;
}

absl::Status ProgressiveScans::Take(j_decompress_ptr cinfo,
                                    std::span<const std::byte> file,
                                    size_t max_bytes,
                                    const std::atomic<uint32_t>* give_up) {
  file_ = file;
  if (!Describe(*cinfo) ||
      !WriteSequentialHeader(file, *cinfo, &file_header_) ||
      file_header_.size() >= file.size() || file.size() > kMaxFileBytes)
    return FailedPrecondition(
        "progressive JPEG of {} bytes with {} components: there are no "
        "coefficients of one that is too large, has an odd header, or whose "
        "components do not fit one scan",
        file.size(), cinfo->num_components);
  layout_.scan_begin = static_cast<uint32_t>(file_header_.size());
  writer_.Begin(file.size(), max_bytes);
  for (uint32_t row = 0; row < layout_.rows; ++row) {
    if (give_up != nullptr && *give_up != 0)
      return Cancelled("the decoding was given up");
    if (!TakeRow(cinfo, CoefficientsOf(cinfo), row)) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const JpegForm>> ProgressiveScans::Make() {
  return writer_.Make({.layout = layout_,
                       .file_bytes = static_cast<uint32_t>(file_.size()),
                       .file_crc = Crc32c(file_)},
                      file_header_);
}

}  // namespace leat::worker
