// SPDX-License-Identifier: Apache-2.0
//
// Rates, each next to its limit, in one run over the same files.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/gpu_check.h"
#include "tests/worker/gpu/gpu_graphs.h"
#include "tests/worker/image_support.h"
#include "worker/gpu/decode_shape.h"
#include "worker/gpu/fused_group.h"
#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/jpeg_kind.h"
#include "worker/gpu/slots.h"
#include "worker/job_runtime.h"
#include "worker/scheduler.h"

namespace leat::gpu_check {
namespace {

using worker::DecodeShape;
using worker::Slot;

double SecondsSince(MonotonicTime start) {
  return std::chrono::duration<double>(Clock::Real().Now() - start).count();
}

}  // namespace

absl::StatusOr<Bench> OpenBench(const Setup& setup) {
  Bench bench;
  const auto search = cuda::LibrarySearch::FromEnvironment();
  ASSIGN_OR_RETURN(auto driver, cuda::LoadDriver(search));
  ASSIGN_OR_RETURN(bench.gpu,
                   worker::Gpu::Open(std::move(driver), setup.device));
  if (setup.nvjpeg()) {
    ASSIGN_OR_RETURN(bench.library, cuda::LoadNvjpeg(search));
    ASSIGN_OR_RETURN(bench.nvjpeg, worker::NvjpegDevice::Open(
                                       bench.library.get(), bench.gpu.get()));
  }
  worker::GpuConfig config = setup.config;
  config.slots = 2;
  ASSIGN_OR_RETURN(bench.slots, worker::Slots::Create(config, bench.gpu.get(),
                                                      bench.nvjpeg.get()));
  return bench;
}

namespace {

// How much of the images is decoded: the whole, the middle (half as wide and as
// high), or all of them at half their size.
enum class Part { kWhole, kMiddle, kHalf };

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

// The files that nvJPEG is given, as many as a slot's memory holds at a time.
absl::StatusOr<std::vector<std::vector<worker::JpegToDecode>>> Batches(
    const Setup& setup, const Bench& bench, Part part) {
  const uint64_t bytes = setup.config.decode_bytes;
  std::vector<std::vector<worker::JpegToDecode>> batches(1);
  uint64_t used = 0;
  for (const std::string& file : setup.files) {
    worker::JpegDecoder decoder({});
    if (!decoder.Open(worker::AsSpan(file)).ok() ||
        !worker::IsForNvjpeg(decoder.header()))
      continue;
    const bool luma = decoder.header().components == 1;
    const DecodeShape shapes[] = {ShapeOf(decoder.header(), part),
                                  worker::WholeImage(decoder.header().size)};
    ASSIGN_OR_RETURN(const worker::NvjpegChoice choice,
                     bench.slots->all()[0]->nvjpeg->Choose(worker::AsSpan(file),
                                                           luma, shapes));
    if (part != Part::kWhole && !(choice.shape == shapes[0])) continue;
    const ImageSize size = worker::DecodedSize(choice.shape);
    const auto width = static_cast<uint64_t>(size.width);
    const auto height = static_cast<uint64_t>(size.height);
    const uint64_t need = (width * height * 3 + 511) / 512 * 512;
    if (used + need > bytes ||
        batches.back().size() == worker::kMaxGpuGroupRows) {
      batches.emplace_back();
      used = 0;
    }
    batches.back().push_back(
        {.encoded = worker::AsSpan(file),
         .luma = luma,
         .choice = choice,
         .address = used,
         .pitch = static_cast<size_t>(luma ? width : width * 3)});
    used += need;
  }
  return batches;
}

// nvJPEG alone, two batches in flight: the limit of class nvjpeg.
absl::StatusOr<double> BareNvjpeg(const Setup& setup, Bench& bench, Part part) {
  ASSIGN_OR_RETURN(const auto batches, Batches(setup, bench, part));
  if (batches[0].empty()) return Unimplemented("the engines refuse it");
  const std::vector<Slot*> slots = bench.slots->all();
  const auto pass = [&]() -> absl::StatusOr<size_t> {
    size_t images = 0, next = 0;
    for (auto batch : batches) {
      Slot& slot = *slots[next++ % slots.size()];
      RETURN_IF_ERROR(bench.gpu->Wait(slot));
      for (worker::JpegToDecode& image : batch)
        image.address += slot.device_images;
      RETURN_IF_ERROR(slot.nvjpeg->Decode(batch, slot.stream));
      images += batch.size();
    }
    for (const Slot* slot : slots) RETURN_IF_ERROR(bench.gpu->Wait(*slot));
    return images;
  };
  RETURN_IF_ERROR(pass().status());
  const MonotonicTime start = Clock::Real().Now();
  size_t images = 0;
  for (int i = 0; i < (setup.quick ? 1 : 20); ++i) {
    ASSIGN_OR_RETURN(const size_t some, pass());
    images += some;
  }
  return static_cast<double>(images) / SecondsSince(start);
}

// The fused kernel alone over a group of photos: seconds a launch, and bytes
// that it has to read and write at least.
absl::Status MeasureKernel(const Setup& setup, Bench& bench, Report* report) {
  const CheckedGraph graph = *Check(worker::CropGraph(224));
  ASSIGN_OR_RETURN(const auto program, worker::FusedProgram::Compile(graph, 7));
  Slot& slot = *bench.slots->all()[0];
  const size_t rows = std::min<size_t>(setup.files.size(), 100);
  worker::FusedGroup group;
  std::vector<std::byte> memory(program->BlockBytes(rows) + 64);
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  RETURN_IF_ERROR(
      group.Begin(*program, rows, {aligned, program->BlockBytes(rows)}));
  worker::FusedScratch scratch;
  const worker::StoredSample stored = worker::StoredImage({}, 7);
  double bytes = 0;
  uint64_t at = 0;
  for (size_t row = 0; row < rows; ++row) {
    worker::JpegDecoder decoder({});
    if (!decoder.Open(worker::AsSpan(setup.files[row])).ok()) continue;
    const auto part =
        group.PrepareRow(row, {1, row, stored.fields}, decoder.header().size,
                         decoder.header().orientation, &scratch);
    if (!part.ok()) continue;
    const uint64_t need = static_cast<uint64_t>(part->width * part->height * 3);
    if (at + need > setup.config.decode_bytes) break;
    RETURN_IF_ERROR(group.BindSource(row, {.address = slot.device_images + at,
                                           .held = *part,
                                           .pitch = part->width * 3}));
    group.BindOutput(row, 0, slot.device_outputs + row * 224 * 224 * 3);
    at += (need + 511) / 512 * 512;
    bytes += static_cast<double>(need) + 224 * 224 * 3;
  }
  if (group.used_bytes() > worker::kSlotBlockBytes)
    return ResourceExhausted("descriptors of {} bytes", group.used_bytes());
  RETURN_IF_ERROR(bench.gpu->ToDevice(slot.device_block, aligned,
                                      group.used_bytes(), slot.stream));
  RETURN_IF_ERROR(
      bench.gpu->Launch(*program, rows, slot.device_block, slot.stream));
  RETURN_IF_ERROR(bench.gpu->Wait(slot));
  const int launches = setup.quick ? 2 : 200;
  const MonotonicTime start = Clock::Real().Now();
  for (int i = 0; i < launches; ++i)
    RETURN_IF_ERROR(
        bench.gpu->Launch(*program, rows, slot.device_block, slot.stream));
  RETURN_IF_ERROR(bench.gpu->Wait(slot));
  const double seconds = SecondsSince(start) / launches;
  report->Figure("fused kernel", static_cast<double>(rows) / seconds, "img/s",
                 fmt::format("{:.3g} ms for {} images", seconds * 1e3, rows));
  report->Figure("fused kernel, bytes read and written", bytes / seconds / 1e9,
                 "GB/s");
  return absl::OkStatus();
}

// Counts rows, and keeps a few asks in flight.
class CountingSink final : public worker::GroupSink {
 public:
  void OnGroup(worker::FinishedGroup group) override {
    if (!group.status.ok()) ++failed;
    rows += group.rows.size();
    rows.notify_all();
  }
  std::atomic<size_t> rows{0}, failed{0};
};

// Files to rows in pinned memory, as the worker does it, but for the network.
absl::StatusOr<double> Pipeline(const Setup& setup,
                                DecoderClass decoder_class) {
  JobInfo job;
  job.spec.name = "rate";
  job.spec.batch = 256;
  job.spec.last_batch = LastBatch::kFill;
  job.spec.decoder_class = decoder_class;
  job.spec.on_bad_sample = BadSamplePolicy::kReplace;
  job.spec.pipeline = worker::CropGraph(224, setup.folder);
  ASSIGN_OR_RETURN(const CheckedGraph graph, CheckSpec(job.spec));
  job.spec.pipeline = graph.graph;
  const Node& reader = graph.graph.nodes[graph.reader];
  ASSIGN_OR_RETURN(const worker::BuiltIndex index,
                   worker::BuildIndex(reader, {}));
  ASSIGN_OR_RETURN(std::shared_ptr<const worker::Source> source,
                   worker::OpenSource(reader, index.blob, {}));
  job.schema = graph.schema;
  job.dataset = {.id = "rate",
                 .name = index.name,
                 .reader = CanonicalText(reader),
                 .fingerprint = index.fingerprint,
                 .shards = index.shards,
                 .bytes = index.bytes,
                 .classes = index.classes};
  job.plan_hash = PlanHash(job.spec, job.dataset);
  worker::SampleCache cache(uint64_t{8} << 30);
  worker::BadSamples bad;
  worker::Ownership ownership;
  const worker::RuntimeContext context{.kernels = setup.gpus->kernels(),
                                       .cache = &cache,
                                       .bad_samples = &bad,
                                       .ownership = &ownership};
  ASSIGN_OR_RETURN(
      const auto runtime,
      worker::JobRuntime::Create(std::move(job), source, 1, &context));
  worker::BufferPool pool(uint64_t{1} << 30, setup.wake,
                          setup.gpus->buffer_memory());
  worker::Scheduler scheduler(
      {.threads = setup.threads,
       .group_bytes = setup.config.group_bytes,
       .max_rows_per_group = worker::kMaxGpuGroupRows,
       .rows_at_once = worker::JpegsAtOnce(setup.gpus->devices()),
       .make_thread_state = context.kernels.make_thread_state},
      &pool, setup.wake, Clock::Real());
  const auto sink = std::make_shared<CountingSink>();
  ASSIGN_OR_RETURN(const auto stream, scheduler.OpenStream(runtime, sink));
  const uint64_t samples = runtime->plan().num_samples();
  size_t asked = 0;
  const auto ask = [&](uint64_t step) {
    worker::RowAsk rows{.ask_id = step + 1, .step = step};
    for (uint32_t row = 0; row < 256; ++row) {
      rows.rows.push_back(row);
      rows.samples.push_back((step * 256 + row) % samples);
    }
    asked += 256;
    return scheduler.Ask(stream, std::move(rows));
  };
  const auto finished = [&](size_t rows) {
    for (size_t seen = sink->rows; seen < rows; seen = sink->rows)
      sink->rows.wait(seen);
  };
  const uint64_t warm = samples / 256 + 1, steps = setup.quick ? 2 : 400;
  uint64_t step = 0;
  for (; step < warm; ++step) RETURN_IF_ERROR(ask(step));
  finished(asked);
  const MonotonicTime start = Clock::Real().Now();
  const size_t before = asked;
  for (; step < warm + steps; ++step) {
    RETURN_IF_ERROR(ask(step));
    if (asked > before + 16 * 256) finished(asked - 16 * 256);
  }
  finished(asked);
  const double rate = static_cast<double>(asked - before) / SecondsSince(start);
  if (sink->failed > 0)
    return Internal("{} groups failed", sink->failed.load());
  return rate;
}

}  // namespace

void MeasureRates(const Setup& setup, Report* report) {
  const auto say = [&](std::string_view name,
                       const absl::StatusOr<double>& rate) {
    if (rate.ok())
      report->Figure(name, *rate, "img/s");
    else
      report->Check(name, false, Message(rate.status()));
    return rate.ok() ? *rate : 0;
  };
  double bare = 0;
  {
    auto bench = OpenBench(setup);
    if (!bench.ok())
      return report->Check("rates", false, Message(bench.status()));
    if (setup.nvjpeg())
      bare = say("nvJPEG alone, full images",
                 BareNvjpeg(setup, *bench, Part::kWhole));
    for (const auto& [name, part] :
         {std::pair("nvJPEG alone, a quarter of each image", Part::kMiddle),
          std::pair("nvJPEG alone, images at 1/2", Part::kHalf)}) {
      if (!setup.nvjpeg()) continue;
      const auto rate = BareNvjpeg(setup, *bench, part);
      if (absl::IsUnimplemented(rate.status()))
        report->Missing(name, Message(rate.status()));
      else if (const double ours = say(name, rate); bare > 0)
        report->Figure(std::string(name) + ", to full images", ours / bare,
                       "times");
    }
    const absl::Status kernel = MeasureKernel(setup, *bench, report);
    if (!kernel.ok()) report->Check("fused kernel", false, Message(kernel));
  }
  say(fmt::format("pipeline, class exact, {} threads", setup.threads),
      Pipeline(setup, DecoderClass::kExact));
  if (!setup.nvjpeg()) return;
  const double rate =
      say(fmt::format("pipeline, class nvjpeg, {} threads", setup.threads),
          Pipeline(setup, DecoderClass::kNvjpeg));
  if (bare > 0)
    report->Figure("pipeline, class nvjpeg, to nvJPEG alone", rate / bare,
                   "times", "(goal: 0.9)");
}

}  // namespace leat::gpu_check
