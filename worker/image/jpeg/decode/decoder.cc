// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/decode/decoder.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/image/formulas/pixel.h"
#include "worker/image/jpeg/decode/decoder_state.h"
#include "worker/image/jpeg/scan/header.h"
#include "worker/image/jpeg/scan/scan.h"
#include "worker/image/jpeg/scan/shape.h"
#include "worker/image/resample/kernels.h"

namespace leat::worker {

JpegDecoder::JpegDecoder(const ImageLimits& limits)
    : state_(std::make_unique<State>()) {
  state_->limits = limits;
  state_->cinfo.err = state_->errors.Init();
  // Fails only when memory runs out or the library has another version.
  if (setjmp(state_->errors.jump) != 0) std::abort();
  state_->progress.max_scans = limits.max_scans;
  state_->Create();
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->cinfo); }

const JpegDecoder::Header& JpegDecoder::header() const {
  return state_->header;
}

uint64_t JpegDecoder::working_bytes() const { return state_->working_bytes; }

size_t JpegDecoder::scratch_bytes() const {
  return state_->strip.capacity() + state_->forms.held();
}

// Reads the window's next rows to row_pointers.
absl::Status JpegDecoder::State::Fill(int rows) {
  if (served != nullptr) {
    const int64_t y = window.y + window.height - rows_left;
    for (int i = 0; i < rows; ++i)
      served->CopyRow(y + i, window.x, window.width, dense, row_pointers[i]);
    rows_left -= rows;
    return absl::OkStatus();
  }
  rows_done = 0;
  if (damage.ok() && !ReadStrip(rows) &&
      !(CanGiveUpForms() && BeginWithoutForms() && ReadStrip(rows)))
    RETURN_IF_ERROR(Lose(window.y + window.height - rows_left + rows_done));
  for (int i = rows_done; i < rows; ++i) memset(row_pointers[i], 0, row_bytes);
  rows_left -= rows;
  return absl::OkStatus();
}

// Records a failure before which the rows above `first_row` were returned. If
// it was above the window, the whole window is lost, since its rows need all
// rows above.
absl::Status JpegDecoder::State::Lose(int64_t first_row) {
  absl::Status status = Failed();
  if (!absl::IsDataLoss(status)) return status;
  damage = std::move(status);
  sound_rows = first_row;
  return absl::OkStatus();
}

absl::Status JpegDecoder::State::Check() const {
  const uint64_t width = cinfo.image_width, height = cinfo.image_height;
  if (width > limits.max_side || height > limits.max_side)
    return ResourceExhausted("JPEG is {} × {}: a side over the limit of {}",
                             width, height, limits.max_side);
  if (width * height > limits.max_pixels)
    return ResourceExhausted("JPEG is {} × {}: over the limit of {} pixels",
                             width, height, limits.max_pixels);
  switch (cinfo.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_RGB:
    case JCS_YCbCr:
    case JCS_CMYK:
    case JCS_YCCK:
      return absl::OkStatus();
    default:
      return InvalidArgument(
          "JPEG has {} components of unknown colours, want 1, 3 or 4",
          cinfo.num_components);
  }
}

// Each scan of a JPEG of several goes through the whole image.
int JpegDecoder::State::MostScans() const {
  const uint64_t pixels =
      uint64_t{cinfo.image_width} * uint64_t{cinfo.image_height};
  const uint64_t scans = limits.max_scan_pixels / std::max<uint64_t>(pixels, 1);
  return static_cast<int>(
      std::min<uint64_t>(scans, static_cast<uint64_t>(limits.max_scans)));
}

absl::Status JpegDecoder::Open(std::span<const std::byte> bytes,
                               const JpegForm* form) {
  State& s = *state_;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (bytes.size() < 3 || data[0] != 0xff || data[1] != 0xd8 || data[2] != 0xff)
    return InvalidArgument("not a JPEG image: looks like {}", LooksLike(bytes));
  s.errors.Forget();
  s.halvings = s.pixel_halvings = 0;
  s.forms.Open(bytes, form);
  if (!s.ReadHeader()) return s.errors.ToStatus();
  if (absl::Status status = s.Check(); !status.ok()) return status;
  s.progress.max_scans = s.MostScans();
  if (!HasEnd(bytes))
    return DataLoss(
        "truncated JPEG: premature end of the file ({} bytes) without an end "
        "of image",
        bytes.size());
  s.working_bytes =
      StoresCoefficients(&s.cinfo) ? CoefficientBytes(s.cinfo) : 0;
  if (s.working_bytes > s.limits.max_scratch_bytes)
    return ResourceExhausted(
        "JPEG of several scans needs {} bytes, over the limit of {}",
        s.working_bytes, s.limits.max_scratch_bytes);
  s.header = {.size = {s.cinfo.image_height, s.cinfo.image_width},
              .orientation = ExifOrientation(bytes),
              .components = s.cinfo.num_components,
              .progressive = s.cinfo.progressive_mode != 0,
              .ycc = s.cinfo.jpeg_color_space == JCS_YCbCr,
              .huffman = s.cinfo.arith_code == 0,
              .one_scan = s.cinfo.comps_in_scan == s.cinfo.num_components,
              .has_scales = s.HasScales()};
  for (int i = 0; i < std::min(s.cinfo.num_components, 4); ++i) {
    s.header.h_samp[i] =
        static_cast<uint8_t>(s.cinfo.comp_info[i].h_samp_factor);
    s.header.v_samp[i] =
        static_cast<uint8_t>(s.cinfo.comp_info[i].v_samp_factor);
  }
  return absl::OkStatus();
}

