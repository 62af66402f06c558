// SPDX-License-Identifier: Apache-2.0
//
// Image files: every codec and the JPEG decoder, under small limits. The
// checksums of a PNG are put right after every change, or all would end there.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "tests/fuzz/target.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"
#include "worker/image/encoded_image.h"

namespace leat::worker::decode_fuzz {
namespace {

constexpr ImageLimits kLimits = {.max_pixels = 1'000'000,
                                 .max_side = 20'000,
                                 .max_scratch_bytes = 200'000'000};

void Run(std::string_view bytes) {
  static Scratch& scratch = *new Scratch(kLimits);
  const auto image =
      EncodedImage::Open(std::as_bytes(std::span(bytes.data(), bytes.size())),
                         true, *scratch.state());
  if (!image.ok()) return fuzz::Require(!Message(image.status()).empty());
  const ImageSize size = image->size();
  fuzz::Require(size.width >= 1 && size.height >= 1);
  fuzz::Require(static_cast<uint64_t>(size.width * size.height) <=
                kLimits.max_pixels);
  // Exactly as large as it may be: what writes beyond is found.
  std::vector<std::byte> out(static_cast<size_t>(size.width * size.height * 3));
  (void)image->Run(View(size), Colours::kBgr, true, *scratch.state(),
                   out.data());
}

void RepairPng(std::span<char> bytes) {
  const std::span<const std::byte> file = std::as_bytes(bytes);
  if (!BytesAre(file, 1, "PNG")) return;
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t length = BigEndian(file, at, 4);
    if (length > file.size() - at - 12) return;
    const auto sum = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(file.data()) + at + 4,
              static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i)
      bytes[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> files;
  for (auto& [name, bytes] : testing::SmallImageFiles())
    files.push_back(std::move(bytes));
  files.push_back(testing::MakeJpeg({.width = 19, .height = 17}));
  files.push_back(testing::MakeJpeg(
      {.width = 19, .height = 17, .progressive = true, .orientation = 6}));
  return files;
}

const fuzz::Target kTarget({.name = "decode",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 200,
                            .repair = RepairPng});

}  // namespace
}  // namespace leat::worker::decode_fuzz
