// SPDX-License-Identifier: Apache-2.0
//
// Compares whole images by nvJPEG's engines, in one batch as a worker does it,
// with nvJPEG's CUDA backend and with libjpeg-turbo: by chroma sampling, with
// sides that are multiples of nothing.
#include <algorithm>
#include <array>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"

namespace leat::gpu_check {
namespace {

using testing::JpegColor;
using testing::JpegSpec;
using worker::JpegToDecode;

struct Sampling {
  const char* name;
  JpegColor color;
  int h, v;
};
constexpr Sampling kSamplings[] = {
    {"gray", JpegColor::kGray, 1, 1}, {"4:4:4", JpegColor::kYcc, 1, 1},
    {"4:2:2", JpegColor::kYcc, 2, 1}, {"4:4:0", JpegColor::kYcc, 1, 2},
    {"4:2:0", JpegColor::kYcc, 2, 2},
};
constexpr std::array<int, 2> kSizes[] = {{64, 48},   {65, 49},   {17, 33},
                                         {1, 1},     {8, 7},     {640, 480},
                                         {641, 479}, {333, 500}, {1280, 960}};
// The bound, of 255, for correct decoders that round differently.
constexpr double kMostMean = 2;

struct Picture {
  std::string file;
  ImageSize size;
  bool luma = false;
};

// Adds pictures turned by a quarter, as EXIF says, with unequal sides: only
// Leat may turn them. The large ones are for CUDA's second backend.
void AddTurned(const Sampling& sampling, std::vector<Picture>* pictures) {
  for (const int orientation : {6, 8})
    for (const auto& [width, height] :
         {std::pair(333, 500), std::pair(1281, 963)})
      pictures->push_back({testing::MakeJpeg({.width = width,
                                              .height = height,
                                              .color = sampling.color,
                                              .h = sampling.h,
                                              .v = sampling.v,
                                              .orientation = orientation}),
                           {.height = height, .width = width}});
}

std::vector<Picture> Pictures(const Sampling& sampling) {
  std::vector<Picture> pictures;
  uint32_t seed = 1;
  for (const auto& [width, height] : kSizes)
    for (const int restarts : {0, 3})
      pictures.push_back({testing::MakeJpeg({.width = width,
                                             .height = height,
                                             .color = sampling.color,
                                             .h = sampling.h,
                                             .v = sampling.v,
                                             .restart_interval = restarts,
                                             .seed = seed++}),
                          {.height = height, .width = width}});
  AddTurned(sampling, &pictures);
  // Every third picture is also decoded as luma, into one byte per pixel.
  for (size_t i = 0, count = pictures.size(); i < count; i += 3) {
    pictures.push_back(pictures[i]);
    pictures.back().luma = true;
  }
  return pictures;
}

struct Decoded {
  std::vector<std::vector<uint8_t>> images;  // empty: not decoded
  size_t by_engines = 0, failed = 0;
};

// Decodes all in one call. `engines`: as nvJPEG chooses, else by CUDA.
absl::StatusOr<Decoded> DecodeAll(const Bench& bench,
                                  const std::vector<Picture>& pictures,
                                  bool engines) {
  const worker::Slot& slot = bench.slot();
  std::vector<JpegToDecode> batch;
  std::vector<GuardedImage> places;
  worker::DeviceAddress at = slot.device_images;
  Decoded decoded;
  for (const Picture& picture : pictures) {
    const worker::DecodeShape whole =
        worker::WholeImage(worker::StoredSize(picture.size));
    GuardedImage& place =
        places.emplace_back(&bench, whole, int64_t{picture.luma ? 1 : 3}, at);
    RETURN_IF_ERROR(place.Fill(slot.queue.get(), 0xaa));
    ASSIGN_OR_RETURN(JpegToDecode image,
                     WholeJpeg(slot, picture.file, picture.size, picture.luma,
                               place.address()));
    image.pitch = place.pitch();
    if (!engines) image.choice.engines = false;
    decoded.by_engines += image.choice.engines;
    batch.push_back(image);
    at += (place.bytes() + 511) / 512 * 512;
  }
  RETURN_IF_ERROR(slot.decoder->Decode(batch));
  RETURN_IF_ERROR(slot.queue->Wait());
  for (size_t i = 0; i < batch.size(); ++i) {
    std::vector<uint8_t> bytes;
    if (batch[i].outcome == JpegToDecode::Outcome::kDecoded) {
      ASSIGN_OR_RETURN(
          bytes, places[i].Fetch(slot.queue.get(), batch[i].choice.engines));
    } else {
      ++decoded.failed;
    }
    decoded.images.push_back(std::move(bytes));
  }
  return decoded;
}

void Say(const Sampling& sampling, std::string_view pair,
         const Difference& difference, Report* report) {
  const Case of = {{"sampling", sampling.name}, {"between", std::string(pair)}};
  report->Figure("largest difference", difference.most, "of 255", of);
  report->Figure("mean difference", difference.mean(), "of 255", of);
  report->Check(fmt::format("{}: {} agree", sampling.name, pair),
                difference.mean() <= kMostMean && difference.bytes > 0,
                fmt::format("mean {:.3g} of 255", difference.mean()));
}

absl::Status CompareSampling(const Bench& bench, const Sampling& sampling,
                             Report* report) {
  const std::vector<Picture> pictures = Pictures(sampling);
  ASSIGN_OR_RETURN(const Decoded by_cuda, DecodeAll(bench, pictures, false));
  ASSIGN_OR_RETURN(const Decoded chosen, DecodeAll(bench, pictures, true));
  report->Check(fmt::format("{}: every image is decoded", sampling.name),
                by_cuda.failed + chosen.failed == 0,
                fmt::format("of {} images {} failed by CUDA, {} by the engines",
                            pictures.size(), by_cuda.failed, chosen.failed));
  report->Figure(
      "images that the engines take", static_cast<double>(chosen.by_engines),
      fmt::format("of {}", pictures.size()), {{"sampling", sampling.name}});
  Difference engines_cuda, engines_host, cuda_host;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::vector<uint8_t> host =
        testing::PlainDecode(pictures[i].file, pictures[i].luma).pixels;
    engines_cuda.Add(chosen.images[i], by_cuda.images[i]);
    engines_host.Add(chosen.images[i], host);
    cuda_host.Add(by_cuda.images[i], host);
  }
  if (chosen.by_engines > 0) {
    Say(sampling, "engines and CUDA backend", engines_cuda, report);
    Say(sampling, "engines and libjpeg-turbo", engines_host, report);
  }
  Say(sampling, "CUDA backend and libjpeg-turbo", cuda_host, report);
  return absl::OkStatus();
}

}  // namespace

void CheckWhole(const Setup& setup, Report* report) {
  const auto bench = OpenBench(setup);
  if (!bench.ok())
    return report->Check("whole images", false, Message(bench.status()));
  if (bench->library == nullptr)
    return report->Missing("whole images", "there is no nvJPEG");
  if (!bench->has_engines())
    report->Missing("whole images by engines", "there are no JPEG engines");
  for (const Sampling& sampling : kSamplings) {
    const absl::Status status = CompareSampling(*bench, sampling, report);
    if (!status.ok()) report->Check(sampling.name, false, Message(status));
  }
  SayBeside(*bench, "whole images", report);
  CheckPhotos(setup, report);
}

}  // namespace leat::gpu_check