void JpegDecoder::Reduce(int halvings) { state_->halvings = halvings; }

void JpegDecoder::KeepPixelsAt(int halvings) {
  state_->pixel_halvings = halvings;
}

int JpegDecoder::pixel_halvings() const { return state_->pixel_halvings; }

bool JpegDecoder::KeepsPixels() const { return state_->KeepsPixels(); }

StoredSize JpegDecoder::size() const { return state_->size(); }

bool JpegDecoder::EndsEarly() const {
  const Header& header = state_->header;
  return header.huffman && header.one_scan && !header.progressive &&
         JpegScan::Of(state_->cinfo).EndsEarly();
}

absl::Status JpegDecoder::State::Failed() const {
  if (errors.given_up) return Cancelled("the decoding was given up");
  if (errors.too_many_scans)
    return ResourceExhausted(
        "JPEG of {} × {} has more scans than the limit of {}",
        header.size.width, header.size.height, progress.max_scans);
  return errors.ToStatus();
}

// Reads all rows that are left, `to_next` bytes apart. REQUIRES: row_bytes is
// set.
absl::Status JpegDecoder::State::FillAll(uint8_t* out, ptrdiff_t to_next) {
  while (rows_left > 0) {
    const int rows = std::min(kJpegStripRows, rows_left);
    // Discarded rows are written where the first one belongs.
    for (int i = 0; i < rows; ++i, out += to_next) row_pointers[i] = out;
    RETURN_IF_ERROR(Fill(rows));
  }
  return absl::OkStatus();
}

absl::Status JpegDecoder::State::Prepare(const Rect& of, bool to_gray,
                                         bool to_dense, bool may_be_partial) {
  if (forms.WantsPixels()) {
    const int own = std::exchange(halvings, pixel_halvings);
    forms.SetPixels(DecodePixels(to_gray));
    halvings = own;
    errors.Forget();
    if (!ReadHeader()) return errors.ToStatus();
  }
  return BeginDecoding(of, to_gray, to_dense, may_be_partial);
}

// Decodes the whole image in these colours. Pixels of a smaller image come with
// an index, since windows may need another scale. The next decoding begins with
// the header.
absl::StatusOr<std::unique_ptr<const Pixels>> JpegDecoder::State::DecodePixels(
    bool to_gray) {
  if (IsCmyk(cinfo))
    return FailedPrecondition(
        "JPEG has inks: pixels are kept of colours and grays");
  if (!KeepsPixels())
    return FailedPrecondition(
        "JPEG is progressive: pixels are kept of its full size only");
  ASSIGN_OR_RETURN(std::vector<std::byte> pixels,
                   forms.PixelRoom(size(), to_gray));
  if (halvings > 0) forms.Grow();
  RETURN_IF_ERROR(BeginDecoding({0, 0, size().width, size().height}, to_gray,
                                /*to_dense=*/true, /*may_be_partial=*/false));
  row_bytes = static_cast<size_t>(window.width) * (gray ? 1 : 3);
  RETURN_IF_ERROR(FillAll(reinterpret_cast<uint8_t*>(pixels.data()),
                          static_cast<ptrdiff_t>(row_bytes)));
  RETURN_IF_ERROR(damage);
  return Pixels::Of(forms.source(), image(), std::move(pixels),
                    forms.TakeWholeIndex());
}

absl::Status JpegDecoder::State::BeginDecoding(const Rect& of, bool to_gray,
                                               bool to_dense,
                                               bool may_be_partial) {
  window = of;
  gray = to_gray;
  dense = to_dense;
  rows_left = static_cast<int>(window.height);
  damage = absl::OkStatus();
  sound_rows = size().height;
  served = forms.Serve(image());
  cmyk = served == nullptr && IsCmyk(cinfo);
  pixel_bytes = gray && !cmyk ? 1 : 4;
  if (served != nullptr) {
    left = 0;
    return absl::OkStatus();
  }
  if (forms.StandIn(cinfo) && !ReadStandIn()) {
    forms.StandBack();
    errors.Forget();
    if (!ReadHeader()) return errors.ToStatus();
  }
  partial = may_be_partial && PartialIsExact(cinfo);
  if (Begin() || (CanGiveUpForms() && BeginWithoutForms()))
    return absl::OkStatus();
  left = 0;
  return Lose(window.y);
}

