// SPDX-License-Identifier: Apache-2.0
//
// Pictures of slopes, edges and noise, each decoded by libjpeg and by the
// kernels' bodies, in colours and gray: the known images that are JPEGs of the
// right kinds, and two of kinds that are not among these.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/kernels/jpeg.h"
#include "worker/image/base/known_images.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {
namespace {

constexpr const char* kMoreFiles[] = {
    // JPEG 4:2:2.
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC"
    "4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09P"
    "T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAArAC"
    "UDASEAAhEBAxEB/8QAGgAAAgMBAQAAAAAAAAAAAAAAAgQAAwUBBv/EACwQAAIBAwQABQMEAwAA"
    "AAAAAAECEQADIQQSMUEFEyJRcUJhkRQyU6GSwdH/xAAZAQEBAAMBAAAAAAAAAAAAAAAFBAIDBg"
    "H/xAAwEQABAgQCBwgCAwAAAAAAAAABAgMABBEhEjEFE0FRYbHRIjJxgZHB4fAVIxQkof/aAAwD"
    "AQACEQMRAD8Awt1r+RP8hSL6d2uuwRiCxIIHNV6JCpVay+MFRttzjpNJvJmUpDJxUOy/KG7CBb"
    "SqxAI6NaPg9kPrnbc4VbRkqcRI5HY+3eMHioF1Q+46odk1ucjU2vyjbMvBUkG03UALbfSNpLt2"
    "wzlNt2259D3bUSAAMYOPgDEc9SgplnWOlSQacLjLxiRgNhsBRIO6vyI8mNDeH0f2KcQoqKpMFR"
    "BEV2GlH0aRCUypxEXOznSD9GhUiSZjs1y28qwDWS7llEg91o+Cr5etRWYqrYYCTIPUDr3+0mjJ"
    "x1Lst/HTdYAqPDO+X+xUCUlbp7prTzyjS0927pwW26gMfQ/lhGLMCSWJIYyd3HUfiUSgtoGFZF"
    "fP2NI0Osh5ZWKX316jlGOLqH6Wrn6YsSwiDmm2mlaJJU/fFa1+dIkXMp0iAGrUvf4rFqptG0jI"
    "o7aqLqF8L3PHBOfx+Y4qNSS0szJ7qqkb73H2sWB7GjUjMe0MC7qLTuVsJf3mWbO2YnAAEYIwfn"
    "E1KiXLCYVrUqoD94xtSlsAVVT094qGjj6v6owI9McYpZyZ/L9mmDDff0gBtP4+9cVfLrBC1Oat"
    "tLaR180fuYKpAkhpHGDzx8E1C46Xv6othtXw6+MWIqP2A3PvDFnTXX3kXrrFW24vOpgYByczzP"
    "uTUqJUymXOrwg04DpGaphANCB6DpFI3HoUYsjn3pabaToqimL4rX+KQCxMmcs5am76YNbM1Vq2"
    "u6eyVshCbnpIdgAR7SfeP+4qNaEtgTAzVc7r3hBlzEoNnIe0LLpbt93Gk8Ms3BbOxvMURzMjPc"
    "k4AHAExUrEBp0Y3HCCd2UKh1qnbdIPCNMIo6roA9qzlHV6QJTMnEBls5UjlHECXpqrV+7YLgwK"
    "R8ag6FHIBYXlAPzI/wB1pZWXJnUK7oJFPDLjCUmP2JO+E72pvaCbekuFF3RB9WNqnue2P5qV64"
    "kJVQQtqkG5Ef/Z",
    // JPEG 4:4:0.
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC"
    "4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09P"
    "T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAArAC"
    "UDARIAAhEBAxEB/8QAGAABAQEBAQAAAAAAAAAAAAAABAMFAAH/xAAsEAACAQMEAAUDBAMAAAAA"
    "AAABAhEAAyEEEjFBBRMiUXFCYZEUMlOhksHR/8QAGgEBAAMBAQEAAAAAAAAAAAAABAECAwUABv"
    "/EAC8RAAECAwYEBQQDAAAAAAAAAAECAwAEERITITFBUQUigZFhcaHR8BQVI8EyQrH/2gAMAwEA"
    "AhEDEQA/AMLda/kT/IVMaG8Po/sUxXDJAZTA7p947SeNzpzZPYwV9O7XXYIxBYkEDmtZCioqkw"
    "VEERVvuMy0LptolKcAaHEDAHrFbqXcN4tyijiRhgTmOkEsIFtKrEAjo0hrJdyyiQe6G421MKvX"
    "l2VHMbaa94Y3OuMC7aFpI1hPg9kPrnbc4VbRkqcRI5HY+3eMHikeCr5etRWYqrYYCTIPUDr3+0"
    "mhzDqmG7DHMM6jHphGM459Qi24bJGnhGkl27YZym27bc+h7tqJAAGMHHwBiOeu0927pwW26gMf"
    "Q/lhGLMCSWJIYyd3HUfjnOfnpeClN8IwSQ0KN0V88N4xxdQ/S1KGjj6v6rtKHBtFn19o46ZziW"
    "oHp7wT9MWJYRBzTgI9McYqb6fAoyOT+uWWmu0eDsqTVw82ueevrBlTaNpGRSxanNFcVLqNZk0c"
    "1/WWGVIUiZcSKM/x0g9tVF1C+F7njgnP4/McU20tpHXzR+5gqkCSGkcYPPHwTWJWsJIlcU/vr0"
    "jQvWh+TPw2iQu6i07lbCX95lmztmJwABGCMH5xNNs6a6+8i9dYq23F51MDAOTmeZ9yaM4sGn1I"
    "pt8HSLX7aABERuPQpYRR1TDP8MOTR7D3j5VInRmv52g4sjn3pIA9qktTqhaaXRJxA2Ggy2i4mW"
    "gaKTU6+cRWzNI4MCireabJQ+m0sZn/ADbSEJdWcUGggWra7p7JWyEJuekh2ABHtJ94/wC4rzxq"
    "DoUcgFheUA/Mj/dTLhT6qsYAb7w6UJcXRWJArB10t2+7jSeGWbgtnY3mKI5mRnuScADgCYqd7U"
    "3tBNvSXCi7og+rG1T3PbH81KgtNLzm7+UOBWAKUPnXy38I/9k=",
};

void RunJpegKernel(JpegKernel kernel, const DeviceJpeg& image) {
  for (uint32_t i = 0; i < JpegThreads(kernel, image); ++i)
    kernel == JpegKernel::kSamples ? JpegSamplesThread(image, i)
                                   : JpegPixelsThread(image, i);
}

// Memory that is aligned for the kernels.
class TrialMemory {
 public:
  explicit TrialMemory(size_t bytes)
      : words_((bytes + sizeof(Word) - 1) / sizeof(Word)) {}
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words_.data()); }

 private:
  struct alignas(kJpegAlignment) Word {
    std::byte bytes[kJpegAlignment];
  };
  std::vector<Word> words_;
};

