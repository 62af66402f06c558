// SPDX-License-Identifier: Apache-2.0
//
// Image files: every codec and the JPEG decoder, under small limits, and a view
// of the image. An input is the view (8 bytes) and the file. Decoding only the
// view must give what the view of the whole image has: the same bytes, or both
// fail because of the file's damage. The checksums of a PNG are corrected after
// every change, otherwise all would fail there.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/support/image_maker.h"
#include "tests/support/jpeg_maker.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/jpeg/decode/check.h"
#include "worker/image/program/scratch_state.h"
#include "worker/image/views/encoded_image.h"
#include "worker/image/views/image_ops.h"

namespace leat::worker::decode_fuzz {
namespace {

constexpr ImageLimits kLimits = {.max_pixels = 1'000'000,
                                 .max_side = 20'000,
                                 .max_scratch_bytes = 200'000'000};
constexpr size_t kChoiceBytes = 8;

// Choice reads from the input's first bytes which views of the image are
// decoded and compared.
struct Choice {
  explicit Choice(std::string_view bytes) {
    fuzz::Input input(bytes);
    flags = input.Byte();
    for (uint8_t& part : parts) part = input.Byte();
    for (uint8_t& side : to) side = input.Byte();
    after = input.Byte();
  }

  Colours colours() const { return static_cast<Colours>(flags & 3); }
  bool orient() const { return (flags & 4) != 0; }

  View Of(ImageSize size) const {
    View view(size);
    // Returns a part of `length`, from `at` / 255 of the remaining length on.
    const auto part = [](int64_t length, uint8_t at, uint8_t of) {
      const int64_t taken = std::max<int64_t>(1, length * (of + 1) / 256);
      return std::pair((length - taken) * at / 255, taken);
    };
    const auto [y, height] = part(size.height, parts[0], parts[1]);
    const auto [x, width] = part(size.width, parts[2], parts[3]);
    view.Crop({x, y, width, height});
    Filters filters{.shrink = Filter::kLanczos3, .antialias = after % 2 == 0};
    filters.dali = (flags & 8) != 0;
    if ((flags & 16) != 0)
      view.Resize(ImageSize{1 + to[0] % 64, 1 + to[1] % 64}, filters);
    view.Flip((flags & 32) != 0, (flags & 64) != 0);
    const ImageSize now = view.size();
    const auto [top, rows] = part(now.height, after, 255 - after);
    if ((flags & 128) != 0) view.Crop({0, top, now.width, rows});
    return view;
  }

