// SPDX-License-Identifier: Apache-2.0
//
// nvJPEG's engines alone over the photos, as fast as they go, which bounds the
// worker's rate: by the worker's own calls, whole and in the parts that rows
// ask for; and by nvJPEG's calls alone, by the contents of a batch, by states,
// handles, interpolation, and the files' memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/raw_nvjpeg.h"
#include "tests/worker/gpu/graphs.h"
#include "tests/worker/image/program/support.h"
#include "worker/gpu/cuda/jpeg_kind.h"
#include "worker/gpu/cuda/nvjpeg_device.h"
#include "worker/gpu/fused/group.h"

namespace leat::gpu_check {
namespace {

using worker::DecodeShape;
using worker::Slot;

constexpr int kSlots = 4;  // as in a worker; also of states or handles
constexpr double kPartSeconds = 2, kWaySeconds = 1.5;

absl::Status DecodedBatch(cuda::NvjpegResult result) {
  return cuda::Check(result, "nvjpegDecodeBatched");
}

// The part of the photos that is decoded: the whole, what rows of a crop to 224
// pixels ask for, the middle (half as wide and as high), or all of them at half
// their size.
enum class Part { kWhole, kRows, kMiddle, kHalf };

// The shapes that rows ask for, by photo, best first.
class ShapesOfRows {
 public:
  static absl::StatusOr<ShapesOfRows> Create() {
    ShapesOfRows shapes;
    ASSIGN_OR_RETURN(const CheckedGraph checked, Check(worker::CropGraph(224)));
    ASSIGN_OR_RETURN(shapes.program_, worker::FusedProgram::Compile(checked));
    return shapes;
  }
  absl::StatusOr<worker::DecodeShapes> Of(
      uint64_t row, const worker::JpegDecoder::Header& header) {
    const uint64_t bytes = program_->BlockBytes(1);
    memory_.resize(bytes + 64);
    auto* const aligned = reinterpret_cast<std::byte*>(
        (reinterpret_cast<uintptr_t>(memory_.data()) + 63) / 64 * 64);
    worker::FusedGroup group;
    worker::FusedScratch scratch;
    const worker::StoredSample stored = worker::StoredImage({}, 7);
    RETURN_IF_ERROR(group.Begin(*program_, 1, {aligned, bytes}));
    ASSIGN_OR_RETURN(
        const worker::StoredRect window,
        group.PrepareRow(
            0, {.seed = 7, .epoch = 1, .sample = row, .fields = stored.fields},
            header.size, 1, &scratch));
    return worker::ShapesOf(header, window, group.most_halvings(0));
  }

