// SPDX-License-Identifier: Apache-2.0
#include "tests/support/odd_images.h"

#include <cstdint>

#include "fmt/format.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"

namespace leat::testing {
namespace {

constexpr size_t kNowhere = std::string::npos;

std::string Big16(size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value)};
}

// Makes a marker segment.
std::string Segment(uint8_t marker, const std::string& content) {
  return std::string{'\xff', static_cast<char>(marker)} +
         Big16(content.size() + 2) + content;
}

// Inserts `added` after the marker that every file begins with.
std::string AfterStart(const std::string& jpeg, const std::string& added) {
  return jpeg.substr(0, 2) + added + jpeg.substr(2);
}

// Gives it quantisation tables of 16-bit entries with the same values. The
// frame becomes an extended one, since baseline has only 8 bits.
std::string WithWideTables(std::string jpeg) {
  for (size_t at = 2; at + 4 < jpeg.size();) {
    const auto marker = static_cast<uint8_t>(jpeg[at + 1]);
    const size_t size = static_cast<uint8_t>(jpeg[at + 2]) * 256u +
                        static_cast<uint8_t>(jpeg[at + 3]);
    if (marker == 0xDA) break;
    if (marker == 0xC0) jpeg[at + 1] = '\xc1';
    if (marker != 0xDB) {
      at += 2 + size;
      continue;
    }
    std::string wide;
    for (size_t table = at + 4; table < at + 2 + size; table += 65) {
      wide.push_back(static_cast<char>(0x10 | jpeg[table]));
      for (size_t i = 1; i <= 64; ++i)
        wide += Big16(static_cast<uint8_t>(jpeg[table + i]));
    }
    const std::string segment = Segment(0xDB, wide);
    jpeg.replace(at, 2 + size, segment);
    at += segment.size();
  }
  return jpeg;
}

// Removes its Huffman tables, as in frames of Motion JPEG: readers have the
// usual ones.
std::string WithoutTables(std::string jpeg) {
  for (size_t at = jpeg.find("\xff\xc4"); at != kNowhere;
       at = jpeg.find("\xff\xc4"))
    jpeg.erase(at, 2 + static_cast<uint8_t>(jpeg[at + 2]) * 256u +
                       static_cast<uint8_t>(jpeg[at + 3]));
  return jpeg;
}

// Adds 0xFF before the first marker after the start: fill bytes without
// meaning.
std::string WithFillBytes(const std::string& jpeg) {
  return AfterStart(jpeg, std::string(5, '\xff'));
}

// Writes bits, highest first; a byte of ones is followed by a zero byte.
class BitWriter {
 public:
  void Put(uint32_t value, int count) {
    for (int i = count - 1; i >= 0; --i) {
      byte_ = byte_ << 1 | (value >> i & 1);
      if (++bits_ == 8) Flush();
    }
  }
  std::string Finish() {
    while (bits_ > 0) Put(1, 1);
    return out_;
  }

 private:
  void Flush() {
    out_.push_back(static_cast<char>(byte_));
    if ((byte_ & 0xFF) == 0xFF) out_.push_back('\0');
    byte_ = 0;
    bits_ = 0;
  }
  std::string out_;
  uint32_t byte_ = 0;
  int bits_ = 0;
};

// Encodes process 14 (ITU-T T.81, annex H): 8 bits of gray, each predicted by
// the one to its left, or above in the first column. The size of a difference,
// 0 to 8, is its own code of 4 bits.
std::string LosslessJpeg(int width, int height) {
  std::string lengths(16, '\0');
  lengths[3] = 9;
  std::string sizes;
  for (char i = 0; i < 9; ++i) sizes.push_back(i);
  BitWriter bits;
  std::vector<int> above(width, 0);
  for (int y = 0; y < height; ++y) {
    int left = 0;
    for (int x = 0; x < width; ++x) {
      const int pixel = (x * 3 + y * 2) % 120 + (x / 9 + y / 7) % 2 * 50;
      const int predicted = x > 0 ? left : y > 0 ? above[0] : 128;
      const int difference = pixel - predicted;
      int size = 0;
      while (std::abs(difference) >> size != 0) ++size;
      bits.Put(static_cast<uint32_t>(size), 4);
      bits.Put(
          static_cast<uint32_t>(difference < 0 ? difference - 1 : difference),
          size);
      left = above[x] = pixel;
    }
  }
  return "\xff\xd8" +
         Segment(0xC3, '\x08' + Big16(height) + Big16(width) +
                           std::string("\x01\x01\x11\x00", 4)) +
         Segment(0xC4, '\0' + lengths + sizes) +
         Segment(0xDA, std::string("\x01\x01\x00\x01\x00\x00", 6)) +
         bits.Finish() + "\xff\xd9";
}

void AddSamplings(NamedFiles* files) {
  static constexpr struct {
    const char* name;
    int h, v;
  } kSamplings[] = {{"444", 1, 1}, {"422", 2, 1}, {"440", 1, 2}, {"420", 2, 2},
                    {"411", 4, 1}, {"410", 4, 2}, {"2x4", 2, 4}, {"3x1", 3, 1}};
  for (const auto& [name, h, v] : kSamplings)
    files->emplace_back(
        fmt::format("{}.jpg", name),
        MakeJpeg({.width = 320, .height = 240, .h = h, .v = v, .seed = 3}));
  for (const auto& [width, height] :
       {std::pair{1, 1}, {1, 400}, {900, 1}, {8, 8}, {17, 15}, {3, 200}})
    files->emplace_back(fmt::format("420-{}x{}.jpg", width, height),
                        MakeJpeg({.width = width, .height = height}));
}

