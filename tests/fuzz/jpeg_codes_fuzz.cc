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
constexpr uint8_t kEndMarker = 0xd9;
What WhatOf(const JpegChoice& choice) {
  return static_cast<What>(choice.flags >> 2 & 3);
}
// The index is of a part of the file.
bool Grows(const JpegChoice& choice) { return (choice.flags & 2) != 0; }

// The executions until now.
struct Counts {
  struct Of {
    uint64_t runs = 0, accepted = 0, refused = 0;
  };
  Of what[kWhats];
  // Executions that compared, by what they had. Samplings: of luma per chroma
  // sample, across and down.
  uint64_t gray = 0, sampled[3][3] = {};
  uint64_t restarts = 0, over_16 = 0, over_256 = 0, cut_off = 0;
  uint64_t restarts_accepted = 0, left = 0;
};
Counts& Counted() {
  static Counts counts;
  return counts;
}
std::string CountsText() {
  const Counts& c = Counted();
  std::string text = "runs (accepted + refused by kernels):";
  const char* const names[] = {"synced", "window", "whole", "damaged"};
  for (size_t i = 0; i < kWhats; ++i)
    text += fmt::format(" {} {} ({} + {}),", names[i], c.what[i].runs,
                        c.what[i].accepted, c.what[i].refused);
  text += fmt::format("\n  of those compared: Y alone {}", c.gray);
  for (const int across : {1, 2})
    for (const int down : {1, 2})
      text += fmt::format(", {}x{} {}", across, down, c.sampled[across][down]);
  return text + fmt::format(
                    "; more than 16 MCUs {}, than 256 {}; cut off {}; restart "
                    "markers {} (accepted {}); indexes left {}",
                    c.over_16, c.over_256, c.cut_off, c.restarts,
                    c.restarts_accepted, c.left);
}
// True if the file has no end marker, or has one before its end.
bool CutOff(std::string_view file) {
  return file.find("\xff\xd9") != file.size() - 2;
}
void CountFile(std::span<const std::byte> file, const DeviceCodes& codes) {
  Counts& counts = Counted();
  const ScanLayout& layout = codes.layout;
  const uint64_t mcus = uint64_t{layout.columns} * layout.rows;
  counts.over_16 += mcus > 16;
  counts.over_256 += mcus > 256;
  counts.cut_off +=
      CutOff({reinterpret_cast<const char*>(file.data()), file.size()});
  counts.restarts += codes.restarts;
  if (layout.components == 1)
    ++counts.gray;
  else
    ++counts.sampled[codes.window.across][codes.window.down];
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
  static DeviceCodes& codes = *new DeviceCodes;
  Made made;
  if (!of.decoder.Open(of.file, index).ok()) return made;
  if (leave) of.decoder.GrowSeekIndex();
  const auto window = of.decoder.BlocksOf(of.window, of.gray);
  if (!window || !of.decoder.FindCodes(*window, &codes).value_or(false))
    return made;
  made.found = true;
  CountFile(of.file, codes);
  std::vector<CodePlace> places;
  if (codes.leaves_index)
    places.resize(SeekIndex::PlacesOf(codes.layout, codes.window.end_row));
  auto pixels = PixelsOf(codes, places);
  made.accepted = pixels.has_value();
  if (pixels) made.pixels = *std::move(pixels);
  Counted().restarts_accepted += made.accepted && codes.restarts;
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
  Counts::Of& of = Counted().what[static_cast<size_t>(what)];
  ++(made.accepted ? of.accepted : of.refused);
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
  for (size_t i = 0; i < choice.changes; ++i) {
    const size_t at = begin + choice.change[i].at % (changed.size() - begin);
    changed[at] = static_cast<std::byte>(choice.change[i].to);
    // The data end here.
    if (choice.change[i].to == kEndMarker && at > begin)
      changed[at - 1] = std::byte{0xff};
  }
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
  ++Counted().what[static_cast<size_t>(what)].runs;
  of.window = choice.Window(size, 0);
  if (what == What::kSynced) return Count(what, CheckSynced(of));
  if (what == What::kWhole) of.window = WholeOf(decoder);
  const auto index = Grows(choice) ? GrownByHost(of) : MadeByHost(of);
  if (index == nullptr) return;
  if (what == What::kWindow) of.window = choice.Window(size, 1);
  Count(what, what == What::kDamaged ? CheckDamaged(of, choice, *index)
                                     : CheckIndexed(of, *index));
}

// Draws the kind of comparison. Kernels see no codes of some damaged files, so
// shares differ to give each kind as many comparisons.
What DrawWhat(fuzz::Random& random) {
  const uint64_t draw = random() % 256;
  if (draw < 57) return What::kSynced;
  if (draw < 119) return What::kWindow;
  return draw < 180 ? What::kWhole : What::kDamaged;
}

// Draws the choice, mostly the codes, and sometimes damage to them.
void Change(std::string& input, fuzz::Random& random) {
  fuzz::Input from(input);
  JpegChoice choice(from);
  std::string file(from.Rest());
  const What what = DrawWhat(random);
  choice.flags =
      static_cast<uint8_t>((random() & 3) | static_cast<uint64_t>(what) << 2);
  for (uint8_t& part : choice.parts) part = static_cast<uint8_t>(random());
  choice.changes =
      what == What::kDamaged ? 1 + random() % JpegChoice::kMostChanges : 0;
  for (JpegChoice::Change& change : choice.change)
    change = {static_cast<uint32_t>(random()),
              random() % 32 == 0 ? kEndMarker : static_cast<uint8_t>(random())};
  const bool synced = what == What::kSynced;
  auto maker = JpegScanMaker::Of(file);
  // Progressive files have nothing that could be compared.
  if (!maker && random() % 16 != 0) {
    static const std::string& sound =
        *new std::string(testing::MakeJpeg({.width = 40, .height = 24}));
    maker.emplace(*JpegScanMaker::Of(sound));
  }
  // Files with restart markers have no index.
  if (maker && random() % 16 != 0)
    file = maker->Make(random, {.restarts = synced, .small = !synced});
  if (random() % (synced ? 3 : 16) == 0) JpegScanMaker::Damage(file, random);
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
