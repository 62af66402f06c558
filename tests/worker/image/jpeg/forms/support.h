// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of worker/image/jpeg/forms: decodes a file with a form,
// without one, and to make one.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "tests/support/jpeg_maker.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/form.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {

using Form = std::unique_ptr<const JpegForm>;

inline constexpr JpegFormKind kMcuFormKinds[] = {JpegFormKind::kSeekIndex,
                                                 JpegFormKind::kCoefficients};
inline constexpr size_t kAnyFormBytes = size_t{1} << 30;

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// All results of a decoding.
struct WindowOfJpeg {
  absl::Status status;  // of Open, Start or ReadRows
  absl::Status damage;
  int64_t sound_rows = -1;
  std::vector<uint8_t> pixels;  // 3 bytes each, or 1
  bool used_form = false;       // to the end

  // Pixels of lost rows count, too: they are black.
  bool SameAs(const WindowOfJpeg& other) const {
    return status == other.status && damage == other.damage &&
           sound_rows == other.sound_rows && pixels == other.pixels;
  }
};

// REQUIRES: `decoder` has opened the file.
inline WindowOfJpeg ReadWindow(JpegDecoder& decoder, const Rect& window,
                               bool gray) {
  WindowOfJpeg read;
  read.status = decoder.Start(window, gray);
  PixelRows rows;
  const size_t channels = gray ? 1 : 3, step = gray ? 1 : 4;
  for (int64_t y = 0; read.status.ok() && y < window.height; y += rows.count) {
    read.status = decoder.ReadRows(&rows);
    for (int i = 0; read.status.ok() && i < rows.count; ++i) {
      const uint8_t* from = rows.first + static_cast<size_t>(i) * rows.stride;
      const size_t begin = read.pixels.size();
      read.pixels.resize(begin + channels * static_cast<size_t>(window.width));
      uint8_t* to = read.pixels.data() + begin;
      for (int64_t x = 0; x < window.width; ++x, from += step, to += channels)
        std::memcpy(to, from, channels);
    }
  }
  read.damage = decoder.damage();
  read.sound_rows = decoder.sound_rows();
  read.used_form = decoder.used_form();
  return read;
}

inline Rect WholeOf(const JpegDecoder& decoder) {
  const StoredSize size = decoder.size();
  return {0, 0, size.width, size.height};
}

// Decodes `window` of the image at 1 / 2^halvings; empty: all of it.
inline WindowOfJpeg DecodeJpeg(JpegDecoder& decoder,
                               std::span<const std::byte> file,
                               const Rect& window, bool gray,
                               const JpegForm* form = nullptr,
                               int halvings = 0) {
  const absl::Status opened = decoder.Open(file, form);
  if (!opened.ok()) return {.status = opened};
  if (halvings > 0) decoder.Reduce(halvings);
  return ReadWindow(decoder, window.width == 0 ? WholeOf(decoder) : window,
                    gray);
}

// The forms of a file, made by decoding `window` (empty: all of it).
struct MadeForms {
  WindowOfJpeg window;
  absl::StatusOr<Form> seek_index, coefficients;

  const absl::StatusOr<Form>& of(JpegFormKind kind) const {
    return kind == JpegFormKind::kSeekIndex ? seek_index : coefficients;
  }
};

inline MadeForms MakeFormsOf(JpegDecoder& decoder,
                             std::span<const std::byte> file,
                             const Rect& window = {}, bool gray = false) {
  MadeForms made;
  made.window.status = decoder.Open(file);
  if (!made.window.status.ok()) return made;
  decoder.MakeForms({.seek_index = true, .coefficients = true}, kAnyFormBytes);
  made.window =
      ReadWindow(decoder, window.width == 0 ? WholeOf(decoder) : window, gray);
  made.seek_index = decoder.TakeForm(JpegFormKind::kSeekIndex);
  made.coefficients = decoder.TakeForm(JpegFormKind::kCoefficients);
  return made;
}

// The pixels of a file at one scale, made before `window` is decoded at another
// one.
struct MadePixels {
  WindowOfJpeg window;
  absl::StatusOr<Form> form;
};

inline MadePixels MakePixelsOf(JpegDecoder& decoder,
                               std::span<const std::byte> file,
                               const Rect& window = {}, bool gray = false,
                               size_t max_bytes = kAnyFormBytes,
                               int pixel_halvings = 0, int halvings = 0) {
  MadePixels made;
  made.window.status = decoder.Open(file);
  if (!made.window.status.ok()) return made;
  decoder.MakeForms({.pixels = true}, max_bytes);
  if (pixel_halvings > 0) decoder.KeepPixelsAt(pixel_halvings);
  if (halvings > 0) decoder.Reduce(halvings);
  made.window =
      ReadWindow(decoder, window.width == 0 ? WholeOf(decoder) : window, gray);
  made.form = decoder.TakeForm(JpegFormKind::kPixels);
  return made;
}

// Small ones and large ones, and ones that touch the sides.
inline Rect RandomPart(std::mt19937& random, int64_t width, int64_t height) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Rect rect;
  rect.width = 1 + below(below(3) == 0 ? std::min<int64_t>(width, 9) : width);
  rect.height =
      1 + below(below(3) == 0 ? std::min<int64_t>(height, 9) : height);
  rect.x = below(4) == 0 ? 0 : below(width - rect.width + 1);
  rect.y =
      below(4) == 0 ? height - rect.height : below(height - rect.height + 1);
  return rect;
}

}  // namespace leat::worker