void AddCodings(NamedFiles* files) {
  JpegSpec usual{.width = 250, .height = 190, .seed = 5};
  const auto add = [&](const char* name, auto change) {
    JpegSpec spec = usual;
    change(spec);
    files->emplace_back(name, MakeJpeg(spec));
  };
  add("420-odd-both.jpg", [](auto& s) { s.width = 641, s.height = 427; });
  add("gray.jpg", [](auto& s) { s.color = JpegColor::kGray, s.h = s.v = 1; });
  add("rgb-adobe.jpg",
      [](auto& s) { s.color = JpegColor::kRgb, s.h = s.v = 1; });
  add("progressive.jpg", [](auto& s) { s.progressive = true; });
  add("progressive-40-scans.jpg", [](auto& s) { s.scans = 40; });
  add("arithmetic.jpg", [](auto& s) { s.arithmetic = true; });
  add("restarts.jpg", [](auto& s) { s.restart_interval = 1; });
  add("quality-1.jpg", [](auto& s) { s.quality = 1; });
  add("quality-100.jpg", [](auto& s) { s.quality = 100; });
  add("no_exif.jpg", [](auto& s) { s.orientation = 0; });
  add("mirror_horizontal.jpg", [](auto& s) { s.orientation = 2; });
  add("rotate_90.jpg", [](auto& s) { s.orientation = 6; });
  add("rotate_270-big-endian.jpg",
      [](auto& s) { s.orientation = 8, s.exif_big_endian = true; });
}

void AddMarkers(NamedFiles* files) {
  const std::string usual = MakeJpeg({.width = 160, .height = 120, .seed = 7});
  files->emplace_back("wide-tables.jpg", WithWideTables(usual));
  files->emplace_back("fill-bytes.jpg", WithFillBytes(usual));
  files->emplace_back("no-huffman-tables.jpg", WithoutTables(usual));
  files->emplace_back(
      "comments.jpg",
      AfterStart(usual, Segment(0xFE, std::string(65533, 'c')) +
                            Segment(0xFE, "") + Segment(0xE2, "ICC_PROFILE")));
  files->emplace_back("more-behind-the-end.jpg", usual + usual);
}

}  // namespace

NamedFiles OddImages() {
  NamedFiles files;
  AddSamplings(&files);
  AddCodings(&files);
  AddMarkers(&files);
  for (const auto& [name, color] : {std::pair{"cmyk", JpegColor::kCmyk},
                                    std::pair{"ycck", JpegColor::kYcck}})
    files.emplace_back(fmt::format("{}.jpeg", name),
                       MakeJpeg({.width = 120, .height = 90, .color = color}));
  const Picture rgb = MakePicture(150, 110, 3), gray = MakePicture(61, 47, 1);
  files.emplace_back("png.jpeg", MakePng(rgb));
  files.emplace_back("gray.png", MakePng(gray));
  files.emplace_back("interlaced.png", MakePng(rgb, {.interlaced = true}));
  files.emplace_back("photo.webp", MakeWebp(rgb, {.lossless = false}));
  files.emplace_back("top-down.bmp", MakeBmp(rgb, {.top_down = true}));
  files.emplace_back("tiles.tiff", MakeTiff(rgb, {.tile = 32}));
  files.emplace_back("boxed.jp2", MakeJpeg2000(rgb));
  return files;
}

NamedFiles DamagedImages() {
  const std::string usual = MakeJpeg({.width = 160, .height = 120, .seed = 9});
  const size_t frame = usual.find("\xff\xc0");
  const size_t scan = usual.find("\xff\xda");
  NamedFiles files;
  const auto patched = [&](size_t at, const std::string& bytes) {
    std::string jpeg = usual;
    return jpeg.replace(at, bytes.size(), bytes);
  };
  files.emplace_back("empty.jpg", "");
  files.emplace_back("start-alone.jpg", usual.substr(0, 2));
  files.emplace_back("cut-in-header.jpg", usual.substr(0, frame + 6));
  files.emplace_back("cut-at-scan.jpg", usual.substr(0, scan + 4));
  files.emplace_back("cut-in-half.jpg", usual.substr(0, usual.size() / 2));
  files.emplace_back("cut-before-end.jpg", usual.substr(0, usual.size() - 2));
  files.emplace_back("garbage.jpg", std::string("\xff\xd8\xff\xe0") +
                                        MakePng(MakePicture(30, 30, 3)));
  files.emplace_back("text.jpg", "<html>404 Not Found</html>\n");
  files.emplace_back("no-components.jpg",
                     patched(frame + 9, std::string(1, '\0')));
  files.emplace_back("no-width.jpg", patched(frame + 7, Big16(0)));
  files.emplace_back("sampling-of-0.jpg", patched(frame + 11, "\x02"));
  files.emplace_back("table-of-no-segment.jpg", patched(frame + 12, "\x03"));
  files.emplace_back("segment-beyond-the-end.jpg",
                     AfterStart(usual, "\xff\xe5\xff\xff"));
  files.emplace_back("12-bits.jpg", patched(frame + 4, "\x0c"));
  files.emplace_back("lossless.jpg", LosslessJpeg(96, 64));
  return files;
}

}  // namespace leat::testing
