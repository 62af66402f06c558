// SPDX-License-Identifier: Apache-2.0
//
// Measures each part of the worker's GPU path by itself, timed by the device's
// events: copies by size, page-locking, the fused kernel, the JPEG kernels.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/worker/gpu/graphs.h"
#include "tests/worker/image/program/support.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/kernels/jpeg.h"
#include "worker/gpu/kernels/names.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::gpu_check {
namespace {

// Returns the seconds on the stream of the fastest of several runs, after a
// warm-up.
class StreamTimer {
 public:
  explicit StreamTimer(const Bench& bench)
      : driver_(bench.gpu->driver()), stream_(Bench::StreamOf(bench.slot())) {
    driver_.EventCreate(&start_, cuda::kEventDefault);
    driver_.EventCreate(&end_, cuda::kEventDefault);
  }
  ~StreamTimer() {
    driver_.EventDestroy(start_);
    driver_.EventDestroy(end_);
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  template <class Enqueue>
  absl::StatusOr<double> Fastest(int times, Enqueue enqueue) {
    float fastest = std::numeric_limits<float>::max();
    for (int i = 0; i <= times; ++i) {
      RETURN_IF_ERROR(Ok(driver_.EventRecord(start_, stream_)));
      RETURN_IF_ERROR(enqueue());
      RETURN_IF_ERROR(Ok(driver_.EventRecord(end_, stream_)));
      RETURN_IF_ERROR(Ok(driver_.EventSynchronize(end_)));
      float milliseconds = 0;
      RETURN_IF_ERROR(
          Ok(driver_.EventElapsedTime(&milliseconds, start_, end_)));
      if (i > 0) fastest = std::min(fastest, milliseconds);
    }
    return std::max(fastest * 1e-3, 1e-9);
  }

 private:
  absl::Status Ok(cuda::Result result) const {
    return cuda::Check(driver_, result, "timing");
  }
  const cuda::Driver& driver_;
  const cuda::Stream stream_;
  cuda::Event start_ = nullptr, end_ = nullptr;
};

absl::Status MeasureCopiesOf(const Setup& setup, const Bench& bench,
                             Report* report) {
  const worker::Slot& slot = bench.slot();
  StreamTimer timer(bench);
  const int times = setup.quick ? 2 : 20;
  std::vector<std::byte> pageable(slot.pixels.size());
  for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20,
                             size_t{16} << 20, size_t{64} << 20}) {
    if (bytes > slot.pixels.size()) continue;
    const auto say = [&](const char* way,
                         const absl::StatusOr<double>& seconds) {
      if (seconds.ok())
        report->Figure("copy", static_cast<double>(bytes) / *seconds / 1e9,
                       "GB/s",
                       {{"way", way}, {"KiB", fmt::format("{}", bytes >> 10)}});
      return seconds.status();
    };
    for (const auto& [memory, name] :
         {std::pair(slot.pixels.data(), "page-locked"),
          std::pair(pageable.data(), "pageable")}) {
      RETURN_IF_ERROR(say(fmt::format("to the device, {}", name).c_str(),
                          timer.Fastest(times, [&, from = memory] {
                            return slot.queue->ToDevice(slot.device_pixels,
                                                        from, bytes);
                          })));
      RETURN_IF_ERROR(say(fmt::format("to the host, {}", name).c_str(),
                          timer.Fastest(times, [&, to = memory] {
                            return slot.queue->ToHost(to, slot.device_pixels,
                                                      bytes);
                          })));
    }
    RETURN_IF_ERROR(say("within the device", timer.Fastest(times, [&] {
      return bench.gpu->Check(bench.gpu->driver().MemcpyDtoDAsync(
                                  slot.device_pixels.number(),
                                  bench.slots->all()[1]->device_pixels.number(),
                                  bytes, Bench::StreamOf(slot)),
                              "cuMemcpyDtoDAsync");
    })));
  }
  return absl::OkStatus();
}

