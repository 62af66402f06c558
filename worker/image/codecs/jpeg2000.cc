// SPDX-License-Identifier: Apache-2.0
//
// JPEG 2000, JP2 files and bare codestreams, by OpenJPEG in strict mode: gray,
// RGB, sYCC (turned to RGB by BT.601, full range) and palettes; subsampled
// components take the nearest sample. Alpha is the component that the file
// marks as alpha, or that follows the colours. Profiles are not applied; there
// is no orientation.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "core/cluster/fault.h"
#include "core/freed.h"
#include "core/status.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/codecs/jpeg2000_structure.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;

// Each part takes OpenJPEG up to a microsecond.
constexpr uint64_t kMaxParts = 32'000'000;

bool RecognisesJpeg2000(Bytes file) {
  return BytesAre(file, 0, std::string_view("\0\0\0\x0cjP  \r\n\x87\n", 12)) ||
         BytesAre(file, 0, "\xff\x4f\xff\x51");
}

absl::StatusOr<ImageHeader> ReadJpeg2000Header(Bytes file,
                                               const ImageLimits& limits) {
  ASSIGN_OR_RETURN(const Jpeg2000Structure structure,
                   ReadJpeg2000Structure(file));
  RETURN_IF_ERROR(
      CheckImageSize("JPEG 2000", structure.width, structure.height, limits));
  RETURN_IF_ERROR(CheckImageSize("JPEG 2000", structure.max_width,
                                 structure.max_height, limits));
  RETURN_IF_ERROR(
      CheckCodecMemory("JPEG 2000", structure.memory_bytes, limits));
  if (structure.parts > kMaxParts)
    return ResourceExhausted(
        "JPEG 2000 has about {} packets and code-blocks, over the limit of {}",
        structure.parts, kMaxParts);
  const bool gray = structure.components < 3 && !structure.palette;
  return ImageHeader{.size = {static_cast<int64_t>(structure.height),
                              static_cast<int64_t>(structure.width)},
                     .channels = gray ? 1 : 3,
                     .working_bytes = structure.memory_bytes};
}

struct Source {
  Bytes bytes;
  uint64_t at = 0;
};
OPJ_SIZE_T ReadSource(void* to, OPJ_SIZE_T size, void* user) {
  auto* source = static_cast<Source*>(user);
  if (source->at >= source->bytes.size()) return static_cast<OPJ_SIZE_T>(-1);
  const size_t count =
      std::min<size_t>(size, source->bytes.size() - source->at);
  memcpy(to, source->bytes.data() + source->at, count);
  source->at += count;
  return count;
}
OPJ_OFF_T SkipSource(OPJ_OFF_T size, void* user) {
  auto* source = static_cast<Source*>(user);
  if (size < 0) return -1;
  const auto rest = static_cast<OPJ_OFF_T>(source->bytes.size() - source->at);
  const OPJ_OFF_T moved = std::min(size, rest);
  source->at += static_cast<uint64_t>(moved);
  return moved == 0 && size > 0 ? -1 : moved;
}
OPJ_BOOL SeekSource(OPJ_OFF_T at, void* user) {
  auto* source = static_cast<Source*>(user);
  if (at < 0 || static_cast<uint64_t>(at) > source->bytes.size())
    return OPJ_FALSE;
  source->at = static_cast<uint64_t>(at);
  return OPJ_TRUE;
}

void OnError(const char* text, void* user) {
  auto* first = static_cast<std::string*>(user);
  if (!first->empty()) return;
  *first = text;
  while (!first->empty() && first->back() == '\n') first->pop_back();
}
void OnMessage(const char*, void*) {}

using Image = std::unique_ptr<opj_image_t, Freed<opj_image_destroy>>;

absl::StatusOr<Image> DecodeComponents(Bytes file) {
  const MallocWatch memory;
  const bool bare = BytesAre(file, 0, "\xff\x4f");
  Source source{file};
  std::string error;
  const auto damaged = [&] {
    return memory.Verdict(DataLoss("damaged JPEG 2000: {}", error));
  };
  std::unique_ptr<opj_codec_t, Freed<opj_destroy_codec>> codec(
      opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  std::unique_ptr<opj_stream_t, Freed<opj_stream_destroy>> stream(
      opj_stream_default_create(OPJ_TRUE));
  if (codec == nullptr || stream == nullptr)
    return WithFault(ResourceExhausted("JPEG 2000: out of memory"),
                     Fault::kWorker);
  opj_set_error_handler(codec.get(), OnError, &error);
  opj_set_warning_handler(codec.get(), OnMessage, nullptr);
  opj_set_info_handler(codec.get(), OnMessage, nullptr);
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), ReadSource);
  opj_stream_set_skip_function(stream.get(), SkipSource);
  opj_stream_set_seek_function(stream.get(), SeekSource);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (!opj_setup_decoder(codec.get(), &parameters)) return damaged();
  opj_decoder_set_strict_mode(codec.get(), OPJ_TRUE);
  opj_image_t* raw = nullptr;
  const bool has_header = opj_read_header(stream.get(), codec.get(), &raw);
  Image image(raw);
  if (!has_header || image == nullptr ||
      !opj_decode(codec.get(), stream.get(), image.get()) ||
      !opj_end_decompress(codec.get(), stream.get()))
    return damaged();
  return image;
}

