// SPDX-License-Identifier: Apache-2.0
//
// JpegDecoder: decodes a whole image or a window with libjpeg-turbo, row by
// row, to the same bytes either way.
//
// It uses the accurate integer DCT and fancy upsampling. A window is decoded
// one iMCU wider on each side where fancy upsampling reads neighbours; rows
// above it are skipped (entropy decoding only) and nothing after its last row
// is read. Kinds of JPEG for which libjpeg's partial decoding is not exact are
// decoded in full width and height.
//
// An image may be decoded at 1/2, 1/4 or 1/8, by libjpeg-turbo's smaller
// inverse DCTs. They are integer arithmetic, too, so that windows, forms and
// processors give the bits of the whole image at that scale.
//
// Damage is never guessed over: libjpeg's warnings about lost data end the
// decoding, and damage() says which rows are lost. Each row is judged by the
// file alone: a row is sound if the entropy-coded data from the file's begin to
// the last MCU that the row depends on are sound (docs/decisions/0025). So
// damage below the window is not seen, except a missing end of image, which
// Open looks for.
//
// A decoded form of the file (jpeg/forms/) makes decoding faster and changes
// neither pixels nor damage.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/image/base/limits.h"
#include "worker/image/base/pixel_rows.h"
#include "worker/image/base/rect.h"
#include "worker/image/jpeg/forms/kinds.h"
#include "worker/image/jpeg/scan/block_window.h"

namespace leat::worker {

struct JpegBlocks;
struct DeviceCodes;

// Thread-compatible. Each thread has one, and reuses it for image after image.
class JpegDecoder {
 public:
  explicit JpegDecoder(const ImageLimits& limits);
  ~JpegDecoder();

  struct Header {
    StoredSize size;
    int orientation = 1;  // from EXIF, 1 … 8
    int components = 0;
    bool progressive = false;
    // ycc: the three components are Y, Cb, Cr. one_scan: one scan has them all.
    bool ycc = false;
    bool huffman = true;
    bool one_scan = true;
    bool has_scales = false;                    // Reduce may be called
    std::array<uint8_t, 4> h_samp{}, v_samp{};  // per component
  };

  // Reads the header; `bytes` must live until the last ReadRows. Nothing that
  // depends on the image's size is allocated. kInvalidArgument: not a JPEG, or
  // a kind that is not supported. kDataLoss: damaged or cut off.
  // kResourceExhausted: over a limit.
  //
  // `form` may be nullptr; otherwise it must live until the last ReadRows, and
  // was made from these bytes: the code that paired them has called
  // form->IsOf(bytes). A form that evidently belongs to another file, or lacks
  // a wanted MCU, is not used; nor are pixels of other colours than requested.
  // `bytes` may be Coefficients::file_header() of the form instead of the file.
  absl::Status Open(std::span<const std::byte> bytes,
                    const JpegForm* form = nullptr);
  const Header& header() const;
  // Returns the bytes that libjpeg allocates for the coefficients of a file
  // with several scans; 0 for one scan. REQUIRES: Open succeeded.
  uint64_t working_bytes() const;

  // True if the file certainly lacks data of its last MCU (jpeg/scan/scan.h),
  // so that decoding the last row would find damage. It does not decode. False
  // for kinds about which nothing is known. REQUIRES: Open succeeded, and Start
  // was not called.
  bool EndsEarly() const;

  // Makes the next decoding give the image at 1 / 2^halvings, with the size
  // size(): windows, rows, damage() and sound_rows() refer to that image. No
  // blocks are read then. REQUIRES: Open succeeded, header().has_scales, and
  // Start was not called; 0 < halvings <= 3.
  void Reduce(int halvings);
  // Makes the next decoding keep pixels at 1 / 2^halvings, if it is to make any
  // (MakeForms): at the scale that most windows of the file will need. It may be
  // another one than Reduce's; after Open it is that of the file. REQUIRES: as
  // for Reduce, but halvings may be 0.
  void KeepPixelsAt(int halvings);
  int pixel_halvings() const;
  // False for a progressive file whose pixels are to be kept at a smaller scale:
  // none are made. It has no seek index, so that all of it would be decoded for
  // each window at another scale. Coefficients serve all scales.
  bool KeepsPixels() const;
  // Returns the size of the image at the scale at which it is decoded.
  StoredSize size() const;