// Decodes a file that the decoder has opened. Empty: the file is of another
// kind.
std::vector<uint8_t> PixelsByKernels(JpegDecoder& decoder, const Rect& window,
                                     bool gray) {
  const std::optional<BlockWindow> of = decoder.BlocksOf(window, gray);
  JpegBlocks blocks;
  if (!of || !decoder.ReadBlocks(*of, size_t{1} << 20, &blocks).value_or(false))
    return {};
  TrialMemory payload(JpegPayloadBytes(blocks)), memory(JpegImageBytes(*of));
  WriteJpegPayload(blocks, payload.bytes());
  const DeviceJpeg image =
      DescribeJpeg(blocks, DeviceAddress::Of(payload.bytes()),
                   DeviceAddress::Of(memory.bytes()));
  for (const JpegKernel kernel : {JpegKernel::kSamples, JpegKernel::kPixels})
    RunJpegKernel(kernel, image);
  const auto* const pixels = reinterpret_cast<const uint8_t*>(memory.bytes());
  return {pixels, pixels + window.width * window.height * (gray ? 1 : 4)};
}

std::vector<uint8_t> PixelsByLibjpeg(JpegDecoder& decoder, const Rect& window,
                                     bool gray) {
  std::vector<uint8_t> pixels;
  if (!decoder.Start(window, gray).ok()) return pixels;
  const int64_t bytes = window.width * (gray ? 1 : 4);
  PixelRows rows;
  for (int64_t y = 0; y < window.height; y += rows.count) {
    if (!decoder.ReadRows(&rows).ok()) return {};
    for (size_t i = 0; i < static_cast<size_t>(rows.count); ++i)
      pixels.insert(pixels.end(), rows.first + i * rows.stride,
                    rows.first + i * rows.stride + bytes);
  }
  return decoder.damage().ok() ? pixels : std::vector<uint8_t>();
}

bool HasLibjpegsPixels(JpegDecoder& decoder, const std::string& file,
                       bool gray) {
  const auto bytes = std::as_bytes(std::span(file));
  if (!decoder.Open(bytes).ok()) return false;
  const StoredSize size = decoder.header().size;
  const Rect window{1, 1, size.width - 1, size.height - 1};
  const std::vector<uint8_t> pixels = PixelsByKernels(decoder, window, gray);
  return !pixels.empty() && decoder.Open(bytes).ok() &&
         pixels == PixelsByLibjpeg(decoder, window, gray);
}

bool TryJpegKernels() {
  std::vector<std::string> files;
  for (const char* text : kMoreFiles)
    absl::Base64Unescape(text, &files.emplace_back());
  JpegDecoder decoder{ImageLimits{}};
  for (std::string& file : KnownImages()) {
    // Files of other kinds are always decoded by libjpeg.
    const auto bytes = std::as_bytes(std::span(file));
    if (decoder.Open(bytes).ok() && decoder.BlocksOf({0, 0, 1, 1}, false))
      files.push_back(std::move(file));
  }
  return std::ranges::all_of(files, [&](const std::string& file) {
    return HasLibjpegsPixels(decoder, file, false) &&
           HasLibjpegsPixels(decoder, file, true);
  });
}

}  // namespace

bool KernelsHaveLibjpegsPixels() {
  static const bool have = TryJpegKernels();
  return have;
}

}  // namespace leat::worker
