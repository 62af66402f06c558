// SPDX-License-Identifier: Apache-2.0
//
// nvJPEG alone, of square images by backend, threads and size, since the
// backend may be chosen by the image's size.
#include <algorithm>
#include <atomic>
#include <thread>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/raw_nvjpeg.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"

namespace leat::gpu_check {
namespace {

using cuda::NvjpegBackend;

// Files of one size, and memory for as many images.
struct Squares {
  int side = 0;
  std::vector<std::string> files;
  std::vector<RawImage> images;
};

Squares MakeSquares(const Bench& bench, int side, size_t room) {
  Squares squares{.side = side};
  for (uint32_t seed = 1; seed <= 4; ++seed)
    squares.files.push_back(testing::MakeJpeg(
        {.width = side, .height = side, .h = 2, .v = 2, .seed = seed}));
  const size_t pitch = static_cast<size_t>(side) * 3;
  const size_t bytes = pitch * static_cast<size_t>(side);
  const size_t count = std::clamp<size_t>(room / bytes, 1, 128);
  for (size_t i = 0; i < count; ++i)
    squares.images.push_back(
        {worker::AsSpan(squares.files[i % squares.files.size()]),
         bench.slot().device_images + i * bytes, pitch});
  return squares;
}

absl::Status Checked(cuda::NvjpegResult result) {
  return cuda::Check(result, "decoding");
}

// Returns images per second in batches, one batch at a time.
absl::StatusOr<double> BatchedRate(RawNvjpeg* raw, const Squares& squares,
                                   double seconds) {
  ASSIGN_OR_RETURN(const auto batches, RawBatches::Open(raw));
  const auto pass = [&] {
    absl::Status status = Checked(batches->Decode(squares.images));
    return status.ok() ? batches->Wait() : status;
  };
  RETURN_IF_ERROR(pass());
  size_t images = 0;
  const MonotonicTime start = Clock::Real().Now();
  while (SecondsSince(start) < seconds) {
    RETURN_IF_ERROR(pass());
    images += squares.images.size();
  }
  return static_cast<double>(images) / SecondsSince(start);
}

// Returns images per second one by one, by several threads with memory of their
// own.
absl::StatusOr<double> PhasesRate(RawNvjpeg* raw, const Squares& squares,
                                  size_t threads, double seconds) {
  std::vector<std::unique_ptr<RawPhases>> phases;
  for (size_t i = 0; i < threads; ++i) {
    ASSIGN_OR_RETURN(phases.emplace_back(), RawPhases::Open(raw));
    RETURN_IF_ERROR(Checked(phases[i]->Decode(squares.images[0])));
    RETURN_IF_ERROR(phases[i]->Wait());
  }
  std::atomic<size_t> images{0};
  std::vector<absl::Status> statuses(threads);
  const MonotonicTime start = Clock::Real().Now();
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      statuses[i] = raw->gpu().MakeCurrent();
      for (size_t next = i; statuses[i].ok() && SecondsSince(start) < seconds;
           next += threads) {
        statuses[i] = Checked(
            phases[i]->Decode(squares.images[next % squares.images.size()]));
        images += statuses[i].ok();
      }
      const absl::Status waited = phases[i]->Wait();
      if (statuses[i].ok()) statuses[i] = waited;
    });
  for (std::thread& thread : running) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return static_cast<double>(images) / SecondsSince(start);
}

void Say(Report* report, const Case& of, const absl::StatusOr<double>& rate) {
  if (rate.ok())
    return report->Figure("nvJPEG alone, squares", *rate, "img/s", of);
  report->Missing(fmt::format("nvJPEG alone, squares, {}, {}, {} pixels a side",
                              of[0].second, of[1].second, of[2].second),
                  Message(rate.status()));
}

// Measures every way of one backend, for every size.
void MeasureBackend(const Setup& setup, const Bench& bench,
                    const std::vector<Squares>& sizes, NvjpegBackend backend,
                    Report* report) {
  const auto opened =
      RawNvjpeg::Open(bench.library.get(), bench.gpu.get(), backend);
  if (!opened.ok())
    return report->Missing(
        fmt::format("nvJPEG alone, squares, {}", NameOf(backend)),
        Message(opened.status()));
  RawNvjpeg* const raw = opened->get();
  for (const Squares& squares : sizes) {
    const auto of = [&](std::string way) {
      return Case{{"backend", std::string(NameOf(backend))},
                  {"way", std::move(way)},
                  {"side", fmt::format("{}", squares.side)}};
    };
    Say(report, of("batches"),
        BatchedRate(raw, squares, setup.Seconds(1, 0.1)));
    if (backend == NvjpegBackend::kHardware) continue;
    for (const size_t threads : {1, 4})
      Say(report, of(fmt::format("one by one, {} threads", threads)),
          PhasesRate(raw, squares, threads, setup.Seconds(1, 0.1)));
  }
  for (const auto& [where, bytes] :
       {std::pair("of the device", raw->most_device_bytes()),
        std::pair("page-locked", raw->most_pinned_bytes())})
    report->Figure(
        "memory that nvJPEG asks for", static_cast<double>(bytes) / 0x1p20,
        "MiB", {{"backend", std::string(NameOf(backend))}, {"memory", where}});
}

}  // namespace

void MeasureSquares(const Setup& setup, Report* report) {
  const auto bench = OpenBench(setup);
  if (!bench.ok())
    return report->Check("nvJPEG alone", false, Message(bench.status()));
  if (bench->library == nullptr)
    return report->Missing("nvJPEG alone", "there is no nvJPEG");
  std::vector<Squares> sizes;
  for (const int side : setup.quick
                            ? std::vector<int>{64, 128}
                            : std::vector<int>{128, 256, 512, 1024, 2048, 4096})
    sizes.push_back(MakeSquares(*bench, side, setup.config.decode_bytes));
  for (const NvjpegBackend backend :
       {NvjpegBackend::kHardware, NvjpegBackend::kHybrid,
        NvjpegBackend::kGpuHybrid})
    MeasureBackend(setup, *bench, sizes, backend, report);
  report->Check("the device has survived it", bench->slot().queue->Wait().ok());
}

}  // namespace leat::gpu_check