 private:
  ShapesOfRows() = default;
  std::unique_ptr<worker::FusedProgram> program_;
  std::vector<std::byte> memory_;
};

DecodeShape ShapeOf(const worker::JpegDecoder::Header& header, Part part) {
  const auto [height, width] = header.size;
  if (part == Part::kMiddle)
    return worker::ShapesOf(
               header,
               {width / 4, height / 4, (width + 1) / 2, (height + 1) / 2}, 0)
        .shapes[0];
  DecodeShape shape = worker::WholeImage(header.size);
  shape.halvings = part == Part::kHalf ? 1 : 0;
  return shape;
}

// Returns the photos in batches of as many as a slot's memory holds at a time.
absl::StatusOr<std::vector<std::vector<worker::JpegToDecode>>> PhotoBatches(
    const Setup& setup, const Bench& bench, Part part) {
  std::vector<std::vector<worker::JpegToDecode>> batches(1);
  ASSIGN_OR_RETURN(ShapesOfRows rows, ShapesOfRows::Create());
  uint64_t used = 0, row = 0;
  for (const std::string& file : setup.files) {
    worker::JpegDecoder decoder({});
    if (!decoder.Open(worker::AsSpan(file)).ok() ||
        !worker::IsForNvjpeg(decoder.header()))
      continue;
    const bool luma = decoder.header().components == 1;
    worker::DecodeShapes shapes{
        .shapes = {ShapeOf(decoder.header(), part),
                   worker::WholeImage(decoder.header().size)},
        .count = 2};
    if (part == Part::kRows) {
      const auto asked = rows.Of(row++, decoder.header());
      if (!asked.ok()) continue;  // decoded by the CPU
      shapes = *asked;
    }
    ASSIGN_OR_RETURN(const worker::DecodeChoice choice,
                     bench.slot().decoder->Choose(worker::AsSpan(file), luma,
                                                  shapes.span()));
    const bool any = part == Part::kWhole || part == Part::kRows;
    if (!any && !(choice.shape == shapes.shapes[0])) continue;
    const ImageSize size = worker::DecodedSize(choice.shape);
    const auto width = static_cast<uint64_t>(size.width);
    const uint64_t need =
        (width * static_cast<uint64_t>(size.height) * 3 + 511) / 512 * 512;
    if (used + need > setup.config.decode_bytes ||
        batches.back().size() == worker::kMaxGpuGroupRows) {
      batches.emplace_back();
      used = 0;
    }
    batches.back().push_back(
        {.encoded = worker::AsSpan(file),
         .luma = luma,
         .choice = choice,
         .address = worker::DeviceAddress(used),
         .pitch = static_cast<size_t>(luma ? width : width * 3)});
    used += need;
  }
  return batches;
}

// Measures the worker's own calls, with a batch in flight for each slot: the
// limit of class nvjpeg.
absl::StatusOr<double> PhotoRate(const Setup& setup, const Bench& bench,
                                 Part part) {
  ASSIGN_OR_RETURN(const auto batches, PhotoBatches(setup, bench, part));
  if (batches[0].empty()) return Unimplemented("the engines refuse it");
  const std::vector<Slot*> slots = bench.slots->all();
  size_t next = 0;
  const auto pass = [&]() -> absl::StatusOr<size_t> {
    size_t images = 0;
    for (auto batch : batches) {
      Slot& slot = *slots[next++ % slots.size()];
      RETURN_IF_ERROR(slot.queue->Wait());
      for (worker::JpegToDecode& image : batch)
        image.address = slot.device_images + image.address.number();
      RETURN_IF_ERROR(slot.decoder->Decode(batch));
      images += batch.size();
    }
    return images;
  };
  const auto wait = [&]() -> absl::Status {
    for (const Slot* slot : slots) RETURN_IF_ERROR(slot->queue->Wait());
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(pass().status());
  RETURN_IF_ERROR(wait());
  size_t images = 0;
  const MonotonicTime start = Clock::Real().Now();
  while (SecondsSince(start) < setup.Seconds(kPartSeconds, 0.1)) {
    ASSIGN_OR_RETURN(const size_t some, pass());
    images += some;
  }
  RETURN_IF_ERROR(wait());
  return static_cast<double>(images) / SecondsSince(start);
}

// A way to call nvJPEG; each has one difference from the first.
struct Way {
  const char* photos = "mixed";  // "one sampling", "equal shapes"
  int states = kSlots;           // each with a batch in flight
  int handles = 1;               // that the states belong to
  bool interpolates = true;
  bool page_locked = false;                  // for the files' memory
  size_t images = worker::kMaxGpuGroupRows;  // of a batch, at most
};

// A whole photo that the engines take.
struct Photo {
  std::span<const std::byte> file;
  ImageSize size;
  std::array<int, 2> sampling;
};

std::vector<Photo> WholePhotos(const Setup& setup, const Bench& bench,
                               Report* report) {
  std::vector<Photo> photos;
  double asking = 0, asked = 0;
  for (const std::string& file : setup.files) {
    worker::JpegDecoder decoder({});
    if (!decoder.Open(worker::AsSpan(file)).ok()) continue;
    const auto& header = decoder.header();
    if (header.components != 3 || !worker::IsForNvjpeg(header)) continue;
    const DecodeShape whole[] = {worker::WholeImage(header.size)};
    const MonotonicTime begin = Clock::Real().Now();
    const auto choice =
        bench.slot().decoder->Choose(worker::AsSpan(file), false, whole);
    asking += SecondsSince(begin);
    ++asked;
    if (choice.ok() && choice->engines)
      photos.push_back(
          {worker::AsSpan(file),
           {.height = header.size.height, .width = header.size.width},
           {header.h_samp[0], header.v_samp[0]}});
  }
  report->Figure("questions about an image",
                 asking / std::max(1.0, asked) * 1e6, "us", {{"threads", "1"}});
  return photos;
}

// Returns the photos of the commonest kind, whose keys are equal.
template <class Key>
std::vector<Photo> Commonest(const std::vector<Photo>& photos, Key key) {
  std::map<decltype(key(photos[0])), std::vector<Photo>> kinds;
  for (const Photo& photo : photos) kinds[key(photo)].push_back(photo);
  return std::max_element(kinds.begin(), kinds.end(),
                          [](const auto& a, const auto& b) {
                            return a.second.size() < b.second.size();
                          })
      ->second;
}

std::vector<Photo> Chosen(const std::vector<Photo>& photos,
                          std::string_view which) {
  const auto shape = [](const Photo& photo) {
    return std::tuple(photo.sampling, photo.size.width, photo.size.height);
  };
  if (which == "one sampling")
    return Commonest(photos, [](const Photo& photo) { return photo.sampling; });
  return which == "equal shapes" ? Commonest(photos, shape) : photos;
}

// Holds page-locked copies of files.
class LockedFiles {
 public:
  explicit LockedFiles(const cuda::Driver& driver) : driver_(driver) {}
  ~LockedFiles() {
    if (memory_ != nullptr) driver_.MemFreeHost(memory_);
  }
  LockedFiles(const LockedFiles&) = delete;
  LockedFiles& operator=(const LockedFiles&) = delete;
  absl::Status Take(std::vector<Photo>* photos) {
    size_t bytes = 0;
    for (const Photo& photo : *photos) bytes += photo.file.size();
    RETURN_IF_ERROR(cuda::Check(
        driver_,
        driver_.MemHostAlloc(&memory_, bytes, cuda::kHostAllocPortable),
        "cuMemHostAlloc"));
    auto* at = static_cast<std::byte*>(memory_);
    for (Photo& photo : *photos) {
      memcpy(at, photo.file.data(), photo.file.size());
      photo.file = {at, photo.file.size()};
      at += photo.file.size();
    }
    return absl::OkStatus();
  }

 private:
  const cuda::Driver& driver_;
  void* memory_ = nullptr;
};

// Returns as many photos from `*next` on, cyclically, as a slot has room for.
std::vector<RawImage> NextBatch(const std::vector<Photo>& photos, size_t most,
                                const Slot& slot, size_t* next) {
  std::vector<RawImage> images;
  uint64_t used = 0;
  while (images.size() < most) {
    const Photo& photo = photos[*next % photos.size()];
    const auto pitch = static_cast<size_t>(photo.size.width) * 3;
    const uint64_t need =
        (pitch * static_cast<size_t>(photo.size.height) + 511) / 512 * 512;
    if (used + need > slot.image_bytes) break;
    images.push_back({photo.file, slot.device_images + used, pitch});
    used += need;
    ++*next;
  }
  return images;
}

// Handles and the states on them.
struct Opened {
  std::vector<std::unique_ptr<RawNvjpeg>> handles;
  std::vector<std::unique_ptr<RawBatches>> states;
};

absl::StatusOr<Opened> OpenWay(const Bench& bench, const Way& way) {
  Opened opened;
  for (int i = 0; i < way.handles; ++i) {
    ASSIGN_OR_RETURN(
        opened.handles.emplace_back(),
        RawNvjpeg::Open(bench.library.get(), bench.gpu.get(),
                        cuda::NvjpegBackend::kHardware,
                        way.interpolates ? worker::NvjpegFlags(*bench.library)
                                         : cuda::kNvjpegFlagsDefault));
  }
  for (int i = 0; i < way.states; ++i) {
    ASSIGN_OR_RETURN(
        opened.states.emplace_back(),
        RawBatches::Open(
            opened.handles[static_cast<size_t>(i % way.handles)].get()));
  }
  return opened;
}

struct WayRate {
  double images = 0;   // per second
  double call_us = 0;  // of the calling thread, per image
};

absl::StatusOr<WayRate> RateOf(const Setup& setup, const Bench& bench,
                               const Way& way, std::vector<Photo> photos) {
  LockedFiles locked(bench.gpu->driver());
  if (way.page_locked) RETURN_IF_ERROR(locked.Take(&photos));
  ASSIGN_OR_RETURN(const Opened opened, OpenWay(bench, way));
  const std::vector<Slot*> slots = bench.slots->all();
  const size_t most = setup.quick ? 16 : way.images;
  size_t next = 0, images = 0;
  double calling = 0;
  const auto pass = [&]() -> absl::Status {
    for (size_t i = 0; i < opened.states.size(); ++i) {
      RETURN_IF_ERROR(opened.states[i]->Wait());
      const std::vector<RawImage> batch =
          NextBatch(photos, most, *slots[i], &next);
      const MonotonicTime begin = Clock::Real().Now();
      RETURN_IF_ERROR(DecodedBatch(opened.states[i]->Decode(batch)));
      calling += SecondsSince(begin);
      images += batch.size();
    }
    return absl::OkStatus();
  };
  const auto wait = [&]() -> absl::Status {
    for (const auto& state : opened.states) RETURN_IF_ERROR(state->Wait());
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(pass());
  RETURN_IF_ERROR(wait());
  images = 0;
  calling = 0;
  const MonotonicTime start = Clock::Real().Now();
  while (SecondsSince(start) < setup.Seconds(kWaySeconds, 0.05))
    RETURN_IF_ERROR(pass());
  RETURN_IF_ERROR(wait());
  const auto count = static_cast<double>(images);
  return WayRate{count / SecondsSince(start), calling / count * 1e6};
}

void MeasureWays(const Setup& setup, const Bench& bench, Report* report) {
  constexpr char kWhat[] = "nvJPEG alone, whole photos";
  const std::vector<Photo> photos = WholePhotos(setup, bench, report);
  if (photos.empty())
    return report->Missing(kWhat, "the engines take no photo");
  for (const Way& way :
       {Way{}, Way{.photos = "one sampling"}, Way{.photos = "equal shapes"},
        Way{.states = 1}, Way{.handles = kSlots}, Way{.interpolates = false},
        Way{.page_locked = true}, Way{.images = 32}}) {
    const std::vector<Photo> chosen = Chosen(photos, way.photos);
    const Case of = {{"photos", way.photos},
                     {"states", fmt::format("{}", way.states)},
                     {"handles", fmt::format("{}", way.handles)},
                     {"interpolation", way.interpolates ? "on" : "off"},
                     {"files", way.page_locked ? "page-locked" : "pageable"},
                     {"images", fmt::format("{}", way.images)}};
    const auto rate = RateOf(setup, bench, way, chosen);
    if (!rate.ok()) {
      report->Check(fmt::format("{}: {}, {} states, {} handles", kWhat,
                                way.photos, way.states, way.handles),
                    false, Message(rate.status()));
      continue;
    }
    report->Figure(kWhat, rate->images, "img/s", of,
                   fmt::format("{} photos", chosen.size()));
    report->Figure("nvJPEG's call, an image", rate->call_us, "us", of);
  }
}

}  // namespace

void MeasureNvjpeg(const Setup& setup, Report* report) {
  const auto bench = OpenBench(setup, kSlots);
  if (!bench.ok())
    return report->Check("nvJPEG alone", false, Message(bench.status()));
  if (bench->library == nullptr)
    return report->Missing("nvJPEG alone", "there is no nvJPEG");
  for (const auto& [name, part] :
       {std::pair("whole", Part::kWhole), std::pair("as rows ask", Part::kRows),
        std::pair("a quarter of each", Part::kMiddle),
        std::pair("at 1/2", Part::kHalf)}) {
    const auto rate = PhotoRate(setup, *bench, part);
    if (rate.ok())
      report->Figure("nvJPEG alone, photos", *rate, "img/s", {{"part", name}},
                     fmt::format("{} slots", kSlots));
    else
      report->Missing(fmt::format("nvJPEG alone, photos, {}", name),
                      Message(rate.status()));
  }
  MeasureWays(setup, *bench, report);
  report->Check("the device has survived it", bench->slot().queue->Wait().ok());
}

}  // namespace leat::gpu_check
