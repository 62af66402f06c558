// SPDX-License-Identifier: Apache-2.0
//
// jpeg_forms_bench [ROUNDS] FOLDER: milliseconds per image to decode the JPEG
// files under FOLDER, plainly and by each decoded form, one thread, processor
// time, in turns: the windows of random resized crops, whole images, and both
// while forms are made. Prints medians of the rounds, their ratios to plain
// decoding, the forms' bytes, and the windows whose pixels differ. Exits 1 if
// any do.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/status.h"
#include "tests/bench/photo_rounds.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {
namespace {

constexpr FormKinds kMcuForms = {.seek_index = true, .coefficients = true};

struct Photo {
  std::string file;
  Rect whole, window;
  std::unique_ptr<const JpegForm> seek_index, coefficients, pixels;
  std::unique_ptr<const JpegForm> part;  // a seek index of a window's rows

  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(file));
  }
};

// Draws as random_resized_crop does by default: 8 to 100 % of the area, sides
// of 3 : 4 to 4 : 3.
Rect RandomCrop(std::mt19937& random, const Rect& whole) {
  std::uniform_real_distribution<double> unit(0, 1);
  for (int tries = 0; tries < 10; ++tries) {
    const double area = static_cast<double>(whole.width * whole.height) *
                        (0.08 + 0.92 * unit(random));
    const double ratio = std::exp(std::log(4.0 / 3) * (2 * unit(random) - 1));
    const auto width = std::llround(std::sqrt(area * ratio));
    const auto height = std::llround(std::sqrt(area / ratio));
    if (width < 1 || height < 1 || width > whole.width || height > whole.height)
      continue;
    const auto at = [&](int64_t room) {
      return static_cast<int64_t>(unit(random) * static_cast<double>(room + 1));
    };
    return {at(whole.width - width), at(whole.height - height), width, height};
  }
  const int64_t side = std::min(whole.width, whole.height);
  return {(whole.width - side) / 2, (whole.height - side) / 2, side, side};
}

// Decodes; returns the sum of the pixels if `sum`.
uint32_t Decode(JpegDecoder& decoder, const Photo& photo, const Rect& window,
                const JpegForm* form, bool sum = false) {
  const auto require = [](const absl::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
    std::exit(1);
  };
  require(decoder.Open(photo.bytes(), form));
  require(decoder.Start(window, false));
  uint32_t crc = 0;
  PixelRows rows;
  for (int64_t y = 0; y < window.height; y += rows.count) {
    require(decoder.ReadRows(&rows));
    for (int i = 0; sum && i < rows.count; ++i)
      for (int64_t x = 0; x < window.width; ++x)
        crc = ExtendCrc32c(
            crc, std::as_bytes(std::span(
                     rows.first + static_cast<size_t>(i) * rows.stride +
                         static_cast<size_t>(x) * 4,
                     3)));
  }
  require(decoder.damage());
  return crc;
}

// Decodes the window of the open file. False: it is damaged.
bool Rows(JpegDecoder& decoder, const Rect& window) {
  if (!decoder.Start(window, false).ok()) return false;
  PixelRows rows;
  for (int64_t y = 0; y < window.height; y += rows.count)
    if (!decoder.ReadRows(&rows).ok()) return false;
  return decoder.damage().ok();
}

// Makes forms while `window` is decoded, or the whole. False: the file has no
// forms.
bool MakeForms(JpegDecoder& decoder, Photo& photo, FormKinds kinds,
               bool of_window = false) {
  if (!decoder.Open(photo.bytes()).ok()) return false;
  photo.whole = {0, 0, decoder.header().size.width,
                 decoder.header().size.height};
  decoder.MakeForms(kinds, size_t{1} << 30);
  if (!Rows(decoder, of_window ? photo.window : photo.whole)) return false;
  if (kinds.seek_index) {
    auto form = decoder.TakeForm(JpegFormKind::kSeekIndex);
    if (!form.ok()) return false;
    photo.seek_index = *std::move(form);
  }
  if (kinds.coefficients) {
    auto form = decoder.TakeForm(JpegFormKind::kCoefficients);
    if (!form.ok()) return false;
    photo.coefficients = *std::move(form);
  }
  if (kinds.pixels) {
    auto form = decoder.TakeForm(JpegFormKind::kPixels);
    if (!form.ok()) return false;
    photo.pixels = *std::move(form);
  }
  return true;
}

std::vector<Photo> PreparePhotos(JpegDecoder& decoder, const char* folder) {
  std::vector<Photo> photos;
  std::mt19937 random(7);
  size_t others = 0, bytes = 0, seek = 0, coefficients = 0, pixels = 0;
  for (std::string& file : ReadPhotos(folder)) {
    Photo photo{.file = std::move(file)};
    if (!MakeForms(decoder, photo, kMcuForms) ||
        !MakeForms(decoder, photo, {.pixels = true})) {
      ++others;
      continue;
    }
    photo.window = RandomCrop(random, photo.whole);
    if (!decoder.Open(photo.bytes()).ok()) continue;
    decoder.GrowSeekIndex();
    if (!Rows(decoder, RandomCrop(random, photo.whole))) continue;
    if (auto grown = decoder.TakeGrown(); grown.ok())
      photo.part = *std::move(grown);
    bytes += photo.file.size();
    seek += photo.seek_index->size_bytes();
    coefficients += photo.coefficients->size_bytes();
    pixels += photo.pixels->size_bytes();
    photos.push_back(std::move(photo));
  }
  if (photos.empty()) return photos;
  const auto share = [&](size_t of) {
    return static_cast<double>(of) / static_cast<double>(bytes);
  };
  std::printf(
      "%zu photos of %zu bytes on average, %zu files without forms\n"
      "seek index %.4f of the file's bytes, coefficients %.3f, pixels %.2f\n",
      photos.size(), bytes / photos.size(), others, share(seek),
      share(coefficients), share(pixels));
  return photos;
}

