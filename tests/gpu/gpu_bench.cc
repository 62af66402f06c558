// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/gpu_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "core/status.h"
#include "tests/worker/image/program/support.h"
#include "worker/gpu/fused/group.h"

namespace leat::gpu_check {

size_t Bench::FreeBytes() const { return gpu->memory().free_bytes; }

double SecondsSince(MonotonicTime start) {
  return std::chrono::duration<double>(Clock::Real().Now() - start).count();
}

absl::StatusOr<Bench> OpenBench(const Setup& setup, int slots) {
  Bench bench;
  const auto search = cuda::LibrarySearch::FromEnvironment();
  ASSIGN_OR_RETURN(auto driver, cuda::LoadDriver(search));
  RETURN_IF_ERROR(cuda::Check(*driver, driver->Init(0), "cuInit"));
  if (auto library = cuda::LoadNvjpeg(search); library.ok())
    bench.library = *std::move(library);
  ASSIGN_OR_RETURN(
      bench.gpu,
      worker::CudaDevice::Open(std::move(driver), bench.library, setup.device));
  if (bench.library != nullptr && bench.gpu->nvjpeg() == nullptr)
    return Internal("nvJPEG does not open on this GPU; the log says why");
  worker::GpuConfig config = setup.config;
  config.slots = slots;
  ASSIGN_OR_RETURN(bench.slots,
                   worker::Slots::Create(config, bench.gpu.get(),
                                         bench.gpu->nvjpeg() != nullptr));
  return bench;
}

void Difference::Add(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  const size_t count = std::min(a.size(), b.size());
  for (size_t i = 0; i < count; ++i) {
    const int off = std::abs(a[i] - b[i]);
    most = std::max(most, off);
    sum += off;
  }
  bytes += static_cast<double>(count);
  ++images;
}

double Difference::mean() const { return sum / std::max(bytes, 1.0); }

bool OpenEngines(const Setup& setup, std::string_view what, Report* report,
                 Bench* bench) {
  auto opened = OpenBench(setup);
  if (!opened.ok()) {
    report->Check(what, false, Message(opened.status()));
    return false;
  }
  *bench = *std::move(opened);
  if (bench->has_engines()) return true;
  report->Missing(what, bench->library == nullptr
                            ? "there is no nvJPEG"
                            : "there are no JPEG engines");
  return false;
}

absl::StatusOr<worker::JpegToDecode> WholeJpeg(const worker::Slot& slot,
                                               const std::string& file,
                                               ImageSize size, bool luma,
                                               worker::DeviceAddress address) {
  const worker::DecodeShape whole[] = {
      worker::WholeImage(worker::StoredSize(size))};
  ASSIGN_OR_RETURN(const worker::DecodeChoice choice,
                   slot.decoder->Choose(worker::AsSpan(file), luma, whole));
  return worker::JpegToDecode{
      .encoded = worker::AsSpan(file),
      .luma = luma,
      .choice = choice,
      .address = address,
      .pitch = static_cast<size_t>(size.width * (luma ? 1 : 3))};
}

GuardedImage::GuardedImage(const Bench* bench, const worker::DecodeShape& shape,
                           int64_t channels, worker::DeviceAddress at)
    : bench_(*bench),
      at_(at),
      row_bytes_(
          static_cast<size_t>(worker::DecodedSize(shape).width * channels)),
      image_rows_(static_cast<size_t>(worker::DecodedSize(shape).height)),
      pitch_(static_cast<size_t>(worker::RoomOf(shape).width * channels)),
      rows_(static_cast<size_t>(worker::RoomOf(shape).height)) {}

absl::Status GuardedImage::Fill(worker::DeviceQueue* queue, uint8_t fill) {
  fill_ = fill;
  RETURN_IF_ERROR(queue->Fill(at_, fill, bytes()));
  return queue->Wait();  // engines may not wait for it
}

absl::StatusOr<std::vector<uint8_t>> GuardedImage::Fetch(
    worker::DeviceQueue* queue, bool engines) const {
  std::vector<uint8_t> all(bytes()), image;
  RETURN_IF_ERROR(queue->ToHost(all.data(), at_, all.size()));
  RETURN_IF_ERROR(queue->Wait());
  bool in_room = false, outside = false;
  const auto changed = [&](size_t begin, size_t end) {
    return std::any_of(all.begin() + static_cast<ptrdiff_t>(begin),
                       all.begin() + static_cast<ptrdiff_t>(end),
                       [this](uint8_t byte) { return byte != fill_; });
  };
  for (size_t y = 0; y < rows_; ++y) {
    const size_t begin = kGuardBytes + y * pitch_, end = begin + pitch_;
    const size_t used = begin + (y < image_rows_ ? row_bytes_ : 0);
    image.insert(image.end(), all.begin() + static_cast<ptrdiff_t>(begin),
                 all.begin() + static_cast<ptrdiff_t>(used));
    in_room = in_room || changed(used, end);
  }
  outside = changed(0, kGuardBytes) || changed(bytes() - kGuardBytes, bytes());
  Beside& beside = (*bench_.beside)[engines ? 0 : 1];
  ++beside.images;
  beside.in_room += in_room;
  beside.outside += outside;
  return image;
}

void SayBeside(const Bench& bench, std::string_view what, Report* report) {
  for (size_t who = 0; who < bench.beside->size(); ++who) {
    const Beside& beside = (*bench.beside)[who];
    if (beside.images == 0) continue;
    const std::string_view name = who == 0 ? "the engines" : "CUDA";
    report->Figure("images beside which whole MCUs are written",
                   static_cast<double>(beside.in_room),
                   fmt::format("of {}", beside.images),
                   {{"by", std::string(name)}, {"step", std::string(what)}});
    report->Check(
        fmt::format("{}: {} write nothing outside of an image's room", what,
                    name),
        beside.outside == 0,
        fmt::format("{} of {} images", beside.outside, beside.images));
  }
}

absl::StatusOr<FusedRows> BindRows(const Setup& setup, const Bench& bench,
                                   const Graph& graph,
                                   std::span<const ImageSize> sizes) {
  constexpr uint64_t kAlignment = 512;
  const worker::Slot& slot = bench.slot();
  // A slot has room for nvJPEG's images if nvJPEG is available.
  const bool images = bench.gpu->nvjpeg() != nullptr;
  const worker::DeviceAddress base =
      images ? slot.device_images : slot.device_pixels;
  const uint64_t room =
      images ? setup.config.decode_bytes : setup.config.slot_bytes;
  ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph));
  FusedRows rows;
  ASSIGN_OR_RETURN(rows.program, worker::FusedProgram::Compile(checked));
  rows.field_bytes = checked.schema.fields[0].row_bytes;
  const size_t most = std::min<size_t>(
      {sizes.size(), worker::kMaxGpuGroupRows,
       static_cast<size_t>(setup.config.group_bytes) / rows.field_bytes});
  const uint64_t block_bytes = rows.program->BlockBytes(most);
  std::vector<std::byte> memory(block_bytes + 64);
  auto* const aligned = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  worker::FusedGroup group;
  RETURN_IF_ERROR(group.Begin(*rows.program, most, {aligned, block_bytes}));
  worker::FusedScratch scratch;
  const worker::StoredSample stored = worker::StoredImage({}, 7);
  uint64_t at = 0;
  for (size_t row = 0; row < most; ++row) {
    const absl::StatusOr<worker::StoredRect> part = group.PrepareRow(
        row, {.seed = 7, .epoch = 1, .sample = row, .fields = stored.fields},
        worker::StoredSize(sizes[row]), 1, &scratch);
    if (absl::IsResourceExhausted(part.status())) {  // for the CPU
      rows.images.emplace_back();
      continue;
    }
    RETURN_IF_ERROR(part.status());
    const auto need = static_cast<uint64_t>(part->width * part->height * 3);
    if (at + need > room) break;
    rows.images.push_back(base + at);
    RETURN_IF_ERROR(group.BindSource(row, {.address = rows.images.back(),
                                           .held = *part,
                                           .pitch = part->width * 3}));
    group.BindOutput(row, 0, slot.device_outputs + row * rows.field_bytes);
    at += (need + kAlignment - 1) / kAlignment * kAlignment;
    rows.bytes +=
        static_cast<double>(need) + static_cast<double>(rows.field_bytes);
  }
  rows.rows = rows.images.size();
  if (group.used_bytes() > worker::kSlotBlockBytes)
    return ResourceExhausted("descriptors of {} bytes", group.used_bytes());
  RETURN_IF_ERROR(
      slot.queue->ToDevice(slot.device_block, aligned, group.used_bytes()));
  RETURN_IF_ERROR(slot.queue->Wait());
  return rows;
}

absl::Status Launch(const Bench& bench, const FusedRows& rows) {
  const worker::Slot& slot = bench.slot();
  return rows.program->Launch(rows.rows, slot.device_block, slot.queue.get());
}

}  // namespace leat::gpu_check