  // Begins to decode `window`. `partial` false: as if libjpeg could decode
  // whole images only (for tests). REQUIRES: Open succeeded; the window is not
  // empty and lies inside the image. kInvalidArgument, kResourceExhausted: as
  // for Open.
  absl::Status Start(const Rect& window, bool gray, bool partial = true);
  // Returns the window's next rows, 1 … 16 of them; lost ones are black. Valid
  // until the next call. Errors: as for Start.
  // REQUIRES: fewer than window.height rows were read since Start.
  absl::Status ReadRows(PixelRows* rows);

  // Returns the damage found since Start; code that uses pixels must check it.
  // kDataLoss: the image's rows from sound_rows() on are lost. If damage lies
  // above the window, sound_rows() is the window's first row.
  const absl::Status& damage() const;
  int64_t sound_rows() const;

  // True if ReadInto accepts the window: it has whole rows.
  bool CanReadInto(const Rect& window) const;
  // Decodes `window` to rows of RGB or gray pixels, `stride` apart, which may
  // be negative; lost ones are black. Errors: as for Start. REQUIRES: as for
  // Start, and CanReadInto(window).
  absl::Status ReadInto(const Rect& window, bool gray, bool partial,
                        uint8_t* out, ptrdiff_t stride);

  // Makes the next decoding make forms of the file on the way; coefficients or
  // pixels of more than `max_bytes` are dropped. Pixels are made by decoding
  // the whole file first, in the colours given to Start. REQUIRES: Open
  // succeeded, and Start was not called; pixels are requested alone.
  void MakeForms(FormKinds kinds, size_t max_bytes);
  // Returns such a form, after the window's last row was read; once per kind.
  // If the window ends above the image's end, this call reads the remaining
  // codes. kFailedPrecondition: the file is of a kind without this form, the
  // form was not requested, or decoding did not begin. kDataLoss: a part of the
  // file is damaged; the window need not be. kResourceExhausted: over
  // `max_bytes`, or pixels cannot be decoded within the limits. kUnimplemented:
  // McuForms do not work with this libjpeg. REQUIRES: the file's bytes still
  // exist.
  absl::StatusOr<std::unique_ptr<const JpegForm>> TakeForm(JpegFormKind kind);
  // Makes the next decoding note where the MCUs that it passes begin, at no
  // cost. REQUIRES: Open succeeded with no form or a seek index, Start was not
  // called, and no forms are made.
  void GrowSeekIndex();
  // Returns the seek index of all rows from the top that are known now, after
  // the window's last row or its blocks were read. nullptr: it is no longer
  // than the given one. Errors and REQUIRES: as for TakeForm; called once.
  absl::StatusOr<std::unique_ptr<const JpegForm>> TakeGrown();
  // Makes all of the above fail with kCancelled soon after `*give_up` is not 0.
  // It is checked between rows of MCUs, but not while the header is read.
  // nullptr: they do not; otherwise it outlives this, or the next call.
  void SetGiveUp(const std::atomic<uint32_t>* give_up);
  // True if the last decoding that began makes gray pixels.
  bool gray() const;
  // True if the given form has been used so far for the window that was started
  // last.
  bool used_form() const;

  // Returns the blocks that the window's pixels depend on, if the file is of a
  // kind that ReadBlocks may read. REQUIRES: Open succeeded; the window is not
  // empty and lies inside the image.
  std::optional<BlockWindow> BlocksOf(const Rect& window, bool gray) const;
  // Reads coefficients instead of Start and ReadRows: those of `window`, at
  // most about `max_bytes`, to *blocks. True: libjpeg would make from them the
  // pixels that ReadRows returns, and the file is sound as far as the window
  // needs it. False, if anything is odd: call Start, which reports it. Errors:
  // as for Start. REQUIRES: BlocksOf returned `window` since Open; Start was
  // not called.
  absl::StatusOr<bool> ReadBlocks(const BlockWindow& window, size_t max_bytes,
                                  JpegBlocks* blocks);

  // Finds the codes of `window` for a device that decodes them. True: if the
  // device refuses no code, and all blocks that it decodes are exact, the file
  // is sound as far as the window needs it, and they have the pixels that
  // ReadRows returns. False if the form does not lead to them, or if anything is
  // odd: call ReadBlocks, or Start. It extends no index. Errors: as for Start.
  // REQUIRES: as for ReadBlocks.
  absl::StatusOr<bool> FindCodes(const BlockWindow& window, DeviceCodes* codes);

  // Returns how many bytes of buffers are held.
  size_t scratch_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