// One component, scaled to bytes.
class Plane {
 public:
  explicit Plane(const opj_image_comp_t& component)
      : component_(&component),
        max_((int64_t{1} << component.prec) - 1),
        shift_(component.sgnd ? int64_t{1} << (component.prec - 1) : 0) {}

  // Returns the sample that is nearest to (x, y) of an image of the size `of`.
  uint8_t At(int64_t x, int64_t y, ImageSize of) const {
    const int64_t u =
        component_->w == of.width ? x : x * component_->w / of.width;
    const int64_t v =
        component_->h == of.height ? y : y * component_->h / of.height;
    const int64_t value = component_->data[v * component_->w + u] + shift_;
    return ScaledToByte(
        static_cast<uint64_t>(std::clamp<int64_t>(value, 0, max_)),
        static_cast<uint64_t>(max_));
  }

 private:
  const opj_image_comp_t* component_;
  int64_t max_, shift_;
};

uint8_t ToByte(int32_t fixed) {
  return static_cast<uint8_t>(std::clamp((fixed + 32768) >> 16, 0, 255));
}

// Converts in 16-bit fixed point.
void SyccToRgb(uint8_t pixel[3]) {
  const int32_t y = pixel[0] << 16, cb = pixel[1] - 128, cr = pixel[2] - 128;
  pixel[0] = ToByte(y + 91881 * cr);
  pixel[1] = ToByte(y - 22554 * cb - 46802 * cr);
  pixel[2] = ToByte(y + 116130 * cb);
}

// Returns the indices of the components that are colours, at most three.
std::vector<uint32_t> ColoursOf(const opj_image_t& image) {
  std::vector<uint32_t> colours;
  for (uint32_t c = 0; c < image.numcomps && colours.size() < 3; ++c)
    if (image.comps[c].alpha == 0) colours.push_back(c);
  if (colours.size() < 3 && !colours.empty()) colours.resize(1);
  return colours;
}

absl::Status DecodeJpeg2000(Bytes file, const ImageHeader& header,
                            const ImageLimits&, uint8_t* out) {
  ASSIGN_OR_RETURN(const Image image, DecodeComponents(file));
  if (image->color_space == OPJ_CLRSPC_CMYK ||
      image->color_space == OPJ_CLRSPC_EYCC)
    return InvalidArgument("JPEG 2000 in colour space {} is not supported",
                           static_cast<int>(image->color_space));
  const std::vector<uint32_t> colours = ColoursOf(*image);
  const ImageSize size = header.size;
  std::vector<Plane> planes;
  for (const uint32_t c : colours) {
    const opj_image_comp_t& component = image->comps[c];
    if (component.data == nullptr || component.w == 0 || component.h == 0 ||
        component.prec < 1 || component.prec > 31 || component.w > size.width ||
        component.h > size.height)
      return InvalidArgument(
          "JPEG 2000 with a component of {} × {}, {} bits, is not supported",
          component.w, component.h, component.prec);
    planes.emplace_back(component);
  }
  if (planes.empty())
    return InvalidArgument("JPEG 2000 without colours is not supported");
  if (header.channels == 1) planes.resize(1, planes[0]);
  const bool sycc = image->color_space == OPJ_CLRSPC_SYCC && planes.size() == 3;
  for (int64_t y = 0; y < size.height; ++y)
    for (int64_t x = 0; x < size.width; ++x, out += header.channels) {
      if (planes.size() == 3) {
        for (size_t c = 0; c < 3; ++c) out[c] = planes[c].At(x, y, size);
        if (sycc) SyccToRgb(out);
      } else {
        memset(out, planes[0].At(x, y, size),
               static_cast<size_t>(header.channels));
      }
    }
  return absl::OkStatus();
}

}  // namespace

const Codec kJpeg2000 = {"JPEG 2000", ImageFormat::kJpeg2000,
                         RecognisesJpeg2000, ReadJpeg2000Header,
                         DecodeJpeg2000};

}  // namespace leat::worker