absl::Status JpegDecoder::Start(const Rect& window, bool gray, bool partial) {
  State& s = *state_;
  RETURN_IF_ERROR(s.Prepare(window, gray, false, partial));
  const auto width = s.damage.ok() && s.served == nullptr
                         ? static_cast<int64_t>(s.cinfo.output_width)
                         : window.width;
  s.row_bytes = static_cast<size_t>(width) * s.pixel_bytes;
  s.stride = (s.row_bytes + kRowPadding + 63) / 64 * 64;
  const size_t bytes = s.stride * kJpegStripRows + 128;
  if (s.strip.size() < bytes) s.strip.resize(bytes);
  // libjpeg's SIMD writes aligned rows past the cache, and the resampler would
  // have to fetch them from memory: an offset of 4 bytes keeps them in the
  // cache.
  const size_t misaligned = reinterpret_cast<uintptr_t>(s.strip.data()) % 64;
  uint8_t* const base = s.strip.data() + (64 - misaligned) + 4;
  for (int i = 0; i < kJpegStripRows; ++i)
    s.row_pointers[i] = base + s.stride * i;
  return absl::OkStatus();
}

// Converts CMYK rows to RGBX or gray, in place.
void JpegDecoder::State::Convert(int rows) {
  const size_t first = static_cast<size_t>(left);
  for (int r = 0; r < rows; ++r) {
    uint8_t* row = row_pointers[r];
    for (size_t x = first; x < first + static_cast<size_t>(window.width); ++x) {
      uint8_t rgb[3];
      CmykToRgb(row + 4 * x, rgb);
      if (gray)
        row[x] = Luma(rgb);
      else
        memcpy(row + 4 * x, rgb, 3);
    }
  }
}

absl::Status JpegDecoder::ReadRows(PixelRows* rows) {
  State& s = *state_;
  const int count = std::min(kJpegStripRows, s.rows_left);
  RETURN_IF_ERROR(s.Fill(count));
  if (s.cmyk) s.Convert(count);
  const size_t step = s.gray ? 1 : 4;
  *rows = {s.row_pointers[0] + s.left * step, s.stride, count};
  return absl::OkStatus();
}

bool JpegDecoder::CanReadInto(const Rect& window) const {
  return !IsCmyk(state_->cinfo) && window.x == 0 &&
         window.width == state_->size().width;
}

absl::Status JpegDecoder::ReadInto(const Rect& window, bool gray, bool partial,
                                   uint8_t* out, ptrdiff_t stride) {
  State& s = *state_;
  RETURN_IF_ERROR(s.Prepare(window, gray, true, partial));
  s.row_bytes = static_cast<size_t>(window.width) * (gray ? 1 : 3);
  return s.FillAll(out, stride);
}

const absl::Status& JpegDecoder::damage() const { return state_->damage; }

int64_t JpegDecoder::sound_rows() const { return state_->sound_rows; }

std::optional<BlockWindow> JpegDecoder::BlocksOf(const Rect& window,
                                                 bool gray) const {
  if (state_->halvings > 0 || !state_->forms.MayReadBlocks())
    return std::nullopt;
  return BlocksOfWindow(state_->cinfo, window, gray);
}

// Calls `read` when libjpeg has accepted the file. Errors: as for Start.
template <class Read>
absl::StatusOr<bool> JpegDecoder::State::WithAccepted(const BlockWindow& of,
                                                      Read read) {
  window = of.window;
  gray = of.gray;
  cmyk = dense = false;
  damage = absl::OkStatus();
  sound_rows = header.size.height;
  // libjpeg checks the tables, and decides whether they are valid.
  const bool begun = !forms.is_accepted();
  const bool done = (!begun || BeginBlocks()) && read();
  if (!begun) return done;
  if (done) {
    jpeg_abort_decompress(&cinfo);
    return true;
  }
  errors.Forget();
  if (!ReadHeader()) return errors.ToStatus();
  return false;
}

absl::StatusOr<bool> JpegDecoder::ReadBlocks(const BlockWindow& window,
                                             size_t max_bytes,
                                             JpegBlocks* blocks) {
  blocks->window = window;
  return state_->WithAccepted(window, [&] {
    return state_->forms.ReadBlocks(state_->cinfo, max_bytes, blocks);
  });
}

absl::StatusOr<bool> JpegDecoder::FindCodes(const BlockWindow& window,
                                            DeviceCodes* codes) {
  if (!state_->forms.MayFindCodes()) return false;
  codes->window = window;
  return state_->WithAccepted(
      window, [&] { return state_->forms.FindCodes(state_->cinfo, codes); });
}

void JpegDecoder::MakeForms(FormKinds kinds, size_t max_bytes) {
  state_->forms.Record(kinds, max_bytes);
}

absl::StatusOr<std::unique_ptr<const JpegForm>> JpegDecoder::TakeForm(
    JpegFormKind kind) {
  return state_->forms.Take(kind);
}

void JpegDecoder::SetGiveUp(const std::atomic<uint32_t>* give_up) {
  state_->progress.give_up = give_up;
  state_->forms.SetGiveUp(give_up);
}

bool JpegDecoder::gray() const { return state_->gray; }

void JpegDecoder::GrowSeekIndex() { state_->forms.Grow(); }

absl::StatusOr<std::unique_ptr<const JpegForm>> JpegDecoder::TakeGrown() {
  return state_->forms.TakeGrown();
}

bool JpegDecoder::used_form() const { return state_->forms.used(); }

}  // namespace leat::worker
