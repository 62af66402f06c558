// SPDX-License-Identifier: Apache-2.0
//
// EncodedImage: an image file of any format that is to be decoded, and a chain
// of geometric operators on it.
//
// A JPEG is decoded only as far as the chain needs, except for YCbCr; other
// formats are decoded whole. The resulting bytes, and the lost parts of a
// damaged JPEG, are the same as if everything was decoded first.
//
// A reduced JPEG is decoded at the smallest of the scales 1, 1/2, 1/4 and 1/8
// at which the view's window is at least as large as the size that it is
// resized to (docs/decisions/0059). The scale depends on sizes alone.
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
#include "worker/image/views/kept_pixels.h"

namespace leat::worker {

// Borrows the file's bytes and, for a JPEG, scratch.decoder: call Run before
// another image is opened with the same scratch.
class EncodedImage {
 public:
  // Reads the header, and ignores the orientation if not `orient`. `forms` may
  // be nullptr. It is asked for decoded forms here, and receives new ones after
  // Run. `decode` says whether Reduce may be called, and is kFull or kReduced.
  // Errors are those of RowProgram::Run.
  static absl::StatusOr<EncodedImage> Open(
      std::span<const std::byte> file, bool orient, ImageScratch& scratch,
      FormKeeper* forms = nullptr, DecodeClass decode = DecodeClass::kFull);

  // For a JPEG: chooses the scale of the image, and makes `view` a view of the
  // scaled image. Other formats stay whole, and are counted. REQUIRES: `view`
  // is of size(); neither Reduce nor Run was called before.
  void Reduce(ImageScratch& scratch, View* view);

  // Returns the size of the image as turned, and as it is decoded.
  ImageSize size() const { return orientation_.Turned(stored_.size); }

  // Writes view.size() pixels of `colours` to `out`, dense. `partial` as in
  // JpegDecoder::Start. In a damaged JPEG lost rows are black, and *damage says
  // what is lost; otherwise *damage is reset. Damage in other formats is an
  // error: kDataLoss. Called once.
  absl::Status Run(const View& view, Colours colours, bool partial,
                   ImageScratch& scratch, std::byte* out,
                   std::optional<DamagedView>* damage);

 private:
  absl::Status Decode(const View& view, Colours colours, bool partial,
                      ImageScratch& scratch, std::byte* out);
  // Returns all of it, turned and in `colours`: kept pixels, or in `scratch`.
  absl::StatusOr<const std::byte*> DecodeWhole(Colours colours, bool partial,
                                               ImageScratch& scratch);

  std::span<const std::byte> file_;
  KeptDecode kept_;               // of a JPEG
  KeptPixels pixels_;             // of any other format
  const Codec* codec_ = nullptr;  // nullptr: a JPEG
  ImageHeader stored_;
  Orientation orientation_;
};

}  // namespace leat::worker
