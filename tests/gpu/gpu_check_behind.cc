// SPDX-License-Identifier: Apache-2.0
//
// The order of the engines and a stream: whether a kernel directly after a
// batch sees all of its pixels, which the worker relies on, and whether a batch
// waits for earlier work on its stream, on which the worker must not rely.
#include <algorithm>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/raw_nvjpeg.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/graphs.h"

namespace leat::gpu_check {
namespace {

constexpr int kSide = 384;
constexpr uint8_t kFill = 0xaa;
constexpr int kBatches = 10'000, kOvertakings = 50;
constexpr double kFirstSeconds = 8, kAllSeconds = 60;

// A batch of images; the kernel copies each of them to a row, byte by byte.
struct Copied {
  std::vector<std::string> files;
  FusedRows rows;
  std::vector<worker::JpegToDecode> batch;
  size_t image_bytes() const { return size_t{kSide} * kSide * 3; }
};

absl::StatusOr<Copied> Prepare(const Setup& setup, const Bench& bench) {
  Copied copied;
  for (uint32_t seed = 1; seed <= 24; ++seed)
    copied.files.push_back(testing::MakeJpeg(
        {.width = kSide, .height = kSide, .h = 2, .v = 2, .seed = seed}));
  const ImageSize size{.height = kSide, .width = kSide};
  const std::vector<ImageSize> sizes(copied.files.size(), size);
  ASSIGN_OR_RETURN(copied.rows,
                   BindRows(setup, bench, worker::CenterGraph(kSide), sizes));
  for (size_t i = 0; i < copied.rows.rows; ++i) {
    ASSIGN_OR_RETURN(const worker::JpegToDecode image,
                     WholeJpeg(bench.slot(), copied.files[i], size, false,
                               copied.rows.images[i]));
    if (!image.choice.engines) return Unimplemented("the engines refuse it");
    copied.batch.push_back(image);
  }
  return copied;
}

absl::Status FillImages(const Bench& bench, const Copied& copied,
                        uint8_t value) {
  const worker::Slot& slot = bench.slot();
  return slot.queue->Fill(copied.rows.images.front(), value,
                          copied.rows.images.back() -
                              copied.rows.images.front() +
                              copied.image_bytes());
}

// Copies the rows from images that were just decoded. `wait`: for the batch.
absl::Status Rows(const Bench& bench, Copied& copied, bool wait,
                  std::span<std::byte> rows) {
  const worker::Slot& slot = bench.slot();
  RETURN_IF_ERROR(FillImages(bench, copied, kFill));
  RETURN_IF_ERROR(slot.queue->Wait());
  RETURN_IF_ERROR(slot.decoder->Decode(copied.batch));
  if (wait) RETURN_IF_ERROR(slot.queue->Wait());
  RETURN_IF_ERROR(Launch(bench, copied.rows));
  RETURN_IF_ERROR(
      slot.queue->ToHost(rows.data(), slot.device_outputs, rows.size()));
  return slot.queue->Wait();
}

absl::Status KernelBehindBatch(const Setup& setup, const Bench& bench,
                               Copied& copied, Report* report) {
  const size_t bytes = copied.rows.rows * copied.rows.field_bytes;
  // Pinned, so that the copy is like the worker's.
  const std::span<std::byte> rows = bench.slot().pixels.first(bytes);
  RETURN_IF_ERROR(Rows(bench, copied, true, rows));
  const std::vector<std::byte> expected(rows.begin(), rows.end());
  report->Check("the images are not what the memory was filled by",
                std::count(expected.begin(), expected.end(), std::byte{kFill}) <
                    static_cast<std::ptrdiff_t>(expected.size() / 2));
  const int most = setup.Times(kBatches, setup.first ? 15 : 5);
  const double seconds = setup.first ? kFirstSeconds : kAllSeconds;
  int done = 0, wrong = 0;
  const MonotonicTime start = Clock::Real().Now();
  for (; done < most && SecondsSince(start) < seconds; ++done) {
    RETURN_IF_ERROR(Rows(bench, copied, false, rows));
    wrong += !std::equal(rows.begin(), rows.end(), expected.begin());
  }
  report->Figure("batches with a kernel directly behind", done, "batches");
  report->Check("a kernel directly behind a batch sees all of its pixels",
                wrong == 0,
                fmt::format("{} of {} batches differ", wrong, done));
  return absl::OkStatus();
}

// Uses nvJPEG alone, since the worker's code would wait.
absl::Status BatchBehindWork(const Setup& setup, const Bench& bench,
                             const Copied& copied, Report* report) {
  const worker::Slot& slot = bench.slot();
  ASSIGN_OR_RETURN(const auto raw,
                   RawNvjpeg::Open(bench.library.get(), bench.gpu.get(),
                                   cuda::NvjpegBackend::kHardware));
  ASSIGN_OR_RETURN(const auto batches, RawBatches::Open(raw.get()));
  std::vector<RawImage> images;
  for (size_t i = 0; i < copied.batch.size(); ++i)
    images.push_back({worker::AsSpan(copied.files[i]), copied.batch[i].address,
                      copied.batch[i].pitch});
  std::vector<std::byte> first(copied.image_bytes()), image(first.size());
  const auto decode = [&](std::vector<std::byte>* pixels) {
    absl::Status status =
        cuda::Check(batches->Decode(images), "nvjpegDecodeBatched");
    if (status.ok())
      status = batches->queue().ToHost(pixels->data(), images[0].address,
                                       pixels->size());
    if (status.ok()) status = batches->Wait();
    return status;
  };
  RETURN_IF_ERROR(decode(&first));
  const int most = setup.quick ? 2 : kOvertakings;
  int overtaken = 0;
  for (int i = 0; i < most; ++i) {
    // Queues milliseconds of work on the stream, over the images.
    for (int k = 0; k < (setup.quick ? 1 : 32); ++k)
      RETURN_IF_ERROR(batches->queue().Fill(slot.device_images, kFill,
                                            setup.config.decode_bytes));
    RETURN_IF_ERROR(decode(&image));
    overtaken += image != first;
  }
  report->Figure("batches that did not wait for earlier work on their stream",
                 overtaken, fmt::format("of {}", most), {},
                 "Leat does not rely on it");
  return absl::OkStatus();
}

}  // namespace

void CheckBehind(const Setup& setup, Report* report) {
  constexpr char kWhat[] = "the order of engines and kernels";
  Bench bench;
  if (!OpenEngines(setup, kWhat, report, &bench)) return;
  auto copied = Prepare(setup, bench);
  if (absl::IsUnimplemented(copied.status()))
    return report->Missing(kWhat, Message(copied.status()));
  absl::Status status = copied.status();
  if (status.ok()) status = KernelBehindBatch(setup, bench, *copied, report);
  if (status.ok()) status = BatchBehindWork(setup, bench, *copied, report);
  if (!status.ok()) report->Check(kWhat, false, Message(status));
}

}  // namespace leat::gpu_check
