// SPDX-License-Identifier: Apache-2.0
//
// Kernels that decode a JPEG's codes against the host's reading of the same
// codes, and against libjpeg. An input is a choice (jpeg_choice.h), and a file,
// which may be damaged. The choice's flags say what is compared:
//
//   synced    the file alone: what kernels accept has the pixels of libjpeg,
//             which finds the file sound as far as the window needs it; and the
//             seek index that they leave is the one that the host's reading
//             leaves. Restart markers are among it.
//   window    a part by a seek index of the file, or of a part of it: kernels
//             accept it if the host does, with the pixels of libjpeg
//   whole     the same of the whole image
//   damaged   data that were changed after the index was made: kernels accept
//             nothing that the host refuses, and what both accept has the same
//             pixels
//
// Changed inputs have codes that are drawn, most of them sound.
#include <cstring>

#include "core/crc32c.h"
#include "fmt/format.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/jpeg_choice.h"
#include "tests/fuzz/jpeg_scan_maker.h"
#include "tests/fuzz/target.h"
#include "tests/worker/gpu/kernels/host_pixels.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker::jpeg_codes_fuzz {
namespace {

constexpr ImageLimits kLimits = {
    .max_pixels = 100'000, .max_side = 5'000, .max_scratch_bytes = 50'000'000};

enum class What : uint8_t { kSynced, kWindow, kWhole, kDamaged };
constexpr size_t kWhats = 4;
What WhatOf(const JpegChoice& choice) {
  return static_cast<What>(choice.flags >> 2 & 3);
}
// The index is of a part of the file.
bool Grows(const JpegChoice& choice) { return (choice.flags & 2) != 0; }

// How often kernels have accepted and refused codes; `marked`: codes with
// restart markers.
struct Counts {
  uint64_t runs = 0;
  uint64_t accepted[kWhats] = {}, refused[kWhats] = {};
  uint64_t marked = 0, left = 0;
};
Counts& Counted() {
  static Counts counts;
  return counts;
}
std::string CountsText() {
  const Counts& c = Counted();
  const auto of = [&](What what) {
    const auto i = static_cast<size_t>(what);
    return fmt::format("{} + {}", c.accepted[i], c.refused[i]);
  };
  return fmt::format(
      "accepted + refused: synced {} (accepted by restart markers {}, indexes "
      "left {}), window {}, whole {}, damaged {}; nothing to compare in {}",
      of(What::kSynced), c.marked, c.left, of(What::kWindow), of(What::kWhole),
      of(What::kDamaged), c.runs - [&] {
        uint64_t sum = 0;
        for (size_t i = 0; i < kWhats; ++i) sum += c.accepted[i] + c.refused[i];
        return sum;
      }());
}

// One execution: the thread's memory, and what it decodes.
struct Decode {
  JpegDecoder& decoder;
  std::span<const std::byte> file;
  Rect window;
  bool gray = false;
};

// A window's pixels as kernels have made them.
struct Made {
  bool found = false;     // kernels had the codes
  bool accepted = false;  // and refused none
  std::vector<uint8_t> pixels;
  std::unique_ptr<const JpegForm> left;  // the seek index, if it was wanted
};

// Returns the window from blocks that the host reads; not accepted: it refuses
// them.
Made ByHost(const Decode& of, const JpegForm* index) {
  static JpegBlocks& blocks = *new JpegBlocks;
  Made made;
  if (!of.decoder.Open(of.file, index).ok()) return made;
  const auto window = of.decoder.BlocksOf(of.window, of.gray);
  if (!window ||
      !of.decoder.ReadBlocks(*window, kAnyFormBytes, &blocks).value_or(false))
    return made;
  made.found = made.accepted = true;
  made.pixels = PixelsOf(blocks);
  return made;
}

// Returns the index that grows while the host reads the window.
std::unique_ptr<const JpegForm> GrownByHost(const Decode& of) {
  static JpegBlocks& blocks = *new JpegBlocks;
  if (!of.decoder.Open(of.file).ok()) return nullptr;
  of.decoder.GrowSeekIndex();
  const auto window = of.decoder.BlocksOf(of.window, of.gray);
  if (!window ||
      !of.decoder.ReadBlocks(*window, kAnyFormBytes, &blocks).value_or(false))
    return nullptr;
  auto grown = of.decoder.TakeGrown();
  return grown.ok() ? *std::move(grown) : nullptr;
}

// Returns the index of the whole file.
std::unique_ptr<const JpegForm> MadeByHost(const Decode& of) {
  if (!of.decoder.Open(of.file).ok()) return nullptr;
  of.decoder.MakeForms({.seek_index = true}, kAnyFormBytes);
  const StoredSize size = of.decoder.header().size;
  PixelRows rows;
  if (!of.decoder.Start({0, 0, size.width, 1}, of.gray).ok() ||
      !of.decoder.ReadRows(&rows).ok())
    return nullptr;
  auto made = of.decoder.TakeForm(JpegFormKind::kSeekIndex);
  return made.ok() ? *std::move(made) : nullptr;
}

// Returns the window from its codes. `leave`: an index, too.
Made ByDevice(const Decode& of, const JpegForm* index, bool leave = false) {
  static WindowCodes& codes = *new WindowCodes;
  Made made;
  if (!of.decoder.Open(of.file, index).ok()) return made;
  if (leave) of.decoder.GrowSeekIndex();
  const auto window = of.decoder.BlocksOf(of.window, of.gray);
  if (!window || !of.decoder.FindCodes(*window, &codes).value_or(false))
    return made;
  made.found = true;
  std::vector<CodePlace> places;
  if (codes.leaves_index)
    places.resize(SeekIndex::PlacesOf(codes.layout, codes.window.end_row));
  auto pixels = PixelsOf(codes, places);
  made.accepted = pixels.has_value();
  if (pixels) made.pixels = *std::move(pixels);
  Counted().marked += made.accepted && codes.restarts;
  if (!made.accepted || places.empty()) return made;
  McuForm::Header header{.layout = codes.layout,
                         .file_bytes = static_cast<uint32_t>(of.file.size())};
  if (codes.window.end_row == codes.layout.rows)
    header.file_crc = Crc32c(of.file);
  auto left = SeekIndex::OfPlaces(header, codes.window.end_row, places);
  fuzz::Require(left.ok());
  made.left = *std::move(left);
  ++Counted().left;
  return made;
}

void RequireLibjpegs(const Decode& of, const Made& made) {
  const WindowOfJpeg plain =
      DecodeJpeg(of.decoder, of.file, of.window, of.gray);
  fuzz::Require(plain.status.ok() && plain.damage.ok() &&
                plain.pixels == made.pixels);
}

void Count(What what, const Made& made) {
  if (!made.found) return;
  Counts& counts = Counted();
  ++(made.accepted ? counts.accepted
                   : counts.refused)[static_cast<size_t>(what)];
}

// Kernels that find their places by themselves, or by restart markers.
Made CheckSynced(const Decode& of) {
  Made made = ByDevice(of, nullptr, true);
  if (!made.accepted) return made;
  RequireLibjpegs(of, made);
  if (made.left == nullptr) return made;
  const auto grown = GrownByHost(of);
  fuzz::Require(grown != nullptr &&
                std::ranges::equal(grown->bytes(), made.left->bytes()));
  return made;
}

Made CheckIndexed(const Decode& of, const JpegForm& index) {
  Made made = ByDevice(of, &index);
  if (made.accepted) RequireLibjpegs(of, made);
  // If the index knows too few rows, kernels have found their places.
  if (made.found && !made.accepted && of.decoder.used_form())
    fuzz::Require(!ByHost(of, &index).accepted);
  return made;
}

Made CheckDamaged(const Decode& of, const JpegChoice& choice,
                  const JpegForm& index) {
  std::vector<std::byte> changed(of.file.begin(), of.file.end());
  const uint32_t begin =
      static_cast<const SeekIndex&>(index).header().layout.scan_begin;
  for (size_t i = 0; i < choice.changes; ++i)
    changed[begin + choice.change[i].at % (changed.size() - begin)] =
        static_cast<std::byte>(choice.change[i].to);
  // Exactly the file's size, so that reads beyond it are detected.
  changed.shrink_to_fit();
  Decode damaged = of;
  damaged.file = changed;
  Made made = ByDevice(damaged, &index);
  if (!made.accepted) return made;
  const Made host = ByHost(damaged, &index);
  fuzz::Require(host.accepted && host.pixels == made.pixels);
  return made;
}

void Run(std::string_view text) {
  static JpegDecoder& decoder = *new JpegDecoder(kLimits);
  ++Counted().runs;
  fuzz::Input input(text);
  const JpegChoice choice(input);
  const std::string_view rest = input.Rest();
  Decode of{.decoder = decoder,
            .file = std::as_bytes(std::span(rest.data(), rest.size())),
            .window = {},
            .gray = choice.gray()};
  if (!decoder.Open(of.file).ok()) return;
  const StoredSize size = decoder.header().size;
  const What what = WhatOf(choice);
  of.window = choice.Window(size, 0);
  if (what == What::kSynced) return Count(what, CheckSynced(of));
  if (what == What::kWhole) of.window = WholeOf(decoder);
  const auto index = Grows(choice) ? GrownByHost(of) : MadeByHost(of);
  if (index == nullptr) return;
  if (what == What::kWindow) of.window = choice.Window(size, 1);
  Count(what, what == What::kDamaged ? CheckDamaged(of, choice, *index)
                                     : CheckIndexed(of, *index));
}

// Draws the choice, mostly the codes, and sometimes damage to them.
void Change(std::string& input, fuzz::Random& random) {
  fuzz::Input from(input);
  JpegChoice choice(from);
  std::string file(from.Rest());
  choice.flags = static_cast<uint8_t>(random());
  for (uint8_t& part : choice.parts) part = static_cast<uint8_t>(random());
  const What what = WhatOf(choice);
  choice.changes =
      what == What::kDamaged ? 1 + random() % JpegChoice::kMostChanges : 0;
  for (JpegChoice::Change& change : choice.change)
    change = {static_cast<uint32_t>(random()), static_cast<uint8_t>(random())};
  auto maker = JpegScanMaker::Of(file);
  // Files with restart markers have no index.
  if (maker && random() % 16 != 0)
    file = maker->Make(random, what == What::kSynced);
  if (random() % (what == What::kSynced ? 3 : 16) == 0)
    JpegScanMaker::Damage(file, random);
  input = choice.Put() + file;
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
    // Each What, gray or not, with an index of a part or not.
    std::string choice = fuzz::PutByte(next / 2 % 4 | next % 4 << 2);
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

const fuzz::Target kTarget({.name = "jpeg_codes",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 400,
                            .change = Change,
                            .counts = CountsText});

}  // namespace
}  // namespace leat::worker::jpeg_codes_fuzz
