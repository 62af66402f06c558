// SPDX-License-Identifier: Apache-2.0
//
// FormDecoding: what a JpegDecoder has to do with forms: it decodes a file with
// one, or makes some.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "worker/image/jpeg/forms/block_reader.h"
#include "worker/image/jpeg/forms/pixels.h"
#include "worker/image/jpeg/forms/readers.h"
#include "worker/image/jpeg/forms/recorder.h"
#include "worker/image/jpeg/forms/stored_scans.h"

namespace leat::worker {

// Thread-compatible. Its memory is kept from file to file.
class FormDecoding {
 public:
  // A file is opened, with a form of it or null.
  void Open(std::span<const std::byte> file, const JpegForm* form);
  // As JpegDecoder's; for what is done without libjpeg.
  void SetGiveUp(const std::atomic<uint32_t>* give_up) {
    give_up_ = give_up;
    recorder_.SetGiveUp(give_up);
  }
  // The next decoding makes forms, and uses none but pixels that it made.
  void Record(FormKinds kinds, size_t max_bytes);
  // The next decoding grows the seek index that was given, or a new one.
  void Grow() { grows_ = true; }

  // The pixels to copy in place of a decoding, if there are any of these
  // colours; it counts as used then.
  const Pixels* Serve(StoredSize size, bool gray);
  // Whether the whole file is to be decoded for its pixels: asked once.
  bool WantsPixels();
  // No pixels are copied or made, though they were given or asked for: the next
  // decoding has others than the file's form.
  void LeavePixels();
  // Room for its pixels. kResourceExhausted: there is too little.
  absl::StatusOr<std::vector<std::byte>> PixelRoom(StoredSize size,
                                                   bool gray) const;
  // The file's pixels, or why there are none.
  void SetPixels(absl::StatusOr<std::unique_ptr<const Pixels>> pixels);

  // What libjpeg reads: the file, or what stands in its place.
  std::span<const std::byte> source() const { return source_; }
  // Puts the header of a progressive file's coefficients in its place, if it is
  // one and has them: true, and libjpeg has to read the source's header.
  bool StandIn(const jpeg_decompress_struct& cinfo);
  // The source has another header than the file: the file is the source again.
  void StandBack() { source_ = file_; }
  bool stands_in() const { return source_.data() != file_.data(); }

  // Takes libjpeg's MCUs over, if there is a form that fits or one is to be
  // made, and the file is of a kind that has forms. REQUIRES:
  // jpeg_start_decompress of the source has returned, nothing was decoded.
  void Begin(j_decompress_ptr cinfo);
  // MCUs beyond these columns may be zero: nobody looks at them.
  void Want(uint32_t first_column, uint32_t last_column) {
    wanted_.first_column = first_column;
    wanted_.last_column = last_column;
  }
  // The source had no MCU: libjpeg decodes the file, from its begin.
  void GiveUp();

  // Whether blocks may be read: no form is to be made, and there are no pixels
  // to copy, which is faster.
  bool MayReadBlocks() const { return !kinds_.any() && pixels_ == nullptr; }
  // Whether this is a file whose coding libjpeg has accepted: one with a form.
  bool is_accepted() const { return mcus_ != nullptr; }
  // Reads the blocks of `blocks->window`, with the form if it fits. False: this
  // is not the file for it, and libjpeg has to decode it, from its begin.
  // REQUIRES: the header was read, and is_accepted() or jpeg_start_decompress
  // has returned; nothing was decoded.
  bool ReadBlocks(const jpeg_decompress_struct& cinfo, size_t max_bytes,
                  JpegBlocks* blocks);

  // These are like JpegDecoder's functions of the same names.
  bool used() const { return used_; }
  absl::StatusOr<std::unique_ptr<const JpegForm>> Take(JpegFormKind kind);
  absl::StatusOr<std::unique_ptr<const JpegForm>> TakeGrown() const;

  size_t held() const {
    return recorder_.held() + stored_.held() + notes_.held();
  }

 private:
  absl::Status Record(j_decompress_ptr cinfo);
  absl::Status BeginGrowing(j_decompress_ptr cinfo);

  const std::atomic<uint32_t>* give_up_ = nullptr;
  std::span<const std::byte> file_, source_;
  const McuForm* mcus_ = nullptr;
  const Pixels* pixels_ = nullptr;
  FormKinds kinds_;
  size_t max_bytes_ = 0;
  absl::Status recording_;  // OK: under way
  bool grows_ = false, begun_growing_ = false;
  absl::Status growing_;  // why the seek index cannot grow
  bool used_ = false;
  bool given_up_ = false;
  bool wants_pixels_ = false;
  bool progressive_ = false;  // what is recorded is in stored_
  absl::StatusOr<std::unique_ptr<const Pixels>> made_pixels_ = nullptr;

  HuffmanTables tables_;
  FileScan scan_;
  WantedBlocks wanted_;
  FormReaders readers_;
  SeekNotes notes_;
  FormRecorder recorder_;
  BlockReader block_reader_;
  StoredScans stored_;
};

}  // namespace leat::worker
