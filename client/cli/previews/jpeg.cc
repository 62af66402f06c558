// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <optional>

#include "fmt/format.h"
// After <cstdio>, which it needs.
#include "jpeglib.h"

namespace leat::cli {
namespace {

constexpr size_t kMaxProblems = 16;

uint32_t Big16(std::string_view data, size_t at) {
  return static_cast<uint32_t>(static_cast<uint8_t>(data[at])) << 8 |
         static_cast<uint8_t>(data[at + 1]);
}

void AddProblem(JpegReport& report, std::string problem) {
  if (report.problems.size() < kMaxProblems) {
    report.problems.push_back(std::move(problem));
  }
}

// Returns EXIF's tag 0x0112 of the first directory; 0: none or damaged.
uint32_t ExifOrientation(std::string_view exif) {
  if (exif.size() < 8) return 0;
  const bool little = exif.starts_with("II");
  if (!little && !exif.starts_with("MM")) return 0;
  const auto u16 = [&](size_t at) {
    const uint32_t big = Big16(exif, at);
    return little ? (big & 0xFF) << 8 | big >> 8 : big;
  };
  const auto u32 = [&](size_t at) -> uint64_t {
    return little ? u16(at) | static_cast<uint64_t>(u16(at + 2)) << 16
                  : static_cast<uint64_t>(u16(at)) << 16 | u16(at + 2);
  };
  const uint64_t directory = u32(4);
  if (u16(2) != 42 || directory > exif.size() - 2) return 0;
  const uint32_t entries = u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12ull * i;
    if (entry + 12 > exif.size()) return 0;
    if (u16(entry) == 0x0112) {
      const uint32_t value = u16(entry + 8);
      return value >= 1 && value <= 8 ? value : 0;
    }
  }
  return 0;
}

std::string Process(uint8_t sof) {
  switch (sof) {
    case 0xC0:
      return "baseline";
    case 0xC1:
    case 0xC9:
      return "extended sequential";
    case 0xC2:
    case 0xCA:
      return "progressive";
    case 0xC3:
    case 0xCB:
      return "lossless";
    default:
      return "hierarchical";
  }
}

std::string Subsampling(std::string_view factors) {
  // Components are (id, sampling, table): the first is luma, the others are
  // equal.
  const auto h = [&](size_t i) { return factors[3 * i + 1] >> 4 & 15; };
  const auto v = [&](size_t i) { return factors[3 * i + 1] & 15; };
  if (factors.size() < 9 || h(1) == 0 || v(1) == 0) return "";
  if (h(1) != h(2) || v(1) != v(2) || h(0) % h(1) != 0 || v(0) % v(1) != 0) {
    return fmt::format("{}x{},{}x{},{}x{}", h(0), v(0), h(1), v(1), h(2), v(2));
  }
  const int across = h(0) / h(1), down = v(0) / v(1);
  if (across == 1 && down == 1) return "4:4:4";
  if (across == 2 && down == 1) return "4:2:2";
  if (across == 2 && down == 2) return "4:2:0";
  if (across == 4 && down == 1) return "4:1:1";
  if (across == 4 && down == 2) return "4:1:0";
  if (across == 1 && down == 2) return "4:4:0";
  if (across == 2 && down == 4) return "2x4";
  return fmt::format("{}x{}", across, down);
}

struct Walk {
  bool saw_end = false;
  int adobe_transform = -1;
};

void ReadFrame(uint8_t marker, std::string_view segment, JpegReport& report) {
  if (report.width != 0 || report.components != 0) {
    AddProblem(report, "more than one frame header");
    return;
  }
  if (segment.size() < 6) {
    AddProblem(report, "frame header of too few bytes");
    return;
  }
  report.precision = static_cast<uint8_t>(segment[0]);
  report.height = Big16(segment, 1);
  report.width = Big16(segment, 3);
  report.components = static_cast<uint8_t>(segment[5]);
  report.process = Process(marker);
  report.arithmetic = marker >= 0xC9;
  if (report.components >= 3)
    report.subsampling = Subsampling(segment.substr(6));
}

void ReadSegment(uint8_t marker, std::string_view segment, Walk& walk,
                 JpegReport& report) {
  const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 &&
                     marker != 0xC8 && marker != 0xCC;
  if (frame) ReadFrame(marker, segment, report);
  if (marker == 0xDA) ++report.scans;
  if (marker == 0xDD && segment.size() >= 2) {
    report.restart_interval = Big16(segment, 0);
  }
  if ((marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE) {
    report.metadata_bytes += segment.size();
  }
  using namespace std::string_view_literals;
  if (marker == 0xE1 && segment.starts_with("Exif\0\0"sv)) {
    report.orientation = ExifOrientation(segment.substr(6));
  }
  if (marker == 0xE2 && segment.starts_with("ICC_PROFILE\0"sv)) {
    report.icc_profile = true;
  }
  if (marker == 0xEE && segment.starts_with("Adobe") && segment.size() >= 12) {
    walk.adobe_transform = static_cast<uint8_t>(segment[11]);
  }
}

// Goes from marker to marker, also past entropy-coded data.
Walk WalkMarkers(std::string_view file, JpegReport& report) {
  Walk walk;
  size_t at = 2;
  while (at + 1 < file.size()) {
    const auto marker = static_cast<uint8_t>(file[at + 1]);
    const bool stuffed = marker == 0 || (marker >= 0xD0 && marker <= 0xD7);
    if (file[at] != '\xFF' || stuffed || marker == 0x01) {
      const size_t next = file.find('\xFF', at + 1);
      if (next == std::string_view::npos) break;
      at = next;
      continue;
    }
    if (marker == 0xFF) {  // fill
      ++at;
      continue;
    }
    if (marker == 0xD9) {
      walk.saw_end = true;
      break;
    }
    const size_t size = at + 4 <= file.size() ? Big16(file, at + 2) : 0;
    if (size < 2 || at + 2 + size > file.size()) {
      AddProblem(report,
                 fmt::format("segment 0x{:02X} at byte {} is cut off or has a "
                             "wrong length",
                             marker, at));
      break;
    }
    ReadSegment(marker, file.substr(at + 4, size - 2), walk, report);
    at += 2 + size;
  }
  if (!walk.saw_end) AddProblem(report, "no end marker: the file is cut off");
  return walk;
}

std::string Colors(const JpegReport& report, const Walk& walk) {
  switch (report.components) {
    case 1:
      return "gray";
    case 3:
      return walk.adobe_transform == 0 ? "RGB" : "YCbCr";
    case 4:
      return walk.adobe_transform == 2 ? "YCCK" : "CMYK";
    default:
      return fmt::format("{} components", report.components);
  }
}

// libjpeg reports through this; `report` is not owned.
struct Decoder {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  std::jmp_buf escape;
  char fatal[JMSG_LENGTH_MAX];
  char warning[JMSG_LENGTH_MAX];
  long warnings;
};

void OnFatal(j_common_ptr info) {
  auto* decoder = static_cast<Decoder*>(info->client_data);
  info->err->format_message(info, decoder->fatal);
  std::longjmp(decoder->escape, 1);
}

void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;  // a trace
  auto* decoder = static_cast<Decoder*>(info->client_data);
  if (decoder->warnings++ == 0) {
    info->err->format_message(info, decoder->warning);
  }
}

// No object with a destructor lives between setjmp and longjmp. `row` holds a
// decoded row of at most 65,500 pixels of 4 bytes. Returns true if every row
// was decoded.
bool DecodeAll(std::string_view file, Decoder& decoder, uint8_t* row) {
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = OnFatal;
  decoder.errors.emit_message = OnMessage;
  decoder.info.client_data = &decoder;
  if (setjmp(decoder.escape) != 0) {
    jpeg_destroy_decompress(&decoder.info);
    return false;
  }
  jpeg_create_decompress(&decoder.info);
  decoder.info.client_data = &decoder;
  jpeg_mem_src(&decoder.info,
               reinterpret_cast<const unsigned char*>(file.data()),
               file.size());
  jpeg_read_header(&decoder.info, TRUE);
  decoder.info.out_color_space = decoder.info.num_components == 4 ? JCS_CMYK
                                 : decoder.info.num_components == 1
                                     ? JCS_GRAYSCALE
                                     : JCS_RGB;
  jpeg_start_decompress(&decoder.info);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  jpeg_finish_decompress(&decoder.info);
  jpeg_destroy_decompress(&decoder.info);
  return true;
}

void TryDecode(std::string_view file, JpegReport& report) {
  Decoder decoder{};
  std::vector<uint8_t> row(size_t{4} * 65536);
  report.decodes = DecodeAll(file, decoder, row.data());
  if (!report.decodes) {
    AddProblem(report, fmt::format("cannot be decoded: {}", decoder.fatal));
  }
  if (decoder.warnings > 0) {
    AddProblem(report, fmt::format("decoder: {}{}", decoder.warning,
                                   decoder.warnings > 1
                                       ? fmt::format(" (and {} more)",
                                                     decoder.warnings - 1)
                                       : ""));
  }
}

}  // namespace

JpegReport InspectJpeg(std::string_view file) {
  JpegReport report;
  if (!file.starts_with("\xFF\xD8")) {
    AddProblem(report, "not a JPEG: it does not begin with FF D8");
    return report;
  }
  const Walk walk = WalkMarkers(file, report);
  report.colors = Colors(report, walk);
  const uint64_t pixels = static_cast<uint64_t>(report.width) * report.height;
  if (report.components == 0) {
    AddProblem(report, "no frame header");
  } else if (pixels == 0) {
    AddProblem(report, "no pixels");
  } else if (pixels > kMaxJpegPixels) {
    AddProblem(report, fmt::format("{} pixels; a worker decodes at most {}",
                                   pixels, kMaxJpegPixels));
  } else if (report.scans > kMaxJpegScans) {
    AddProblem(report, fmt::format("{} scans; a worker decodes at most {}",
                                   report.scans, kMaxJpegScans));
  } else {
    TryDecode(file, report);
  }
  return report;
}

}  // namespace leat::cli
