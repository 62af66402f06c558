// SPDX-License-Identifier: Apache-2.0
//
// Kernels that decode a JPEG's codes, with a seek index and without one, against
// the host's reading of the same codes, and against libjpeg. An input is a
// choice of windows (9 bytes), changes of the file's data after its seek index
// is made (a count, and 5 bytes each), and a file, which may be damaged.
//
// For every file: what kernels accept without an index has the pixels of
// libjpeg, which finds the file sound as far as the window needs it. For every
// file that has an index: kernels accept a window if the host does, with the
// pixels of libjpeg. With changed data they accept nothing that the host
// refuses, and what both accept has the same pixels.
#include <array>
#include <cstring>

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/worker/gpu/kernels/host_pixels.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker::jpeg_codes_fuzz {
namespace {

constexpr ImageLimits kLimits = {
    .max_pixels = 100'000, .max_side = 5'000, .max_scratch_bytes = 50'000'000};
constexpr size_t kMostChanges = 8;

struct Change {
  uint32_t at = 0;
  uint8_t to = 0;
};

struct Choice {
  explicit Choice(fuzz::Input& input) {
    flags = input.Byte();
    for (uint8_t& part : parts) part = input.Byte();
    changes = std::min<size_t>(input.Byte(), kMostChanges);
    for (size_t i = 0; i < changes; ++i)
      change[i] = {input.Number<uint32_t>(), input.Byte()};
  }
  bool gray() const { return (flags & 1) != 0; }
  bool grows() const { return (flags & 2) != 0; }

  // Returns the first or the second window.
  Rect Window(StoredSize size, size_t which) const {
    const uint8_t* const p = parts.data() + 4 * which;
    const auto part = [](int64_t length, uint8_t at, uint8_t of) {
      const int64_t taken = std::max<int64_t>(1, length * (of + 1) / 256);
      return std::pair((length - taken) * at / 255, taken);
    };
    const auto [y, height] = part(size.height, p[0], p[1]);
    const auto [x, width] = part(size.width, p[2], p[3]);
    return {x, y, width, height};
  }

  uint8_t flags = 0;
  std::array<uint8_t, 8> parts{};
  size_t changes = 0;
  std::array<Change, kMostChanges> change{};
};

using Pixels = std::optional<std::vector<uint8_t>>;

// Returns the window's pixels from blocks that the host reads.
Pixels ByHost(std::span<const std::byte> file, const Rect& window, bool gray,
              const JpegForm* index, JpegDecoder& decoder) {
  if (!decoder.Open(file, index).ok()) return std::nullopt;
  const auto of = decoder.BlocksOf(window, gray);
  JpegBlocks blocks;
  if (!of || !decoder.ReadBlocks(*of, kAnyFormBytes, &blocks).value_or(false))
    return std::nullopt;
  return PixelsOf(blocks);
}

// Returns the same from codes. *found: the index leads to them, or there is
// none.
Pixels ByDevice(std::span<const std::byte> file, const Rect& window, bool gray,
                const JpegForm* index, JpegDecoder& decoder, bool* found) {
  *found = false;
  if (!decoder.Open(file, index).ok()) return std::nullopt;
  const auto of = decoder.BlocksOf(window, gray);
  WindowCodes codes;
  if (!of || !decoder.FindCodes(*of, &codes).value_or(false))
    return std::nullopt;
  *found = true;
  return PixelsOf(codes);
}

// Returns an index of the whole file, or of the rows that the window needs.
std::unique_ptr<const JpegForm> MakeIndex(std::span<const std::byte> file,
                                          const Rect& window,
                                          const Choice& choice,
                                          JpegDecoder& decoder) {
  if (!choice.grows()) {
    MadeForms made = MakeFormsOf(decoder, file, window, choice.gray());
    return made.seek_index.ok() ? *std::move(made.seek_index) : nullptr;
  }
  if (!decoder.Open(file).ok()) return nullptr;
  decoder.GrowSeekIndex();
  const auto of = decoder.BlocksOf(window, choice.gray());
  JpegBlocks blocks;
  if (!of || !decoder.ReadBlocks(*of, kAnyFormBytes, &blocks).value_or(false))
    return nullptr;
  auto grown = decoder.TakeGrown();
  return grown.ok() ? *std::move(grown) : nullptr;
}

void CheckChanged(std::span<const std::byte> file, const Choice& choice,
                  const Rect& window, const JpegForm& index,
                  JpegDecoder& decoder) {
  std::vector<std::byte> changed(file.begin(), file.end());
  const uint32_t begin =
      static_cast<const SeekIndex&>(index).header().layout.scan_begin;
  for (size_t i = 0; i < choice.changes; ++i)
    changed[begin + choice.change[i].at % (changed.size() - begin)] =
        static_cast<std::byte>(choice.change[i].to);
  // Exactly the file's size, so that reads beyond it are detected.
  changed.shrink_to_fit();
  bool found = false;
  const Pixels device =
      ByDevice(changed, window, choice.gray(), &index, decoder, &found);
  if (device)
    fuzz::Require(device ==
                  ByHost(changed, window, choice.gray(), &index, decoder));
}

// Kernels that find their places by themselves.
void CheckSynced(std::span<const std::byte> file, const Rect& window, bool gray,
                 JpegDecoder& decoder) {
  bool found = false;
  const Pixels device = ByDevice(file, window, gray, nullptr, decoder, &found);
  if (!device) return;
  const WindowOfJpeg plain = DecodeJpeg(decoder, file, window, gray);
  fuzz::Require(plain.status.ok() && plain.damage.ok() &&
                plain.pixels == *device);
  fuzz::Require(device == ByHost(file, window, gray, nullptr, decoder));
}

void Run(std::string_view text) {
  static JpegDecoder& decoder = *new JpegDecoder(kLimits);
  fuzz::Input input(text);
  const Choice choice(input);
  const std::string_view rest = input.Rest();
  const auto file = std::as_bytes(std::span(rest.data(), rest.size()));
  if (!decoder.Open(file).ok()) return;
  const StoredSize size = decoder.header().size;
  const bool gray = choice.gray();
  for (const size_t which : {0, 1})
    CheckSynced(file, choice.Window(size, which), gray, decoder);
  const auto index = MakeIndex(file, choice.Window(size, 0), choice, decoder);
  if (index == nullptr) return;
  for (const Rect& window : {choice.Window(size, 0), choice.Window(size, 1)}) {
    bool found = false;
    const Pixels device =
        ByDevice(file, window, gray, index.get(), decoder, &found);
    const Pixels host = ByHost(file, window, gray, index.get(), decoder);
    if (found) fuzz::Require(device == host);
    if (device) {
      const WindowOfJpeg plain = DecodeJpeg(decoder, file, window, gray);
      fuzz::Require(plain.status.ok() && plain.damage.ok() &&
                    plain.pixels == *device);
    }
    if (choice.changes > 0) CheckChanged(file, choice, window, *index, decoder);
  }
}

std::vector<std::string> Seeds() {
  using testing::JpegColor;
  using testing::JpegSpec;
  std::vector<std::string> inputs;
  int next = 0;
  for (const JpegSpec& spec :
       {JpegSpec{.width = 620, .height = 17, .quality = 40},
        JpegSpec{.width = 290, .height = 19, .h = 1, .v = 1, .quality = 98},
        JpegSpec{.width = 300, .height = 20, .h = 2, .v = 1},
        JpegSpec{.width = 35, .height = 140, .h = 1, .v = 2, .orientation = 8},
        JpegSpec{.width = 150,
        .height = 60,
        .color = JpegColor::kGray,
        .h = 1,
        .v = 1},
        // More than 256 MCUs.
        JpegSpec{.width = 260, .height = 90, .h = 1, .v = 1, .quality = 5},
        JpegSpec{.width = 290, .height = 33, .quality = 100},
        // Files that have no index.
        JpegSpec{.width = 40, .height = 24, .progressive = true},
        JpegSpec{.width = 300, .height = 24, .restart_interval = 5}}) {
    std::string choice = fuzz::PutByte(next % 4);
    for (const int part :
         {20 * next, 200, 255 - 20 * next, 60, 0, 255, 128, next * 28})
      choice += fuzz::PutByte(part);
    choice += fuzz::PutByte(next % 3);
    for (int i = 0; i < next % 3; ++i)
      choice +=
          fuzz::PutNumber<uint32_t>(333u * i + 40) + fuzz::PutByte(77 * i + 3);
    inputs.push_back(choice + testing::MakeJpeg(spec));
    ++next;
  }
  return inputs;
}

const fuzz::Target kTarget(
    {.name = "jpeg_codes", .run = Run, .seeds = Seeds, .runs = 400});

}  // namespace
}  // namespace leat::worker::jpeg_codes_fuzz
