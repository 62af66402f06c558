// SPDX-License-Identifier: Apache-2.0
//
// EncodedImage: an image file of any format that is decoded, and a chain of
// geometric operators on it.
//
// Of a JPEG no more is decoded than the chain needs, but for YCbCr; other
// formats are decoded whole. The bytes are those of decoding everything first,
// and so is what a damaged JPEG has lost.
//
// A JPEG that is reduced is decoded at the smallest of the scales 1, 1/2, 1/4
// and 1/8 at which the view's window is at least as large as what it is resized
// to (docs/decisions/0059). The scale depends on sizes alone.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/jpeg/decode/kept_decode.h"
#include "worker/image/resample/geometry.h"
#include "worker/image/views/colours.h"
#include "worker/image/views/damaged_view.h"
#include "worker/image/views/image_scratch.h"

namespace leat::worker {

// Borrows the file's bytes and, for a JPEG, scratch.decoder: run it before
// another image is opened with the same scratch.
class EncodedImage {
 public:
  // Reads the header; no orientation if not `orient`. `forms` may be null; of a
  // JPEG, else, it is asked for forms here, and told of them behind Run, as of
  // `scale`: whether Reduce may be called. Errors as RowProgram::Run's.
  static absl::StatusOr<EncodedImage> Open(
      std::span<const std::byte> file, bool orient, ImageScratch& scratch,
      FormKeeper* forms = nullptr, DecodeScale scale = DecodeScale::kFull);

  // Of a JPEG: chooses the scale of the image, of which `view` becomes a view.
  // Others stay whole, and are counted. REQUIRES: `view` is of size(); not
  // called before, nor Run.
  void Reduce(ImageScratch& scratch, View* view);

  // Turned, and as it is decoded.
  ImageSize size() const { return orientation_.Turned(stored_.size); }

  // Writes view.size() pixels of `colours` to `out`, dense. `partial` as
  // JpegDecoder::Start. Of a damaged JPEG, pixels made of lost rows are as if
  // these were black, and *damage says what is lost; it is reset otherwise.
  // Damage of other formats is an error: kDataLoss. Once.
  absl::Status Run(const View& view, Colours colours, bool partial,
                   ImageScratch& scratch, std::byte* out,
                   std::optional<DamagedView>* damage) const;

 private:
  absl::Status Decode(const View& view, Colours colours, bool partial,
                      ImageScratch& scratch, std::byte* out) const;
  // All of it, turned and in `colours`, into scratch.whole.
  absl::Status DecodeWhole(Colours colours, bool partial,
                           ImageScratch& scratch) const;

  std::span<const std::byte> file_;
  KeptDecode kept_;               // of a JPEG
  const Codec* codec_ = nullptr;  // null: a JPEG
  ImageHeader stored_;
  Orientation orientation_;
};

}  // namespace leat::worker
