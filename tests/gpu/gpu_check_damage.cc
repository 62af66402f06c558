// SPDX-License-Identifier: Apache-2.0
//
// The effect of truncated files, or files with flipped bits, on nvJPEG: the
// answers of its parsers and engines, the time of a worker's batch with one of
// them, and that the other images, the next batch and the device's memory are
// unaffected.
#include <algorithm>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/raw_nvjpeg.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"

namespace leat::gpu_check {
namespace {

using cuda::NvjpegResult;
using worker::JpegToDecode;

constexpr int kWidth = 512, kHeight = 384;
constexpr size_t kBatch = 64;
// Pitch and room of an image in the device's memory; one of them claims 896
// rows.
constexpr size_t kPitch = size_t{kWidth} * 3, kRoom = kPitch * 1024;
constexpr size_t kSlackBytes = 64 << 20;

struct Damaged {
  std::string name, file;
};

// Returns the first byte after the segment that starts the scan.
size_t ScanOf(const std::string& file) {
  const size_t at = file.find("\xff\xda");
  const auto length =
      static_cast<size_t>(static_cast<uint8_t>(file[at + 2]) * 256 +
                          static_cast<uint8_t>(file[at + 3]));
  return at + 2 + length;
}

std::vector<Damaged> DamagedFiles(const std::string& sound) {
  std::vector<Damaged> files;
  const size_t scan = ScanOf(sound), length = sound.size() - scan;
  for (const int percent : {10, 50, 90, 99})
    files.push_back({fmt::format("cut after {} % of the scan", percent),
                     sound.substr(0, scan + length * percent / 100)});
  files.push_back(
      {"cut before its end marker", sound.substr(0, sound.size() - 2)});
  files.push_back({"cut within the headers", sound.substr(0, scan / 2)});
  for (const int at : {5, 30, 60, 95}) {
    Damaged flipped{fmt::format("a flipped bit at {} % of the scan", at),
                    sound};
    flipped.file[scan + length * at / 100] ^= 0x10;
    files.push_back(std::move(flipped));
  }
  const auto with = [&](std::string name, std::string_view marker,
                        size_t offset, char value) {
    Damaged file{std::move(name), sound};
    file.file[file.file.find(marker) + offset] = value;
    files.push_back(std::move(file));
  };
  with("a Huffman table with too many codes", "\xff\xc4", 5, '\x7f');
  with("more than twice the height", "\xff\xc0", 5, '\x03');
  with("a third of the height", "\xff\xc0", 5, '\0');
  Damaged ends{"an end marker in the middle", sound};
  ends.file.replace(scan + length / 2, 2, "\xff\xd9");
  files.push_back(std::move(ends));
  return files;
}

// Reports the codes of nvJPEG alone, for a batch whose second image is the
// damaged one.
absl::Status RawCodes(const Bench& bench, RawNvjpeg* raw,
                      const std::string& sound, const Damaged& damaged,
                      Report* report) {
  const cuda::Nvjpeg& n = *bench.library;
  const auto say = [&](const char* call, NvjpegResult code) {
    report->Figure("nvJPEG's answer", static_cast<int>(code), "code",
                   {{"damage", damaged.name}, {"call", call}}, NameOf(code));
  };
  cuda::NvjpegStream parsed = nullptr;
  RETURN_IF_ERROR(cuda::Check(n.JpegStreamCreate(raw->handle(), &parsed),
                              "nvjpegJpegStreamCreate"));
  const auto* const data =
      reinterpret_cast<const unsigned char*>(damaged.file.data());
  say("JpegStreamParseHeader",
      n.JpegStreamParseHeader(raw->handle(), data, damaged.file.size(),
                              parsed));
  say("JpegStreamParse", n.JpegStreamParse(raw->handle(), data,
                                           damaged.file.size(), 0, 0, parsed));
  n.JpegStreamDestroy(parsed);
  ASSIGN_OR_RETURN(const auto batches, RawBatches::Open(raw));
  std::vector<RawImage> images;
  for (size_t i = 0; i < 4; ++i)
    images.push_back({worker::AsSpan(i == 1 ? damaged.file : sound),
                      bench.slot().device_images + i * kRoom, kPitch});
  say("DecodeBatched", batches->Decode(images));
  const absl::Status waited = batches->Wait();
  report->Figure("nvJPEG's answer", !waited.ok(), "code",
                 {{"damage", damaged.name}, {"call", "waiting"}},
                 waited.ok() ? "SUCCESS" : Message(waited));
  return waited;
}

std::string_view NameOfOutcome(JpegToDecode::Outcome outcome) {
  switch (outcome) {
    case JpegToDecode::Outcome::kDecoded:
      return "decoded";
    case JpegToDecode::Outcome::kRefused:
      return "refused";
    case JpegToDecode::Outcome::kFailed:
      return "failed";
  }
  return "";
}

struct Batch {
  std::vector<JpegToDecode> images;
  double seconds = 0;
};

// Decodes as a worker does: `odd`, if any, among sound images.
absl::StatusOr<Batch> DecodeBatch(const Bench& bench, const std::string& sound,
                                  const std::string* odd) {
  const worker::Slot& slot = bench.slot();
  const ImageSize size{.height = kHeight, .width = kWidth};
  Batch batch;
  for (size_t i = 0; i < kBatch; ++i) {
    const bool is_odd = odd != nullptr && i == kBatch / 2;
    ASSIGN_OR_RETURN(const JpegToDecode image,
                     WholeJpeg(slot, is_odd ? *odd : sound, size, false,
                               slot.device_images + i * kRoom));
    batch.images.push_back(image);
  }
  const MonotonicTime start = Clock::Real().Now();
  RETURN_IF_ERROR(slot.decoder->Decode(batch.images));
  RETURN_IF_ERROR(slot.queue->Wait());
  batch.seconds = SecondsSince(start);
  return batch;
}

// Returns true if all images except the odd one are decoded, and the last of
// them is right.
absl::StatusOr<bool> OthersAreRight(const Bench& bench, const Batch& batch,
                                    std::vector<std::byte>* expected) {
  for (size_t i = 0; i < kBatch; ++i)
    if (i != kBatch / 2 &&
        batch.images[i].outcome != JpegToDecode::Outcome::kDecoded)
      return false;
  std::vector<std::byte> pixels(kPitch * kHeight);
  const worker::Slot& slot = bench.slot();
  RETURN_IF_ERROR(slot.queue->ToHost(pixels.data(), batch.images.back().address,
                                     pixels.size()));
  RETURN_IF_ERROR(slot.queue->Wait());
  if (expected->empty()) *expected = pixels;
  return pixels == *expected;
}

// Checks that a damaged file does not affect which backend decodes the next
// one.
absl::Status CheckNext(const Bench& bench, const std::string& sound,
                       const Damaged& damaged, Report* report) {
  if (!bench.has_engines()) return absl::OkStatus();
  const worker::Slot& slot = bench.slot();
  const ImageSize size{.height = kHeight, .width = kWidth};
  bool engines = true;
  for (const std::string* file : {&damaged.file, &sound, &sound}) {
    ASSIGN_OR_RETURN(const JpegToDecode image,
                     WholeJpeg(slot, *file, size, false, slot.device_images));
    if (file == &sound) engines = engines && image.choice.engines;
  }
  report->Check(fmt::format("{}: the engines take the next file", damaged.name),
                engines, engines ? "" : "a sound file behind it is refused");
  return absl::OkStatus();
}

absl::Status Damage(const Setup& setup, const Bench& bench, Report* report) {
  const std::string sound = testing::MakeJpeg(
      {.width = kWidth, .height = kHeight, .h = 2, .v = 2, .seed = 7});
  std::vector<std::byte> expected;
  ASSIGN_OR_RETURN(Batch good, DecodeBatch(bench, sound, nullptr));
  ASSIGN_OR_RETURN(good, DecodeBatch(bench, sound, nullptr));  // warm
  RETURN_IF_ERROR(OthersAreRight(bench, good, &expected).status());
  report->Figure("a batch", good.seconds * 1e3, "ms", {{"damage", "none"}});
  std::unique_ptr<RawNvjpeg> raw;
  if (bench.has_engines()) {
    ASSIGN_OR_RETURN(raw, RawNvjpeg::Open(bench.library.get(), bench.gpu.get(),
                                          cuda::NvjpegBackend::kHardware));
  }
  const size_t before = bench.FreeBytes();
  for (const Damaged& damaged : DamagedFiles(sound)) {
    if (raw != nullptr)
      RETURN_IF_ERROR(RawCodes(bench, raw.get(), sound, damaged, report));
    ASSIGN_OR_RETURN(const Batch bad, DecodeBatch(bench, sound, &damaged.file));
    const JpegToDecode& odd = bad.images[kBatch / 2];
    report->Figure("a batch", bad.seconds * 1e3, "ms",
                   {{"damage", damaged.name}},
                   fmt::format("{} by {}", NameOfOutcome(odd.outcome),
                               odd.choice.engines ? "engines" : "CUDA"));
    ASSIGN_OR_RETURN(const bool beside, OthersAreRight(bench, bad, &expected));
    RETURN_IF_ERROR(CheckNext(bench, sound, damaged, report));
    ASSIGN_OR_RETURN(const Batch next, DecodeBatch(bench, sound, nullptr));
    ASSIGN_OR_RETURN(const bool after, OthersAreRight(bench, next, &expected));
    report->Check(
        fmt::format("{}: images beside it and after it are right",
                    damaged.name),
        beside && after,
        beside ? after ? "" : "the next batch is not" : "those beside it not");
  }
  const auto grown =
      static_cast<double>(before) - static_cast<double>(bench.FreeBytes());
  report->Figure("device memory taken by batches with damaged files",
                 grown / 0x1p20, "MiB");
  report->Check("damaged files leave the device's memory as it was",
                grown <= kSlackBytes);
  return absl::OkStatus();
}

}  // namespace

void CheckDamage(const Setup& setup, Report* report) {
  const auto bench = OpenBench(setup);
  if (!bench.ok())
    return report->Check("damaged files", false, Message(bench.status()));
  if (bench->library == nullptr)
    return report->Missing("damaged files", "there is no nvJPEG");
  const absl::Status status = Damage(setup, *bench, report);
  if (!status.ok()) report->Check("damaged files", false, Message(status));
}

}  // namespace leat::gpu_check
