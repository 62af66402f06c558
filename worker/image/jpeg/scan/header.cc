// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/header.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "worker/image/jpeg/scan/segments.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

uint8_t At(Bytes bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// A TIFF structure, big- or little-endian.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) : bytes_(bytes) {}

  std::optional<uint32_t> Get(size_t offset, int size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size_t(size))
      return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i)
      value = value << 8 |
              At(bytes_, offset + static_cast<size_t>(big_ ? i : size - 1 - i));
    return value;
  }
  bool ReadByteOrder() {
    if (bytes_.size() < 8) return false;
    big_ = At(bytes_, 0) == 'M';
    return Get(0, 2) == (big_ ? 0x4d4du : 0x4949u) && Get(2, 2) == 42u;
  }

 private:
  const Bytes bytes_;
  bool big_ = false;
};

constexpr uint32_t kOrientationTag = 0x112;

}  // namespace

int TiffOrientation(Bytes exif) {
  Tiff tiff(exif);
  if (!tiff.ReadByteOrder()) return 1;
  const uint32_t directory = tiff.Get(4, 4).value_or(0);
  const uint32_t entries = tiff.Get(directory, 2).value_or(0);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = size_t{directory} + 2 + 12 * size_t{i};
    const auto tag = tiff.Get(entry, 2);
    if (!tag) return 1;
    if (*tag != kOrientationTag) continue;
    // Whatever type and count the entry has: writers differ, and DALI reads
    // only these 16 bits. So a LONG counts in little-endian files.
    const uint32_t value = tiff.Get(entry + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

namespace {

bool Begins(std::string_view text, std::string_view with, size_t at = 0) {
  return text.size() >= at + with.size() &&
         text.substr(at, with.size()) == with;
}

struct Magic {
  std::string_view bytes;
  size_t offset;
  const char* name;
};

constexpr std::string_view operator""_b(const char* text, size_t size) {
  return {text, size};
}

constexpr Magic kMagics[] = {
    {"\x89PNG\r\n"_b, 0, "a PNG image"},
    {"GIF8"_b, 0, "a GIF image"},
    {"WEBP"_b, 8, "a WebP image"},
    {"II*\0"_b, 0, "a TIFF image"},
    {"MM\0*"_b, 0, "a TIFF image"},
    {"ftyp"_b, 4, "an HEIF, AVIF or MP4 file"},
    {"\0\0\0\x0cjP"_b, 0, "a JPEG 2000 image"},
    {"\xff\x4f\xff\x51"_b, 0, "a JPEG 2000 codestream"},
    {"\xff\x0a"_b, 0, "a JPEG XL codestream"},
    {"\0\0\0\x0cJXL "_b, 0, "a JPEG XL image"},
    {"BM"_b, 0, "a BMP image"},
    {"%PDF"_b, 0, "a PDF document"},
    {"PK\x03\x04"_b, 0, "a ZIP archive"},
    {"\x1f\x8b"_b, 0, "gzip data"},
    {"version https://git-lfs"_b, 0, "a Git LFS pointer, not the file itself"},
    {"<?xml"_b, 0, "XML"},
    {"<!DOCTYPE"_b, 0, "an HTML page"},
    {"<html"_b, 0, "an HTML page"},
};

}  // namespace

std::string LooksLike(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "nothing: it is empty";
  const size_t size = std::min<size_t>(bytes.size(), 256);
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              size);
  for (const Magic& magic : kMagics)
    if (Begins(head, magic.bytes, magic.offset)) return magic.name;
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == 0; }))
    return "zero bytes";
  const auto printable = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || (byte >= 9 && byte <= 13);
  };
  if (std::all_of(head.begin(), head.end(), printable)) return "text";
  std::string hex;
  for (size_t i = 0; i < std::min<size_t>(size, 8); ++i)
    hex += fmt::format("{}{:02x}", i ? " " : "", At(bytes, i));
  return fmt::format("data of an unknown kind ({}{})", hex,
                     bytes.size() > 8 ? " …" : "");
}

int ExifOrientation(std::span<const std::byte> jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  JpegSegments segments(jpeg);
  while (const auto segment = segments.Next()) {
    const Bytes content = segment->content;
    if (segment->marker == 0xe1 && content.size() >= kExif.size() &&
        memcmp(content.data(), kExif.data(), kExif.size()) == 0)
      return TiffOrientation(content.subspan(kExif.size()));
  }
  return 1;
}

bool HasEnd(std::span<const std::byte> jpeg) {
  JpegSegments segments(jpeg);
  while (segments.Next()) continue;
  for (size_t i = jpeg.size(); i >= segments.position() + 2; --i)
    if (At(jpeg, i - 2) == 0xff && At(jpeg, i - 1) == 0xd9) return true;
  return false;
}

}  // namespace leat::worker
