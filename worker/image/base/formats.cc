// SPDX-License-Identifier: Apache-2.0
#include "worker/image/base/formats.h"

#include <algorithm>
#include <iterator>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr std::string_view kFormatNames[] = {"jpeg", "png",  "webp",
                                             "bmp",  "tiff", "jpeg2000"};
constexpr uint32_t kJpegAlone = 1;

}  // namespace

std::string_view Name(ImageFormat format) {
  return kFormatNames[static_cast<size_t>(format)];
}

absl::StatusOr<ImageFormats> ImageFormats::Parse(std::string_view text) {
  ImageFormats formats;
  formats.bits_ = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view name = text.substr(at, comma - at);
    at = comma + 1;
    size_t i = 0;
    while (i < std::size(kFormatNames) && kFormatNames[i] != name) ++i;
    if (i == std::size(kFormatNames))
      return InvalidArgument(
          "--formats \"{}\": \"{}\" is no image format, want some of jpeg, "
          "png, webp, bmp, tiff, jpeg2000, with commas between them",
          text, name);
    formats.bits_ |= 1u << i;
  }
  if ((formats.bits_ & kJpegAlone) == 0)
    return InvalidArgument(
        "--formats \"{}\": want jpeg among them, which cannot be switched off",
        text);
  return formats;
}

std::string ImageFormats::ToString() const {
  std::string text;
  for (size_t i = 0; i < std::size(kFormatNames); ++i) {
    if (!has(static_cast<ImageFormat>(i))) continue;
    if (!text.empty()) text += ',';
    text += kFormatNames[i];
  }
  return text;
}

}  // namespace leat::worker
