// SPDX-License-Identifier: Apache-2.0
#include "worker/image/views/encoded_image.h"

#include "core/status.h"
#include "worker/image/base/whole_decodes.h"
#include "worker/image/views/image_ops.h"

namespace leat::worker {
namespace {

uint8_t* AsBytes(std::vector<std::byte>& bytes) {
  return reinterpret_cast<uint8_t*>(bytes.data());
}

size_t PixelCount(ImageSize size) {
  return static_cast<size_t>(size.height) * static_cast<size_t>(size.width);
}

}  // namespace

absl::StatusOr<EncodedImage> EncodedImage::Open(std::span<const std::byte> file,
                                                bool orient,
                                                ImageScratch& scratch,
                                                FormKeeper* forms,
                                                DecodeClass decode) {
  EncodedImage image;
  image.file_ = file;
  if (IsJpeg(file)) {
    image.kept_ = KeptDecode(forms, file, decode);
    RETURN_IF_ERROR(image.kept_.Open(scratch.decoder));
    const JpegDecoder::Header& header = scratch.decoder.header();
    image.stored_ = {.size = header.size,
                     .orientation = header.orientation,
                     .working_bytes = scratch.decoder.working_bytes()};
  } else {
    ASSIGN_OR_RETURN(image.codec_, FindCodec(file, scratch.limits().formats));
    ASSIGN_OR_RETURN(image.stored_,
                     image.codec_->read_header(file, scratch.limits()));
    image.pixels_ = KeptPixels(forms, file);
  }
  RETURN_IF_ERROR(scratch.Charge(image.stored_.working_bytes));
  image.orientation_ = Orientation::Of(orient ? image.stored_.orientation : 1);
  return image;
}

void EncodedImage::Reduce(ImageScratch& scratch, View* view) {
  if (codec_ != nullptr || !scratch.decoder.header().has_scales) {
    if (scratch.limits().whole_decodes != nullptr)
      scratch.limits().whole_decodes->Count(
          codec_ == nullptr ? ImageFormat::kJpeg : codec_->format);
    return;
  }
  scratch.decoder.KeepPixelsAt(view->HalvingsOfAll(size()));
  const int halvings = view->MostHalvings();
  if (halvings == 0) return;
  view->Halve(orientation_.Across(stored_.size, halvings),
              orientation_.Down(stored_.size, halvings));
  scratch.decoder.Reduce(halvings);
  stored_.size = scratch.decoder.size();
}

absl::Status EncodedImage::Run(const View& view, Colours colours, bool partial,
                               ImageScratch& scratch, std::byte* out,
                               std::optional<DamagedView>* damage) {
  RETURN_IF_ERROR(Decode(view, colours, partial, scratch, out));
  damage->reset();
  if (codec_ != nullptr) {
    pixels_.End();
    return absl::OkStatus();
  }
  kept_.End(scratch.decoder);
  if (!scratch.decoder.damage().ok())
    *damage = DamagedView{.why = scratch.decoder.damage(),
                          .sound_rows = scratch.decoder.sound_rows(),
                          .stored = stored_.size,
                          .orientation = orientation_,
                          .view = view};
  return absl::OkStatus();
}

absl::Status EncodedImage::Decode(const View& view, Colours colours,
                                  bool partial, ImageScratch& scratch,
                                  std::byte* out) {
  // A channel of the result depends on the same channel of the image. So BGR
  // can be made from the result, but YCbCr, which is rounded, cannot.
  if (codec_ == nullptr && colours != Colours::kYcbcr) {
    RETURN_IF_ERROR(RunOnJpeg(view, orientation_, colours == Colours::kGray,
                              partial, scratch, out));
    if (colours == Colours::kBgr)
      ConvertRgb(colours, PixelCount(view.size()),
                 reinterpret_cast<uint8_t*>(out));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::byte* const pixels,
                   DecodeWhole(colours, partial, scratch));
  const Tensor whole{DType::kUint8,
                     3,
                     {size().height, size().width, ChannelsOf(colours)},
                     const_cast<std::byte*>(pixels)};  // is only read
  return RunOnTensor(view, whole, scratch, out);
}

absl::StatusOr<const std::byte*> EncodedImage::DecodeWhole(
    Colours colours, bool partial, ImageScratch& scratch) {
  const size_t pixels = PixelCount(stored_.size);
  const auto reserve_whole = [&] {
    return scratch.Reserve(pixels * static_cast<size_t>(ChannelsOf(colours)),
                           &scratch.whole);
  };
  if (codec_ == nullptr) {
    RETURN_IF_ERROR(reserve_whole());
    RETURN_IF_ERROR(RunOnJpeg(View(size()), orientation_, false, partial,
                              scratch, scratch.whole.data()));
    ConvertRgb(colours, pixels, AsBytes(scratch.whole));
    return scratch.whole.data();
  }
  const auto decode = [&](std::byte* out) {
    return codec_->decode(file_, stored_, scratch.limits(),
                          reinterpret_cast<uint8_t*>(out));
  };
  const bool as_stored =
      orientation_.identity() && ChannelsOf(colours) == stored_.channels;
  ASSIGN_OR_RETURN(const std::byte* stored, pixels_.Get(stored_, decode));
  if (stored == nullptr) {
    RETURN_IF_ERROR(scratch.Reserve(stored_.bytes(), &scratch.stored));
    RETURN_IF_ERROR(decode(scratch.stored.data()));
    stored = scratch.stored.data();
    if (as_stored) {
      if (stored_.channels == 3)
        ConvertRgb(colours, pixels, AsBytes(scratch.stored));
      return stored;
    }
  }
  if (as_stored && (colours == Colours::kRgb || colours == Colours::kGray))
    return stored;
  RETURN_IF_ERROR(reserve_whole());
  TurnAndConvert(reinterpret_cast<const uint8_t*>(stored), stored_.size,
                 stored_.channels, orientation_, colours,
                 AsBytes(scratch.whole));
  return scratch.whole.data();
}

}  // namespace leat::worker