size_t CountDifferent(JpegDecoder& decoder, const std::vector<Photo>& photos) {
  size_t different = 0;
  for (const Photo& photo : photos)
    for (const Rect& window : {photo.whole, photo.window}) {
      const uint32_t plain = Decode(decoder, photo, window, nullptr, true);
      for (const JpegForm* form :
           {photo.seek_index.get(), photo.coefficients.get(),
            photo.pixels.get()})
        different += Decode(decoder, photo, window, form, true) != plain;
    }
  return different;
}

struct Case {
  const char* name;
  size_t yardstick;  // index of the plain case
  std::function<void(Photo&)> run;
  std::vector<double> times;  // ms per image
};

std::vector<Case> Cases(JpegDecoder& decoder) {
  const auto crop = [&](auto form) {
    return [&decoder, form](Photo& photo) {
      Decode(decoder, photo, photo.window, form(photo));
    };
  };
  const auto whole = [&](auto form) {
    return [&decoder, form](Photo& photo) {
      Decode(decoder, photo, photo.whole, form(photo));
    };
  };
  const auto make = [&](FormKinds kinds, bool of_window = false) {
    return [&decoder, kinds, of_window](Photo& photo) {
      MakeForms(decoder, photo, kinds, of_window);
    };
  };
  // Uses the index of rows that another window's decode went through.
  const auto grow = [&](bool known) {
    return [&decoder, known](Photo& photo) {
      if (!decoder.Open(photo.bytes(), known ? photo.part.get() : nullptr).ok())
        return;
      decoder.GrowSeekIndex();
      Rows(decoder, photo.window);
      decoder.TakeGrown().IgnoreError();
    };
  };
  const auto none = [](const Photo&) -> const JpegForm* { return nullptr; };
  const auto seek = [](const Photo& photo) { return photo.seek_index.get(); };
  const auto coefficients = [](const Photo& photo) {
    return photo.coefficients.get();
  };
  const auto pixels = [](const Photo& photo) { return photo.pixels.get(); };
  return {
      {"crop, plain", 0, crop(none), {}},
      {"crop, seek index", 0, crop(seek), {}},
      {"crop, coefficients", 0, crop(coefficients), {}},
      {"crop, pixels", 0, crop(pixels), {}},
      {"crop, makes a seek index", 0, make({.seek_index = true}, true), {}},
      {"crop, notes MCUs on the way", 0, grow(false), {}},
      {"crop, by another crop's notes", 0, grow(true), {}},
      {"crop, makes coefficients", 0, make({.coefficients = true}, true), {}},
      {"crop, makes pixels", 0, make({.pixels = true}, true), {}},
      {"whole, plain", 9, whole(none), {}},
      {"whole, seek index", 9, whole(seek), {}},
      {"whole, coefficients", 9, whole(coefficients), {}},
      {"whole, pixels", 9, whole(pixels), {}},
      {"whole, makes a seek index", 9, make({.seek_index = true}), {}},
      {"whole, makes both", 9, make(kMcuForms), {}},
      {"whole, makes pixels", 9, make({.pixels = true}), {}}};
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  using namespace leat::worker;  // a program of one file
  const int rounds = argc == 3 ? std::atoi(argv[1]) : 7;
  if (argc < 2 || argc > 3 || rounds < 1) {
    std::fprintf(stderr, "usage: jpeg_forms_bench [ROUNDS] FOLDER\n");
    return 2;
  }
  JpegDecoder decoder{ImageLimits{}};
  std::vector<Photo> photos = PreparePhotos(decoder, argv[argc - 1]);
  if (photos.empty()) {
    std::fprintf(stderr, "no JPEG with forms under %s\n", argv[argc - 1]);
    return 1;
  }
  const size_t different = CountDifferent(decoder, photos);
  std::printf("%zu of %zu decodings differ\n", different, 6 * photos.size());
  std::vector<Case> cases = Cases(decoder);
  for (int round = 0; round < rounds; ++round)
    for (Case& one : cases) {
      const double begin = leat::ThreadSeconds();
      for (Photo& photo : photos) one.run(photo);
      one.times.push_back((leat::ThreadSeconds() - begin) * 1e3 /
                          static_cast<double>(photos.size()));
    }
  for (Case& one : cases) std::sort(one.times.begin(), one.times.end());
  const auto median = [&](size_t i) { return leat::Median(cases[i].times); };
  for (size_t i = 0; i < cases.size(); ++i)
    std::printf("%-28s %.3f ms (least %.3f)   %.2f x\n", cases[i].name,
                median(i), cases[i].times.front(),
                median(cases[i].yardstick) / median(i));
  return different == 0 ? 0 : 1;
}
