// SPDX-License-Identifier: Apache-2.0
//
// Properties of nvJPEG's regions and scales that are documented nowhere, or
// wrongly, and that Leat relies on: for photos; and for drawn images with even
// and odd sides, in colour and gray, in every combination that the engines
// take.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/gpu/cuda/jpeg_kind.h"
#include "worker/gpu/layout/decode_shape.h"

namespace leat::gpu_check {
namespace {

using worker::DecodeShape;
using worker::Slot;
using worker::StoredRect;

// Decoded pixels on the host; three bytes each, or one.
struct Pixels {
  ImageSize size;
  std::vector<uint8_t> bytes;
  int64_t channels = 3;
  const uint8_t* At(int64_t x, int64_t y) const {
    return bytes.data() + (y * size.width + x) * channels;
  }
};

// Decodes a shape of a photo, over memory that is full of `fill`.
// kUnimplemented: the engines do not take it.
absl::StatusOr<Pixels> Decode(const Bench& bench, const std::string& file,
                              const DecodeShape& shape, uint8_t fill,
                              bool luma = false) {
  Slot& slot = *bench.slots->all()[0];
  const DecodeShape shapes[] = {shape};
  ASSIGN_OR_RETURN(const worker::DecodeChoice choice,
                   slot.decoder->Choose(worker::AsSpan(file), luma, shapes));
  if (!choice.engines) return Unimplemented("refused");
  Pixels pixels{worker::DecodedSize(shape), {}, luma ? 1 : 3};
  GuardedImage place(&bench, shape, pixels.channels, slot.device_images);
  RETURN_IF_ERROR(place.Fill(slot.queue.get(), fill));
  worker::JpegToDecode image{.encoded = worker::AsSpan(file),
                             .luma = luma,
                             .choice = choice,
                             .address = place.address(),
                             .pitch = place.pitch()};
  RETURN_IF_ERROR(slot.decoder->Decode({&image, 1}));
  if (image.outcome != worker::JpegToDecode::Outcome::kDecoded)
    return Internal("nvJPEG said that it would decode it, and did not");
  ASSIGN_OR_RETURN(pixels.bytes, place.Fetch(slot.queue.get(), true));
  return pixels;
}

struct Findings {
  size_t images = 0, refused = 0, failed = 0;
  size_t differ = 0;       // regions, inside the window
  size_t edge_differ = 0;  // regions, outside of it
  size_t unwritten = 0;    // reduced: pixels that should have been written
  // For reduced images: differences to the intended pixels, and to those of the
  // left neighbour.
  double sum = 0, beside = 0, pixels = 0;
};

// Compares the middle of the image, and the region requested so that it is
// right.
void CompareRegion(const Bench& bench, const std::string& file,
                   const worker::JpegDecoder::Header& header,
                   const Pixels& whole, Findings* found) {
  const StoredRect window{header.size.width / 3, header.size.height / 3,
                          header.size.width / 3, header.size.height / 3};
  if (window.width == 0 || window.height == 0) return;
  const DecodeShape shape = worker::ShapesOf(header, window, 0).shapes[0];
  if (!shape.cut) return;
  ++found->images;
  const auto part = Decode(bench, file, shape, 0);
  if (!part.ok()) {
    ++(absl::IsUnimplemented(part.status()) ? found->refused : found->failed);
    return;
  }
  bool inside = false, outside = false;
  for (int64_t y = 0; y < part->size.height; ++y)
    for (int64_t x = 0; x < part->size.width; ++x) {
      const int64_t u = x + shape.region.x, v = y + shape.region.y;
      if (std::equal(part->At(x, y), part->At(x, y) + 3, whole.At(u, v)))
        continue;
      const bool read = u >= window.x && u < window.x + window.width &&
                        v >= window.y && v < window.y + window.height;
      (read ? inside : outside) = true;
    }
  found->differ += inside;
  found->edge_differ += outside;
}

// Compares with the mean of the pixels that a reduced image's pixel stands for.
void CompareReduced(const Bench& bench, const std::string& file, int halvings,
                    const Pixels& whole, Findings* found) {
  const DecodeShape shape{.region = {0, 0, whole.size.width, whole.size.height},
                          .halvings = halvings};
  ++found->images;
  const auto small = Decode(bench, file, shape, 0x00);
  if (!small.ok()) {
    ++(absl::IsUnimplemented(small.status()) ? found->refused : found->failed);
    return;
  }
  // Pixels that keep their previous contents were not written.
  const auto again = Decode(bench, file, shape, 0xff);
  if (!again.ok()) {
    ++found->failed;
    return;
  }
  found->unwritten += small->bytes != again->bytes;
  const int64_t side = int64_t{1} << halvings;
  for (int64_t y = 0; y < whole.size.height / side; ++y)
    for (int64_t x = 1; x < whole.size.width / side; ++x)
      for (int c = 0; c < 3; ++c) {
        int64_t sum = side * side / 2;
        for (int64_t v = 0; v < side; ++v)
          for (int64_t u = 0; u < side; ++u)
            sum += whole.At(x * side + u, y * side + v)[c];
        const auto mean = static_cast<double>(sum / (side * side));
        found->sum += std::abs(mean - small->At(x, y)[c]);
        found->beside += std::abs(mean - small->At(x - 1, y)[c]);
        ++found->pixels;
      }
}

void Say(const std::array<Findings, worker::kMostHalvings + 1>& found,
         Report* report) {
  const Findings& regions = found[0];
  const std::string_view name = "nvJPEG's engines, regions";
  if (regions.images == regions.refused) {
    report->Missing(name, "the engines refuse them");
  } else {
    report->Check(std::string(name) + " have the whole image's bytes",
                  regions.differ + regions.failed == 0,
                  fmt::format("of {} images {} differ, {} were refused, {} "
                              "failed",
                              regions.images, regions.differ, regions.refused,
                              regions.failed));
    report->Figure(std::string(name) + " that differ where nobody looks",
                   static_cast<double>(regions.edge_differ), "images");
  }
  for (int halvings = 1; halvings <= worker::kMostHalvings; ++halvings) {
    const Findings& scale = found[halvings];
    const std::string at = fmt::format("nvJPEG's engines, 1/{}", 1 << halvings);
    if (scale.images == scale.refused) {
      report->Missing(at, "the engines refuse it");
      continue;
    }
    const double pixels = std::max(scale.pixels, 1.0);
    const double mean = scale.sum / pixels, beside = scale.beside / pixels;
    // Where the image is all noise, it is nearer than to the neighbouring
    // pixels.
    report->Check(at + " is near the mean of the pixels",
                  mean <= std::max(3.0, beside / 2) && scale.failed == 0,
                  fmt::format("{:.3g} of 255, of those beside {:.3g}; {} were "
                              "refused, {} failed",
                              mean, beside, scale.refused, scale.failed));
    report->Figure(at + ", last pixels not written",
                   static_cast<double>(scale.unwritten), "images");
  }
}

void ComparePhotos(const Setup& setup, const Bench& bench, Report* report) {
  std::array<Findings, worker::kMostHalvings + 1> found;
  worker::JpegDecoder decoder({});
  for (const std::string& file : setup.files) {
    if (!decoder.Open(worker::AsSpan(file)).ok() ||
        !worker::IsForNvjpeg(decoder.header()))
      continue;
    const auto whole =
        Decode(bench, file, worker::WholeImage(decoder.header().size), 0);
    if (!whole.ok()) continue;  // another backend's, or bad: checked elsewhere
    CompareRegion(bench, file, decoder.header(), *whole, &found[0]);
    for (int halvings = 1; halvings <= worker::kMostHalvings; ++halvings)
      CompareReduced(bench, file, halvings, *whole, &found[halvings]);
  }
  Say(found, report);
}

// A combination of requests to the engines for one image.
struct Asked {
  const char* sampling;
  testing::JpegColor color;
  int h, v;
  bool luma, region;
  int halvings;
  int64_t width, height;
};

// The right and bottom edge, beginning on an iMCU border for all samplings.
StoredRect LastQuarter(int64_t width, int64_t height) {
  constexpr int64_t kUnit = 16;
  const int64_t x = width / 2 / kUnit * kUnit, y = height / 2 / kUnit * kUnit;
  return {x, y, width - x, height - y};
}

// Columns on the left and rows at the top of a region that no row reads: one
// iMCU inside its edges, unless those are the image's own.
struct Margin {
  int64_t left, top;
};
Margin MarginOf(const Asked& asked, const DecodeShape& shape) {
  return {shape.region.x > 0 ? 8 * asked.h : 0,
          shape.region.y > 0 ? 8 * asked.v : 0};
}

// Checks that a region has the same bytes as in the whole image, where rows may
// read.
void CompareWithWhole(const Bench& bench, const Asked& asked,
                      const std::string& file, const DecodeShape& shape,
                      const Pixels& part, const Case& of, Report* report) {
  const auto whole =
      Decode(bench, file, worker::WholeImage({asked.height, asked.width}), 0xaa,
             asked.luma);
  if (!whole.ok()) return;  // reported with the whole image's own case
  const Margin margin = MarginOf(asked, shape);
  int64_t differ = 0;
  for (int64_t y = margin.top; y < part.size.height; ++y)
    for (int64_t x = margin.left; x < part.size.width; ++x)
      differ += !std::equal(part.At(x, y), part.At(x, y) + part.channels,
                            whole->At(x + shape.region.x, y + shape.region.y));
  report->Figure("pixels that differ from the whole image's",
                 static_cast<double>(differ), "", of);
  report->Check(fmt::format("{}, {}, {} x {}: a region at the edge has the "
                            "whole image's bytes",
                            asked.sampling, asked.luma ? "kY" : "kRGBI",
                            asked.width, asked.height),
                differ == 0, fmt::format("{} pixels differ", differ));
}

// Where the engines take it: compares with libjpeg-turbo's pixels for a region
// of the stored image, whose pixels are means.
void CompareAsked(const Bench& bench, const Asked& asked, Report* report) {
  const std::string file = testing::MakeJpeg({.width = int(asked.width),
                                              .height = int(asked.height),
                                              .color = asked.color,
                                              .h = asked.h,
                                              .v = asked.v,
                                              .seed = 11});
  const StoredRect part = asked.region
                              ? LastQuarter(asked.width, asked.height)
                              : StoredRect{0, 0, asked.width, asked.height};
  const DecodeShape shape{
      .region = part, .cut = asked.region, .halvings = asked.halvings};
  const Case of = {{"sampling", asked.sampling},
                   {"output", asked.luma ? "kY" : "kRGBI"},
                   {"sides", fmt::format("{} x {}", asked.width, asked.height)},
                   {"region", asked.region ? "right and bottom edge" : "whole"},
                   {"scale", fmt::format("1/{}", 1 << asked.halvings)}};
  const auto got = Decode(bench, file, shape, 0xaa, asked.luma);
  report->Figure("engines take it", got.ok(), "", of,
                 got.ok() ? "" : Message(got.status()));
  if (!got.ok()) {
    if (!absl::IsUnimplemented(got.status()))
      report->Check(fmt::format("{}, {}: what nvJPEG promised it did",
                                asked.sampling, of[1].second),
                    false, Message(got.status()));
    return;
  }
  const testing::DecodedImage plain = testing::PlainDecode(file, asked.luma);
  const int64_t channels = got->channels, side = int64_t{1} << asked.halvings;
  // No row uses a region that is also reduced, so all of it is compared.
  const Margin margin =
      asked.halvings == 0 ? MarginOf(asked, shape) : Margin{0, 0};
  double sum = 0, count = 0;
  for (int64_t y = margin.top; y < part.height / side; ++y)
    for (int64_t x = margin.left; x < part.width / side; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        int64_t mean = side * side / 2;
        for (int64_t v = 0; v < side; ++v)
          for (int64_t u = 0; u < side; ++u)
            mean += plain.pixels[static_cast<size_t>(
                ((part.y + y * side + v) * asked.width + part.x + x * side +
                 u) *
                    channels +
                c)];
        sum += std::abs(static_cast<double>(mean / (side * side)) -
                        got->At(x, y)[c]);
        ++count;
      }
  report->Figure("mean difference to libjpeg-turbo", sum / count, "of 255", of);
  // The result of a scale on noise depends on the decoder; photos show whether
  // it is a mean.
  if (asked.halvings > 0) return;
  report->Check(
      fmt::format("{}, {}, {}, {}: near libjpeg-turbo", asked.sampling,
                  of[1].second, of[2].second, of[3].second),
      sum / count <= 3, fmt::format("mean {:.3g} of 255", sum / count));
  if (asked.region)
    CompareWithWhole(bench, asked, file, shape, *got, of, report);
}

// Checks every combination; a quick check of the rest leaves out the cases of
// the first answers.
void CompareDrawn(const Setup& setup, const Bench& bench, Report* report) {
  std::vector<std::pair<int, int>> sizes = {
      {641, 479}, {640, 480}, {641, 480}, {640, 479}};
  if (setup.quick && !setup.first) sizes = {{641, 479}};
  for (const auto& [sampling, color, h, v] :
       {std::tuple("gray", testing::JpegColor::kGray, 1, 1),
        std::tuple("4:4:4", testing::JpegColor::kYcc, 1, 1),
        std::tuple("4:2:2", testing::JpegColor::kYcc, 2, 1),
        std::tuple("4:4:0", testing::JpegColor::kYcc, 1, 2),
        std::tuple("4:2:0", testing::JpegColor::kYcc, 2, 2)})
    for (const bool luma : {false, true})
      for (const bool region : {false, true})
        for (int halvings = 0; halvings <= worker::kMostHalvings; ++halvings)
          for (const auto& [width, height] : sizes)
            CompareAsked(
                bench,
                {sampling, color, h, v, luma, region, halvings, width, height},
                report);
}

}  // namespace

void CheckShapes(const Setup& setup, Report* report) {
  Bench bench;
  if (!OpenEngines(setup, "regions and scales", report, &bench)) return;
  CompareDrawn(setup, bench, report);
  ComparePhotos(setup, bench, report);
  SayBeside(bench, "regions and scales", report);
}

}  // namespace leat::gpu_check