  uint8_t flags = 0, parts[4] = {}, to[2] = {}, after = 0;
};

struct Shown {
  absl::Status status;
  bool lost = false;
  std::vector<std::byte> pixels;
};

std::vector<std::byte> Room(ImageSize size, Colours colours) {
  // Exactly the maximum size, so that writes beyond it are detected.
  return std::vector<std::byte>(static_cast<size_t>(size.width) *
                                static_cast<size_t>(size.height) *
                                static_cast<size_t>(ChannelsOf(colours)));
}

Shown Partly(EncodedImage image, const View& view, Colours colours,
             ImageScratch& scratch) {
  Shown shown{.status = {}, .pixels = Room(view.size(), colours)};
  std::optional<DamagedView> damage;
  shown.status =
      image.Run(view, colours, true, scratch, shown.pixels.data(), &damage);
  shown.lost = damage && !damage->Check(scratch).ok();
  return shown;
}

Shown OfTheWhole(EncodedImage image, const View& view, Colours colours,
                 ImageScratch& scratch) {
  Shown shown{.status = {}, .pixels = Room(view.size(), colours)};
  const ImageSize size = image.size();
  std::vector<std::byte> whole = Room(size, colours);
  // Some bytes after rows may be read.
  whole.resize(whole.size() + kRowPadding);
  std::optional<DamagedView> damage;
  shown.status =
      image.Run(View(size), colours, false, scratch, whole.data(), &damage);
  if (!shown.status.ok()) return shown;
  if (damage) {
    damage->view = view;
    shown.lost = !damage->Check(scratch).ok();
  }
  const Tensor tensor{DType::kUint8,
                      3,
                      {size.height, size.width, ChannelsOf(colours)},
                      whole.data()};
  shown.status = RunOnTensor(view, tensor, scratch, shown.pixels.data());
  return shown;
}

// A file whose bytes make it end early is not decoded to its end.
void CheckEnd(std::span<const std::byte> file, JpegDecoder& decoder) {
  if (!IsJpeg(file) || !decoder.Open(file).ok() || !decoder.EndsEarly()) return;
  fuzz::Require(
      !CheckJpegRows(&decoder, decoder.header().size.height, false).ok());
}

void Run(std::string_view bytes) {
  static Scratch& scratch = *new Scratch(kLimits);
  ImageScratch& state = *scratch.state();
  const Choice choice(bytes);
  bytes.remove_prefix(std::min(bytes.size(), kChoiceBytes));
  const auto file = std::as_bytes(std::span(bytes.data(), bytes.size()));
  CheckEnd(file, state.decoder);
  const auto open = [&] {
    return EncodedImage::Open(file, choice.orient(), state);
  };
  auto image = open();
  if (!image.ok()) return fuzz::Require(!Message(image.status()).empty());
  const ImageSize size = image->size();
  fuzz::Require(size.width >= 1 && size.height >= 1);
  fuzz::Require(static_cast<uint64_t>(size.width * size.height) <=
                kLimits.max_pixels);
  const View view = choice.Of(size);
  const Shown part = Partly(*std::move(image), view, choice.colours(), state);
  const Shown whole = OfTheWhole(*open(), view, choice.colours(), state);
  // One may need more memory than the other.
  if (absl::IsResourceExhausted(part.status) ||
      absl::IsResourceExhausted(whole.status))
    return;
  fuzz::Require(part.status == whole.status);
  if (!part.status.ok()) return;
  fuzz::Require(part.lost == whole.lost);
  fuzz::Require(part.lost || part.pixels == whole.pixels);
}

void RepairPng(std::span<char> input) {
  if (input.size() < kChoiceBytes) return;
  const std::span<char> bytes = input.subspan(kChoiceBytes);
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
  const auto choice = [](std::initializer_list<int> bytes) {
    std::string text;
    for (const int byte : bytes) text += fuzz::PutByte(byte);
    return text;
  };
  const std::string all = choice({6, 0, 255, 0, 255, 0, 0, 0});
  const std::string parts[] = {
      choice({0x04, 128, 60, 200, 90, 0, 0, 0}),
      choice({0x95, 100, 120, 30, 200, 7, 11, 100}),
      choice({0x3c, 50, 150, 255, 100, 20, 9, 1}),
      choice({0x67, 255, 30, 0, 255, 0, 0, 0}),
  };
  std::vector<std::string> inputs;
  for (const auto& [name, bytes] : testing::SmallImageFiles())
    inputs.push_back(all + bytes);
  size_t next = 0;
  for (const testing::JpegSpec& spec :
       {testing::JpegSpec{.width = 19, .height = 17},
        testing::JpegSpec{
            .width = 19, .height = 17, .progressive = true, .orientation = 6},
        testing::JpegSpec{.width = 45, .height = 70, .orientation = 3},
        testing::JpegSpec{
            .width = 50, .height = 40, .h = 2, .v = 1, .restart_interval = 2},
        testing::JpegSpec{
            .width = 33, .height = 49, .h = 1, .v = 2, .orientation = 8},
        testing::JpegSpec{.width = 40, .height = 41, .h = 4, .v = 1},
        testing::JpegSpec{.width = 35,
        .height = 60,
        .color = testing::JpegColor::kYcck,
        .h = 1,
        .v = 1}})
    inputs.push_back(parts[next++ % std::size(parts)] +
                     testing::MakeJpeg(spec));
  return inputs;
}

const fuzz::Target kTarget({.name = "decode",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 400,
                            .repair = RepairPng});

}  // namespace
}  // namespace leat::worker::decode_fuzz
