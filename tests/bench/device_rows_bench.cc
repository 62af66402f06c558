// SPDX-License-Identifier: Apache-2.0
//
// device_rows_bench [ROUNDS] FOLDER: microseconds of a decode thread per row of
// class exact on a GPU worker, without the row's draws and tables: it opens the
// file and puts what the JPEG kernels need into the slot's memory. One thread,
// processor time, the windows of random resized crops of the JPEG files under
// FOLDER, in turns by each form. Prints medians of the rounds and the bytes
// that are copied to the device. Exits 1 if a file is refused.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/photo_rounds.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {
namespace {

struct Photo {
  std::string file;
  Rect window;
  std::unique_ptr<const JpegForm> seek_index, coefficients;

  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(file));
  }
};

// The default draw of random_resized_crop, without its bounds on the ratio.
Rect RandomCrop(std::mt19937& random, int64_t width, int64_t height) {
  std::uniform_real_distribution<double> unit(0, 1);
  const double side = std::sqrt(0.08 + 0.92 * unit(random));
  const auto part = [&](int64_t of) {
    const auto length =
        std::max<int64_t>(1, std::llround(side * static_cast<double>(of)));
    const auto at = static_cast<int64_t>(unit(random) *
                                         static_cast<double>(of - length + 1));
    return std::pair(at, length);
  };
  const auto [x, w] = part(width);
  const auto [y, h] = part(height);
  return {x, y, w, h};
}

// Returns the photos of kinds that have forms.
std::vector<Photo> PreparePhotos(JpegDecoder& decoder, const char* folder) {
  std::vector<Photo> photos;
  std::mt19937 random(7);
  for (std::string& file : ReadPhotos(folder)) {
    Photo photo{.file = std::move(file)};
    if (!decoder.Open(photo.bytes()).ok()) continue;
    const StoredSize size = decoder.header().size;
    if (!decoder.BlocksOf({0, 0, 1, 1}, false)) continue;
    decoder.MakeForms({.seek_index = true, .coefficients = true},
                      size_t{1} << 30);
    if (!decoder.Start({0, 0, size.width, size.height}, false).ok()) continue;
    PixelRows rows;
    for (int64_t y = 0; y < size.height; y += rows.count)
      if (!decoder.ReadRows(&rows).ok()) break;
    auto index = decoder.TakeForm(JpegFormKind::kSeekIndex);
    auto coefficients = decoder.TakeForm(JpegFormKind::kCoefficients);
    if (!index.ok() || !coefficients.ok()) continue;
    photo.seek_index = *std::move(index);
    photo.coefficients = *std::move(coefficients);
    photo.window = RandomCrop(random, size.width, size.height);
    photos.push_back(std::move(photo));
  }
  return photos;
}

// A slot's memory: rows are written one after the other.
class Memory {
 public:
  std::byte* Take(size_t bytes) {
    if (at_ + bytes > bytes_.size()) at_ = 0;
    std::byte* const to = bytes_.data() + at_;
    at_ += (bytes + 255) / 256 * 256;
    return to;
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64 << 20);
  size_t at_ = 0;
};

// Puts a row into the memory. Returns its bytes; 0: libjpeg has to decode it.
size_t PutBlocks(JpegDecoder& decoder, const Photo& photo, const JpegForm* form,
                 Memory& memory) {
  static JpegBlocks& blocks = *new JpegBlocks;
  if (!decoder.Open(photo.bytes(), form).ok()) return 0;
  const auto of = decoder.BlocksOf(photo.window, false);
  if (!of || !decoder.ReadBlocks(*of, 32 << 20, &blocks).value_or(false))
    return 0;
  const size_t bytes = JpegPayloadBytes(blocks);
  WriteJpegPayload(blocks, memory.Take(bytes));
  return bytes;
}
size_t PutCodes(JpegDecoder& decoder, const Photo& photo, const JpegForm* index,
                Memory& memory) {
  static DeviceCodes& codes = *new DeviceCodes;
  if (!decoder.Open(photo.bytes(), index).ok()) return 0;
  const auto of = decoder.BlocksOf(photo.window, false);
  if (!of || !decoder.FindCodes(*of, &codes).value_or(false)) return 0;
  const size_t bytes = CodesPayloadBytes(codes);
  std::byte* const to = memory.Take(bytes);
  WriteCodesPayload(
      codes, {.payload = DeviceAddress::Of(to), .image = DeviceAddress::Of(to)},
      to);
  return bytes;
}

constexpr const char* kNames[] = {
    "seek index, codes by kernels", "the file alone, by kernels",
    "kept coefficients", "seek index, codes by the host",
    "the file alone, by the host"};
constexpr size_t kWays = std::size(kNames);

size_t Put(size_t way, JpegDecoder& decoder, const Photo& photo,
           Memory& memory) {
  const JpegForm* const index = photo.seek_index.get();
  if (way < 2)
    return PutCodes(decoder, photo, way == 0 ? index : nullptr, memory);
  const JpegForm* const form = way == 2   ? photo.coefficients.get()
                               : way == 3 ? index
                                          : nullptr;
  return PutBlocks(decoder, photo, form, memory);
}

int Measure(int rounds, const char* folder) {
  JpegDecoder decoder{ImageLimits{}};
  const std::vector<Photo> photos = PreparePhotos(decoder, folder);
  if (photos.empty()) {
    std::fprintf(stderr, "no JPEG with forms under %s\n", folder);
    return 1;
  }
  size_t file_bytes = 0;
  for (const Photo& photo : photos) file_bytes += photo.file.size();
  const auto count = static_cast<double>(photos.size());
  std::printf("%zu photos of %.0f bytes on average\n", photos.size(),
              static_cast<double>(file_bytes) / count);
  Memory memory;
  std::vector<double> times[kWays];
  size_t bytes[kWays] = {}, refused = 0;
  for (int round = 0; round <= rounds; ++round)  // the first one warms up
    for (size_t way = 0; way < kWays; ++way) {
      bytes[way] = 0;
      const double begin = ThreadSeconds();
      for (const Photo& photo : photos) {
        const size_t put = Put(way, decoder, photo, memory);
        bytes[way] += put;
        refused += put == 0;
      }
      if (round > 0)
        times[way].push_back((ThreadSeconds() - begin) * 1e6 / count);
    }
  for (size_t way = 0; way < kWays; ++way)
    std::printf("%-30s %7.1f us   %8.0f bytes\n", kNames[way],
                Median(times[way]), static_cast<double>(bytes[way]) / count);
  std::printf("%zu readings were refused\n", refused);
  return refused == 0 ? 0 : 1;
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? std::atoi(argv[1]) : 7;
  if (argc < 2 || argc > 3 || rounds < 1) {
    std::fprintf(stderr, "usage: device_rows_bench [ROUNDS] FOLDER\n");
    return 2;
  }
  return leat::worker::Measure(rounds, argv[argc - 1]);
}
