// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/pixels.h"

#include <cstring>

#include "core/crc32c.h"
#include "worker/image/resample/kernels.h"

namespace leat::worker {

std::unique_ptr<const Pixels> Pixels::Of(
    std::span<const std::byte> file, const Image& image,
    std::vector<std::byte> pixels, std::unique_ptr<const SeekIndex> index) {
  return std::unique_ptr<const Pixels>(
      new Pixels({static_cast<uint32_t>(file.size()), Crc32c(file)}, image,
                 std::move(pixels), std::move(index)));
}

void Pixels::CopyRow(int64_t y, int64_t x, int64_t width, bool dense,
                     uint8_t* to) const {
  const size_t step = image_.gray ? 1 : 3;
  const auto* const from =
      reinterpret_cast<const uint8_t*>(bytes().data()) +
      step * static_cast<size_t>(y * image_.size.width + x);
  const auto pixels = static_cast<size_t>(width);
  if (image_.gray || dense)
    std::memcpy(to, from, step * pixels);
  else
    BestKernels().expand(from, pixels, to);
}

}  // namespace leat::worker
