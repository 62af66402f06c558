// SPDX-License-Identifier: Apache-2.0
//
// Decoded forms of JPEGs against plain libjpeg-turbo. An input is a choice of
// windows (10 bytes), changes of a form (a count, and 5 bytes each), and a
// file, which may be damaged. For every file: decoding that makes forms gives
// the same pixels and damage as decoding without forms; forms are made only of
// undamaged files; and decoding with a form gives the same result again.
// Decoding with a changed form, whose sum is corrected, gives some pixels, or
// libjpeg's.
#include <cstring>

#include "core/crc32c.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/jpeg_choice.h"
#include "tests/fuzz/target.h"
#include "tests/worker/image/jpeg/forms/support.h"

namespace leat::worker::jpeg_forms_fuzz {
namespace {

constexpr ImageLimits kLimits = {
    .max_pixels = 300'000, .max_side = 5'000, .max_scratch_bytes = 50'000'000};

void CheckChanged(const JpegForm& form, const JpegChoice& choice,
                  std::span<const std::byte> file, const Rect& window,
                  JpegDecoder& decoder) {
  std::vector<std::byte> bytes(form.bytes().begin(), form.bytes().end());
  // The magic, the sum and the version are unchanged.
  constexpr size_t kFirst = 10;
  for (size_t i = 0; i < choice.changes; ++i)
    bytes[kFirst + choice.change[i].at % (bytes.size() - kFirst)] =
        static_cast<std::byte>(choice.change[i].to);
  const uint32_t sum = Crc32c(std::span(bytes).subspan(8));
  std::memcpy(bytes.data() + 4, &sum, sizeof sum);
  // Exactly the form's size, so that reads beyond it are detected.
  bytes.shrink_to_fit();
  const auto changed = JpegForm::Parse(std::move(bytes));
  if (!changed.ok()) return fuzz::Require(!Message(changed.status()).empty());
  const WindowOfJpeg read =
      DecodeJpeg(decoder, file, window, choice.gray(), changed->get());
  fuzz::Require(read.status.ok() && read.damage.ok());
}

// Pixels of a smaller image lead to windows of all scales.
void CheckReducedPixels(std::span<const std::byte> file, const Rect& window,
                        bool gray, JpegDecoder& decoder) {
  if (!decoder.header().has_scales) return;
  const int halvings = 1 + static_cast<int>(file.size() % 3);
  const MadePixels made =
      MakePixelsOf(decoder, file, window, gray, kAnyFormBytes, halvings);
  fuzz::Require(made.window.SameAs(DecodeJpeg(decoder, file, window, gray)));
  if (!made.form.ok()) return;
  const JpegForm* const form = made.form->get();
  fuzz::Require(DecodeJpeg(decoder, file, window, gray, form)
                    .SameAs(DecodeJpeg(decoder, file, window, gray)));
  fuzz::Require(
      DecodeJpeg(decoder, file, {}, gray, form, halvings)
          .SameAs(DecodeJpeg(decoder, file, {}, gray, nullptr, halvings)));
}

// Pixels are made of more kinds of files, but also not of damaged ones.
void CheckPixels(std::span<const std::byte> file, const Rect& first,
                 const Rect& second, bool gray, JpegDecoder& decoder) {
  const WindowOfJpeg plain = DecodeJpeg(decoder, file, first, gray);
  const MadePixels made = MakePixelsOf(decoder, file, first, gray);
  fuzz::Require(made.window.SameAs(plain));
  if (!made.form.ok()) return;
  const WindowOfJpeg read =
      DecodeJpeg(decoder, file, second, gray, made.form->get());
  fuzz::Require(read.used_form && read.status.ok() && read.damage.ok());
  fuzz::Require(read.SameAs(DecodeJpeg(decoder, file, second, gray)));
}

void Run(std::string_view text) {
  static JpegDecoder& decoder = *new JpegDecoder(kLimits);
  fuzz::Input input(text);
  const JpegChoice choice(input);
  const std::string_view rest = input.Rest();
  const auto file = std::as_bytes(std::span(rest.data(), rest.size()));
  if (!decoder.Open(file).ok()) return;
  const StoredSize size = decoder.header().size;
  const bool progressive = decoder.header().progressive;
  const bool gray = choice.gray();
  const Rect first = choice.Window(size, 0), second = choice.Window(size, 1);
  const WindowOfJpeg plain = DecodeJpeg(decoder, file, first, gray);
  const MadeForms made = MakeFormsOf(decoder, file, first, gray);
  fuzz::Require(made.window.SameAs(plain));
  CheckPixels(file, first, second, gray, decoder);
  CheckReducedPixels(file, second, gray, decoder);
  // Only coefficients are made of a progressive file.
  fuzz::Require(made.seek_index.ok() ? made.coefficients.ok()
                                     : !made.coefficients.ok() || progressive);
  if (!made.coefficients.ok()) return;
  const WindowOfJpeg other = DecodeJpeg(decoder, file, second, gray);
  fuzz::Require(other.status.ok() && other.damage.ok());
  for (const JpegFormKind kind : kMcuFormKinds) {
    if (!made.of(kind).ok()) continue;
    const JpegForm& form = **made.of(kind);
    const WindowOfJpeg read = DecodeJpeg(decoder, file, second, gray, &form);
    fuzz::Require(read.used_form && read.SameAs(other));
    if (choice.changes > 0) CheckChanged(form, choice, file, second, decoder);
  }
}

std::vector<std::string> Seeds() {
  using testing::JpegColor;
  using testing::JpegSpec;
  std::vector<std::string> inputs;
  int next = 0;
  for (const JpegSpec& spec :
       {JpegSpec{.width = 300, .height = 17, .quality = 40},
        JpegSpec{.width = 19, .height = 47, .h = 1, .v = 1, .quality = 98},
        JpegSpec{.width = 70, .height = 33, .h = 2, .v = 1},
        JpegSpec{.width = 35, .height = 49, .h = 1, .v = 2, .orientation = 8},
        JpegSpec{.width = 150,
        .height = 20,
        .color = JpegColor::kGray,
        .h = 1,
        .v = 1},
        JpegSpec{.width = 30,
        .height = 31,
        .color = JpegColor::kYcck,
        .h = 1,
        .v = 1},
        JpegSpec{.width = 40, .height = 24, .h = 4, .v = 1},
        JpegSpec{.width = 40, .height = 24, .progressive = true},
        JpegSpec{.width = 50,
        .height = 43,
        .color = JpegColor::kGray,
        .progressive = true},
        JpegSpec{.width = 41, .height = 50, .h = 2, .v = 1, .scans = 20},
        JpegSpec{.width = 40, .height = 24, .restart_interval = 2}}) {
    std::string choice = fuzz::PutByte(next % 3 == 2);
    for (const int part :
         {40 * next, 100, 255 - 20 * next, 60, 0, 255, 128, next * 28})
      choice += fuzz::PutByte(part);
    choice += fuzz::PutByte(next % 4);
    for (int i = 0; i < next % 4; ++i)
      choice += fuzz::PutNumber<uint32_t>(i == 0 ? 5 : 1000u * i) +
                fuzz::PutByte(77 * i);
    inputs.push_back(choice + testing::MakeJpeg(spec));
    ++next;
  }
  return inputs;
}

const fuzz::Target kTarget(
    {.name = "jpeg_forms", .run = Run, .seeds = Seeds, .runs = 400});

}  // namespace
}  // namespace leat::worker::jpeg_forms_fuzz