// Copies in both directions at the same time, each on a slot's stream.
absl::Status MeasureBothWays(const Setup& setup, const Bench& bench,
                             Report* report) {
  const std::vector<worker::Slot*> slots = bench.slots->all();
  const size_t bytes = slots[0]->pixels.size();
  const int times = setup.quick ? 2 : 20;
  const MonotonicTime start = Clock::Real().Now();
  for (int i = 0; i < times; ++i) {
    RETURN_IF_ERROR(slots[0]->queue->ToDevice(slots[0]->device_pixels,
                                              slots[0]->pixels.data(), bytes));
    RETURN_IF_ERROR(slots[1]->queue->ToHost(slots[1]->pixels.data(),
                                            slots[1]->device_pixels, bytes));
  }
  for (const worker::Slot* slot : slots) RETURN_IF_ERROR(slot->queue->Wait());
  report->Figure(
      "copy",
      2.0 * times * static_cast<double>(bytes) / SecondsSince(start) / 1e9,
      "GB/s",
      {{"way", "both ways at once, page-locked"},
       {"KiB", fmt::format("{}", bytes >> 10)}});
  return absl::OkStatus();
}

// Uses shared memory of the size of a batch that a consumer shares.
absl::Status MeasurePageLocking(const Bench& bench, Report* report) {
  constexpr size_t kBytes = size_t{150} << 20;
  const cuda::Driver& d = bench.gpu->driver();
  const int fd = memfd_create("leat-gpu-check", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, kBytes) != 0)
    return Internal("no memfd of {} bytes", kBytes);
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return Internal("mmap of {} bytes", kBytes);
  const auto say = [&](const char* what, MonotonicTime start) {
    report->Figure("page-locking", SecondsSince(start) * 1e3, "ms",
                   {{"call", what}}, fmt::format("{:.0f} MiB", kBytes / kMiB));
  };
  MonotonicTime start = Clock::Real().Now();
  const cuda::Result pinned =
      d.MemHostRegister(memory, kBytes, cuda::kHostRegisterPortable);
  say("cuMemHostRegister of a memfd", start);
  report->Check("shared memory can be page-locked",
                pinned == cuda::Result::kSuccess,
                Message(bench.gpu->Check(pinned, "cuMemHostRegister")));
  if (pinned == cuda::Result::kSuccess) {
    start = Clock::Real().Now();
    d.MemHostUnregister(memory);
    say("cuMemHostUnregister", start);
  }
  munmap(memory, kBytes);
  void* allocated = nullptr;
  start = Clock::Real().Now();
  RETURN_IF_ERROR(bench.gpu->Check(
      d.MemHostAlloc(&allocated, kBytes, cuda::kHostAllocPortable),
      "cuMemHostAlloc"));
  say("cuMemHostAlloc", start);
  start = Clock::Real().Now();
  d.MemFreeHost(allocated);
  say("cuMemFreeHost", start);
  return absl::OkStatus();
}

// Crops and resizes a group of photos.
absl::Status MeasureKernel(const Setup& setup, const Bench& bench,
                           Report* report) {
  std::vector<ImageSize> sizes;
  for (const std::string& file : setup.files) {
    worker::JpegDecoder decoder({});
    if (decoder.Open(worker::AsSpan(file)).ok())
      sizes.push_back(decoder.header().size);
  }
  ASSIGN_OR_RETURN(const FusedRows rows,
                   BindRows(setup, bench, worker::CropGraph(224), sizes));
  StreamTimer timer(bench);
  ASSIGN_OR_RETURN(const double seconds,
                   timer.Fastest(setup.quick ? 2 : 200,
                                 [&] { return Launch(bench, rows); }));
  const auto count = static_cast<double>(rows.rows);
  report->Figure("fused kernel", count / seconds, "img/s",
                 {{"rows", fmt::format("{}", rows.rows)}});
  report->Figure("fused kernel, a launch", seconds * 1e6, "us",
                 {{"rows", fmt::format("{}", rows.rows)}});
  report->Figure("fused kernel, bytes read and written",
                 rows.bytes / seconds / 1e9, "GB/s",
                 {{"rows", fmt::format("{}", rows.rows)}});
  return absl::OkStatus();
}

uint64_t AlignedJpeg(uint64_t bytes) {
  return (bytes + worker::kJpegAlignment - 1) / worker::kJpegAlignment *
         worker::kJpegAlignment;
}

