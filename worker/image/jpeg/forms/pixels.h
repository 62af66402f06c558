// SPDX-License-Identifier: Apache-2.0
//
// Pixels: the decoded image as a form of its file, row after row, R, G and B or
// gray, without padding. A window of it is a copy.
//
// The image may be smaller than the file's by a power of two. Such pixels serve
// decodes at their own scale. Windows that need another scale are decoded by the
// seek index that is kept with them, if the file has one.
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
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {

class Pixels final : public JpegForm {
 public:
  static size_t BytesOf(StoredSize size, bool gray) {
    return static_cast<size_t>(size.height) * static_cast<size_t>(size.width) *
           (gray ? 1 : 3);
  }
  // An image of this size, which is the file's at 1 / 2^halvings.
  struct Image {
    StoredSize size;
    int halvings = 0;
    bool gray = false;
    friend bool operator==(const Image&, const Image&) = default;
  };
  // `pixels`: BytesOf(image.size, image.gray) bytes. `index` may be nullptr.
  static std::unique_ptr<const Pixels> Of(
      std::span<const std::byte> file, const Image& image,
      std::vector<std::byte> pixels,
      std::unique_ptr<const SeekIndex> index = nullptr);

  JpegFormKind kind() const override { return JpegFormKind::kPixels; }
  size_t size_bytes() const override {
    return bytes().size() + (index_ == nullptr ? 0 : index_->size_bytes());
  }
  // True if it serves a decode of a file of `file_bytes` bytes to this image,
  // as far as a check in constant time can tell.
  bool Serves(size_t file_bytes, const Image& image) const {
    return HasFileBytes(file_bytes) && image == image_;
  }
  // Returns the index for windows at other scales; nullptr: there is none.
  const SeekIndex* index() const { return index_.get(); }

  // Copies the pixels x … x + width - 1 of row y: gray ones, or colours of
  // three bytes (`dense`) or of four, where the fourth is undefined.
  // REQUIRES: they are inside.
  void CopyRow(int64_t y, int64_t x, int64_t width, bool dense,
               uint8_t* to) const;

 private:
  Pixels(FileSum file, const Image& image, std::vector<std::byte> pixels,
         std::unique_ptr<const SeekIndex> index)
      : JpegForm(file, std::move(pixels)),
        image_(image),
        index_(std::move(index)) {}

  const Image image_;
  const std::unique_ptr<const SeekIndex> index_;
};

}  // namespace leat::worker
