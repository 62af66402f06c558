// SPDX-License-Identifier: Apache-2.0
//
// Pixels: the decoded image as a form of its file, row after row, R, G and B or
// gray, without padding. A window of it is a copy.
//
// It is made by decoding the whole file, so a file of any kind that is sound to
// its end may have it, except inks (CMYK, YCCK). A gray image is libjpeg's own
// gray, not one made from colours, so each form serves decodes of its own
// colours only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "worker/image/base/rect.h"
#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {

class Pixels final : public JpegForm {
 public:
  static size_t BytesOf(StoredSize size, bool gray) {
    return static_cast<size_t>(size.height) * static_cast<size_t>(size.width) *
           (gray ? 1 : 3);
  }
  // `pixels`: BytesOf(size, gray) bytes.
  static std::unique_ptr<const Pixels> Of(std::span<const std::byte> file,
                                          StoredSize size, bool gray,
                                          std::vector<std::byte> pixels);

  JpegFormKind kind() const override { return JpegFormKind::kPixels; }
  // True if it serves a decode of a file of `file_bytes` bytes and this size,
  // as far as a check in constant time can tell.
  bool Serves(size_t file_bytes, StoredSize size, bool gray) const {
    return HasFileBytes(file_bytes) && size == size_ && gray == gray_;
  }

  // Copies the pixels x … x + width - 1 of row y: gray ones, or colours of
  // three bytes (`dense`) or of four, where the fourth is undefined.
  // REQUIRES: they are inside.
  void CopyRow(int64_t y, int64_t x, int64_t width, bool dense,
               uint8_t* to) const;

 private:
  Pixels(FileSum file, StoredSize size, bool gray,
         std::vector<std::byte> pixels)
      : JpegForm(file, std::move(pixels)), size_(size), gray_(gray) {}

  const StoredSize size_;
  const bool gray_;
};

}  // namespace leat::worker