// Sends photos whose blocks and pixels have room in the slot, whole. Their
// blocks are on the device when this returns, and the list of them at the
// beginning.
absl::StatusOr<std::vector<worker::DeviceJpeg>> SendJpegs(const Setup& setup,
                                                          const Bench& bench) {
  const worker::Slot& slot = bench.slot();
  uint64_t at = worker::kMaxGpuGroupRows * sizeof(worker::DeviceJpeg);
  uint64_t image = 0;
  std::vector<worker::DeviceJpeg> jpegs;
  worker::JpegDecoder decoder({});
  worker::JpegBlocks blocks;
  for (const std::string& file : setup.files) {
    if (jpegs.size() == worker::kMaxGpuGroupRows) break;
    if (!decoder.Open(worker::AsSpan(file)).ok()) continue;
    const ImageSize size = decoder.header().size;
    const auto window =
        decoder.BlocksOf({0, 0, size.width, size.height}, false);
    if (!window) continue;
    ASSIGN_OR_RETURN(const bool read,
                     decoder.ReadBlocks(*window, slot.pixels.size(), &blocks));
    if (!read) continue;
    const uint64_t bytes = worker::JpegPayloadBytes(blocks);
    if (at + bytes > slot.pixels.size() ||
        image + worker::JpegImageBytes(*window) > slot.image_bytes)
      break;
    worker::WriteJpegPayload(blocks, slot.pixels.data() + at);
    jpegs.push_back(worker::DescribeJpeg(blocks, slot.device_pixels + at,
                                         slot.device_images + image));
    at = AlignedJpeg(at + bytes);
    image = AlignedJpeg(image + worker::JpegImageBytes(*window));
  }
  memcpy(slot.pixels.data(), jpegs.data(),
         jpegs.size() * sizeof(worker::DeviceJpeg));
  RETURN_IF_ERROR(
      slot.queue->ToDevice(slot.device_pixels, slot.pixels.data(),
                           std::min<uint64_t>(at, slot.pixels.size())));
  RETURN_IF_ERROR(slot.queue->Wait());
  return jpegs;
}

// Measures the kernels from coefficients to pixels on the device.
absl::Status MeasureJpegKernels(const Setup& setup, const Bench& bench,
                                Report* report) {
  ASSIGN_OR_RETURN(const std::vector<worker::DeviceJpeg> jpegs,
                   SendJpegs(setup, bench));
  if (jpegs.empty()) return NotFound("no photo is of a kind for them");
  double pixels = 0, all = 0;
  for (const worker::DeviceJpeg& jpeg : jpegs)
    pixels += static_cast<double>(jpeg.width) * jpeg.height;
  const Case of = {{"images", fmt::format("{}", jpegs.size())}};
  for (const worker::JpegKernel kernel :
       {worker::JpegKernel::kSamples, worker::JpegKernel::kPixels}) {
    uint32_t threads = 0;
    for (const worker::DeviceJpeg& jpeg : jpegs)
      threads = std::max(threads, worker::JpegThreads(kernel, jpeg));
    const worker::LaunchConfig launch =
        worker::JpegLaunch(threads, static_cast<uint32_t>(jpegs.size()));
    StreamTimer timer(bench);
    ASSIGN_OR_RETURN(
        const double seconds, timer.Fastest(setup.quick ? 2 : 200, [&] {
          return bench.slot().queue->Launch(worker::JpegKernelId(kernel),
                                            launch, bench.slot().device_pixels);
        }));
    report->Figure(worker::kJpegKernels[static_cast<int>(kernel)],
                   seconds * 1e6, "us", of);
    all += seconds;
  }
  report->Figure("JPEG kernels", static_cast<double>(jpegs.size()) / all,
                 "img/s", of);
  report->Figure("JPEG kernels, pixels", pixels / all / 1e9, "Gpixel/s", of);
  return absl::OkStatus();
}

}  // namespace

void MeasureCopies(const Setup& setup, Report* report) {
  const auto bench = OpenBench(setup);
  if (!bench.ok())
    return report->Check("copies", false, Message(bench.status()));
  absl::Status status = MeasureCopiesOf(setup, *bench, report);
  if (status.ok()) status = MeasureBothWays(setup, *bench, report);
  report->Check("copies", status.ok(), Message(status));
  status = MeasurePageLocking(*bench, report);
  report->Check("page-locking", status.ok(), Message(status));
  status = MeasureKernel(setup, *bench, report);
  report->Check("the fused kernel alone", status.ok(), Message(status));
  status = MeasureJpegKernels(setup, *bench, report);
  report->Check("the JPEG kernels alone", status.ok(), Message(status));
}

}  // namespace leat::gpu_check
