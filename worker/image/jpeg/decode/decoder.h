// SPDX-License-Identifier: Apache-2.0
//
// JpegDecoder: libjpeg-turbo, whole or a window, row by row, the same bytes
// either way.
//
// The accurate integer DCT and fancy upsampling. A window is decoded one iMCU
// wider on each side where fancy upsampling looks at neighbours; rows above it
// are skipped (entropy decoding only) and nothing after its last row is looked
// at. Kinds of JPEG for which libjpeg's partial decoding is not exact are
// decoded in full width and height.
//
// An image may be decoded at 1/2, 1/4 or 1/8, by libjpeg-turbo's smaller
// inverse DCTs. They are integer arithmetic, too, so that windows, forms and
// processors have the bits of the whole image at that scale.
//
// Damage is never guessed over: libjpeg's warnings about lost data end the
// decoding, and damage() says which rows are lost. Every row has an answer of
// its own, the file's: a row is sound if the entropy-coded data from the file's
// begin to the last MCU that the row is made of are (docs/decisions/0025). So
// damage below the window is not seen, but for a missing end of image, which is
// looked for in Open.
//
// A form of the file (jpeg/forms/) makes decoding faster and changes neither
// pixels nor damage.
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

// Thread-compatible. One for each thread, reused for image after image.
class JpegDecoder {
 public:
  explicit JpegDecoder(const ImageLimits& limits);
  ~JpegDecoder();

  struct Header {
    StoredSize size;
    int orientation = 1;  // EXIF's, 1 … 8
    int components = 0;
    bool progressive = false;
    // Three components are Y, Cb, Cr; Huffman coded; one scan has them all.
    bool ycc = false;
    bool huffman = true;
    bool one_scan = true;
    bool has_scales = false;                    // Reduce may be called
    std::array<uint8_t, 4> h_samp{}, v_samp{};  // by component
  };

  // Reads the header; `bytes` must live until the last ReadRows. Nothing that
  // depends on the image's size is allocated. kInvalidArgument: not a JPEG, or
  // of a kind that is not supported. kDataLoss: damaged or cut off.
  // kResourceExhausted: over a limit.
  //
  // `form` may be null; else it must live until the last ReadRows, and was made
  // of these bytes: who brought the two together has asked form->IsOf(bytes).
  // One that plainly is not this file's, or has no MCU where one is wanted, is
  // not used; nor are pixels of other colours than are asked for. In place of
  // the file it may be given Coefficients::file_header() of the form.
  absl::Status Open(std::span<const std::byte> bytes,
                    const JpegForm* form = nullptr);
  const Header& header() const;
  // What libjpeg takes for the coefficients of a file of several scans; 0: of
  // one. REQUIRES: Open succeeded.
  uint64_t working_bytes() const;

  // Whether the file certainly lacks data of its last MCU (jpeg/scan/scan.h),
  // found out without decoding: decoding the last row finds damage. False of
  // kinds for which nothing is known. REQUIRES: Open succeeded, and Start was
  // not called.
  bool EndsEarly() const;

  // What is decoded next is the image at 1 / 2^halvings, `size()` large:
  // windows and rows are its own, and so are damage() and sound_rows(). Of the
  // forms of a file no pixels are used or made, and no blocks are read.
  // REQUIRES: Open succeeded, header().has_scales, and Start was not called; 0
  // < halvings <= 3.
  void Reduce(int halvings);
  // Returns the size of the image at the scale at which it is decoded.
  StoredSize size() const;

  // Begins to decode `window`. `partial` false: as if libjpeg could decode
  // whole images only (for tests). REQUIRES: Open succeeded; the window is not
  // empty and lies inside the image. kInvalidArgument, kResourceExhausted: as
  // Open's.
  absl::Status Start(const Rect& window, bool gray, bool partial = true);
  // The window's next rows: 1 … 16 of them; lost ones are black. Valid until
  // the next call. Errors: as Start's.
  // REQUIRES: fewer than window.height rows were read since Start.
  absl::Status ReadRows(PixelRows* rows);

  // What is known after Start and so far; who uses pixels asks. kDataLoss: the
  // image's rows from sound_rows() on are lost. Where damage lies above the
  // window, sound_rows() is the window's first row.
  const absl::Status& damage() const;
  int64_t sound_rows() const;

  // Whether ReadInto takes the window: whole rows.
  bool CanReadInto(const Rect& window) const;
  // Decodes `window` to rows of RGB or gray pixels, `stride` apart, which may
  // be negative; lost ones are black. Errors and REQUIRES: as Start, and
  // CanReadInto(window).
  absl::Status ReadInto(const Rect& window, bool gray, bool partial,
                        uint8_t* out, ptrdiff_t stride);

  // The next decoding makes forms of the file on the way; coefficients or
  // pixels of more than `max_bytes` are not kept. Pixels are made by decoding
  // all of the file first, in the colours that Start is told. REQUIRES: Open
  // succeeded, and Start was not called; pixels are asked for alone.
  void MakeForms(FormKinds kinds, size_t max_bytes);
  // Such a form, after the window's last row was read; each once. Where the
  // window ends above the image's end, the rest of the codes are gone through
  // here. kFailedPrecondition: the file is of a kind without this form, nobody
  // has asked for it, or decoding did not begin. kDataLoss: a part of the file
  // is damaged; the window need not be. kResourceExhausted: over `max_bytes`,
  // or pixels cannot be decoded within the limits. kUnimplemented: libjpeg is
  // one that McuForms do not work with. REQUIRES: the file's bytes are still
  // there.
  absl::StatusOr<std::unique_ptr<const JpegForm>> TakeForm(JpegFormKind kind);
  // The next decoding notes where the MCUs that it goes through begin, which
  // takes no longer. REQUIRES: Open succeeded with no form or a seek index,
  // Start was not called, and no forms are made.
  void GrowSeekIndex();
  // The seek index of all rows from the top that are known now, after the
  // window's last row was read. Null: it is no longer than the one that was
  // given, or the window was read as blocks. Errors and REQUIRES: as
  // TakeForm's; once.
  absl::StatusOr<std::unique_ptr<const JpegForm>> TakeGrown();
  // From now on all of the above fail with kCancelled soon after `*give_up` is
  // not 0, which is looked at between rows of MCUs, except while the header is
  // read. Null: they do not; else it outlives this, or the next call.
  void SetGiveUp(const std::atomic<uint32_t>* give_up);
  // Whether the decoding that began last makes gray pixels.
  bool gray() const;
  // Whether the form that was given is used: so far, and for the window that
  // was started last.
  bool used_form() const;

  // The blocks that the window's pixels are made of, where the file is of a
  // kind that ReadBlocks may read. REQUIRES: Open succeeded; the window is not
  // empty and lies inside the image.
  std::optional<BlockWindow> BlocksOf(const Rect& window, bool gray) const;
  // Reads coefficients in place of Start and ReadRows: those of `window`, at
  // most about `max_bytes`, to *blocks. True: the pixels that libjpeg makes of
  // them are what ReadRows would give, and the file is sound as far as the
  // window needs it. False, of whatever is odd: Start may be called, and says
  // all. Errors: as Start's. REQUIRES: BlocksOf gave `window` since Open; Start
  // was not called.
  absl::StatusOr<bool> ReadBlocks(const BlockWindow& window, size_t max_bytes,
                                  JpegBlocks* blocks);

  // Bytes of buffers held.
  size_t scratch_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat::worker
