// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/decoding/decoder_trial.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/gpu/decoding/trial_pictures.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {
namespace {

// The largest mean difference, out of 255. On slopes, all decoders make nearly
// the same pixels.
constexpr double kMostMean = 3;
constexpr int kFarOff = 32;             // differences above this are far off
constexpr double kMostFarShare = 0.01;  // the largest share of those

// The contents of the memory before anything is decoded.
constexpr uint8_t kUntouched = 0xa5;
constexpr uint64_t kBehind = 512;  // bytes after an image's room

// Pixels of an image, from libjpeg: one byte, or R, G, B.
struct TrialPixels {
  int64_t width = 0, height = 0, channels = 3;
  std::vector<uint8_t> bytes;
  int At(int64_t x, int64_t y, int64_t c) const {
    return bytes[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

struct Trial {
  std::string name;
  const TrialPixels* expected = nullptr;
  JpegToDecode image;
  uint64_t bytes = 0;  // of its room
};

absl::StatusOr<TrialPixels> ByLibjpeg(const TrialPicture& picture, bool luma) {
  JpegDecoder decoder{ImageLimits{}};
  TrialPixels pixels{picture.width, picture.height, luma ? 1 : 3, {}};
  RETURN_IF_ERROR(decoder.Open(std::as_bytes(std::span(picture.file))));
  RETURN_IF_ERROR(decoder.Start({0, 0, pixels.width, pixels.height}, luma));
  PixelRows rows;
  for (int64_t y = 0; y < pixels.height; y += rows.count) {
    RETURN_IF_ERROR(decoder.ReadRows(&rows));
    for (int i = 0; i < rows.count; ++i) {
      const uint8_t* from = rows.first + static_cast<size_t>(i) * rows.stride;
      for (int64_t x = 0; x < pixels.width; ++x, from += luma ? 1 : 4)
        pixels.bytes.insert(pixels.bytes.end(), from, from + pixels.channels);
    }
  }
  return pixels;
}

// Per picture: in colours (none if it is gray), and luma. Made once per
// process.
using Expected = std::vector<std::pair<TrialPixels, TrialPixels>>;
absl::StatusOr<Expected> MakeExpected() {
  Expected expected;
  RETURN_IF_ERROR(TrialPictures().status());
  for (const TrialPicture& picture : *TrialPictures()) {
    auto& [colours, luma] = expected.emplace_back();
    if (!picture.gray) {
      ASSIGN_OR_RETURN(colours, ByLibjpeg(picture, false));
    }
    ASSIGN_OR_RETURN(luma, ByLibjpeg(picture, true));
  }
  return expected;
}
const absl::StatusOr<Expected>& ExpectedPixels() {
  static const auto* const expected =
      new absl::StatusOr<Expected>(MakeExpected());
  return *expected;
}

class DecoderTrial {
 public:
  explicit DecoderTrial(const Slot& slot) : slot_(slot) {}

  absl::Status Run() {
    RETURN_IF_ERROR(ExpectedPixels().status());
    RETURN_IF_ERROR(List());
    RETURN_IF_ERROR(Decode());
    for (const Trial& trial : trials_) RETURN_IF_ERROR(Judge(trial));
    return absl::OkStatus();
  }

 private:
  // Lists everything that the engines take, and the whole images for the
  // processors.
  absl::Status List() {
    const std::vector<TrialPicture>& pictures = *TrialPictures();
    for (size_t i = 0; i < pictures.size(); ++i) {
      const TrialPicture& picture = pictures[i];
      JpegDecoder decoder{ImageLimits{}};
      const auto file = std::as_bytes(std::span(picture.file));
      RETURN_IF_ERROR(decoder.Open(file));
      const JpegDecoder::Header& header = decoder.header();
      if (!slot_.decoder->Takes(header)) continue;
      const DecodeShape whole = WholeImage(header.size);
      const auto& [colours, lumas] = (*ExpectedPixels())[i];
      // Only for the processors, which decode so many pixels in another way.
      if (picture.large()) {
        Add(picture, false, {.engines = false, .shape = whole}, colours);
        continue;
      }
      std::vector<DecodeShape> shapes = {whole};
      const StoredRect middle{picture.width / 3, picture.height / 3,
                              picture.width / 4, picture.height / 4};
      if (const DecodeShape region = ShapesOf(header, middle, 0).shapes[0];
          region.cut)
        shapes.push_back(region);
      for (int halvings = 1; halvings <= kMostHalvings; ++halvings)
        shapes.push_back({.region = whole.region, .halvings = halvings});
      for (const bool luma : {false, true}) {
        if (picture.gray && !luma) continue;
        const TrialPixels& expected = luma ? lumas : colours;
        for (const DecodeShape& shape : shapes) {
          const DecodeShape asked[] = {shape, whole};
          ASSIGN_OR_RETURN(const DecodeChoice choice,
                           slot_.decoder->Choose(file, luma, asked));
          if (choice.engines && choice.shape == shape)
            Add(picture, luma, choice, expected);
        }
        Add(picture, luma, {.engines = false, .shape = whole}, expected);
      }
    }
    return absl::OkStatus();
  }

  void Add(const TrialPicture& picture, bool luma, const DecodeChoice& choice,
           const TrialPixels& expected) {
    const ImageSize room = RoomOf(choice.shape);
    const int64_t pitch = room.width * expected.channels;
    Trial trial{.name = fmt::format(
                    "{}, {}, {}{} by {}", picture.name, luma ? "luma" : "RGB",
                    choice.shape.cut ? "a region" : "whole",
                    choice.shape.halvings == 0
                        ? ""
                        : fmt::format(" at 1/{}", 1 << choice.shape.halvings),
                    choice.engines ? "engines" : "the device's processors"),
                .expected = &expected,
                .image = {.encoded = std::as_bytes(std::span(picture.file)),
                          .luma = luma,
                          .choice = choice,
                          .address = slot_.device_images + used_,
                          .pitch = static_cast<size_t>(pitch)},
                .bytes = static_cast<uint64_t>(pitch * room.height)};
    const uint64_t taken = (trial.bytes + 2 * kBehind - 1) / kBehind * kBehind;
    // A worker's slots have at least 96 MiB (GpuConfig::Validate).
    if (taken > slot_.image_bytes - used_) return;
    used_ += taken;
    trials_.push_back(std::move(trial));
  }

  // Decodes all in one call, as for a group.
  absl::Status Decode() {
    DeviceQueue& queue = *slot_.queue;
    RETURN_IF_ERROR(queue.Fill(slot_.device_images, kUntouched, used_));
    RETURN_IF_ERROR(queue.Wait());
    std::vector<JpegToDecode> images;
    for (const Trial& trial : trials_) images.push_back(trial.image);
    RETURN_IF_ERROR(slot_.decoder->Decode(images));
    memory_.resize(used_);
    RETURN_IF_ERROR(queue.ToHost(memory_.data(), slot_.device_images, used_));
    RETURN_IF_ERROR(queue.Wait());
    for (size_t i = 0; i < trials_.size(); ++i)
      trials_[i].image.outcome = images[i].outcome;
    return absl::OkStatus();
  }

  absl::Status Judge(const Trial& trial) const {
    const JpegToDecode& image = trial.image;
    if (image.outcome != JpegToDecode::Outcome::kDecoded)
      return Internal("{} does not decode a picture ({})",
                      slot_.decoder->name(), trial.name);
    const uint8_t* const first =
        memory_.data() + (image.address - slot_.device_images);
    if (std::any_of(first + trial.bytes, first + trial.bytes + kBehind,
                    [](uint8_t byte) { return byte != kUntouched; }))
      return Internal("{} writes behind a picture's memory ({})",
                      slot_.decoder->name(), trial.name);
    double sum = 0, far = 0, count = 0;
    Compare(trial, first, [&](int difference) {
      sum += difference;
      far += difference > kFarOff ? 1 : 0;
      ++count;
    });
    if (sum <= kMostMean * count && far <= kMostFarShare * count)
      return absl::OkStatus();
    return Internal(
        "{} makes other pixels of a picture than libjpeg ({}): they differ by "
        "{:.3g} of 255 on average, want {} at most, and {:.3g} % by more than "
        "{}",
        slot_.decoder->name(), trial.name, sum / count, kMostMean,
        100 * far / count, kFarOff);
  }

  // Calls `take` with the difference of each byte that rows rely on: in a
  // region without its edges inside the image, in a reduced image without the
  // last pixels.
  template <class Take>
  static void Compare(const Trial& trial, const uint8_t* first, Take take) {
    const TrialPixels& expected = *trial.expected;
    const DecodeShape& shape = trial.image.choice.shape;
    const int64_t side = int64_t{1} << shape.halvings;
    const StoredSize size = DecodedSize(shape);
    const int64_t edge = shape.cut ? kRegionEdge : 0;
    const int64_t end_x = std::min(size.width, expected.width / side) - edge;
    const int64_t end_y = std::min(size.height, expected.height / side) - edge;
    // Compares only some of many pixels, all over the image.
    const int64_t step = expected.width > kMostCompared ? 5 : 1;
    for (int64_t y = edge; y < end_y; y += step)
      for (int64_t x = edge; x < end_x; x += step)
        for (int64_t c = 0; c < expected.channels; ++c) {
          int64_t sum = side * side / 2;
          for (int64_t v = 0; v < side; ++v)
            for (int64_t u = 0; u < side; ++u)
              sum += expected.At(shape.region.x + x * side + u,
                                 shape.region.y + y * side + v, c);
          const auto got =
              int64_t{first[static_cast<size_t>(y) * trial.image.pitch +
                            static_cast<size_t>(x * expected.channels + c)]};
          take(static_cast<int>(std::abs(sum / (side * side) - got)));
        }
  }

  static constexpr int64_t kRegionEdge = 16;     // an iMCU
  static constexpr int64_t kMostCompared = 512;  // along a side

  const Slot& slot_;
  std::vector<Trial> trials_;
  uint64_t used_ = 0;  // of the slot's memory for images
  std::vector<uint8_t> memory_;
};

}  // namespace

absl::Status TryDecoder(const Slot& slot) { return DecoderTrial(slot).Run(); }

}  // namespace leat::worker
