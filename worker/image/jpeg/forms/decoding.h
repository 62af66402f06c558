// SPDX-License-Identifier: Apache-2.0
//
// FormDecoding: the part of a JpegDecoder that handles decoded forms: it
// decodes a file with a form, or makes forms.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "worker/image/jpeg/forms/block_reader.h"
#include "worker/image/jpeg/forms/device_codes.h"
#include "worker/image/jpeg/forms/pixels.h"
#include "worker/image/jpeg/forms/progressive_scans.h"
#include "worker/image/jpeg/forms/readers.h"
#include "worker/image/jpeg/forms/recorder.h"
#include "worker/image/jpeg/scan/code_tables.h"

namespace leat::worker {

// Thread-compatible. It reuses its memory from file to file.
class FormDecoding {
 public:
  // Opens a file, with a form of it or nullptr.
  void Open(std::span<const std::byte> file, const JpegForm* form);
  // As in JpegDecoder; for the work that is done without libjpeg.
  void SetGiveUp(const std::atomic<uint32_t>* give_up) {
    give_up_ = give_up;
    recorder_.SetGiveUp(give_up);
  }
  // The next decoding makes forms, and uses none except pixels that it made.
  void Record(FormKinds kinds, size_t max_bytes);
  // The next decoding extends the seek index that was given, or makes a new
  // one.
  void Grow() { grows_ = true; }

  // Returns the pixels to copy instead of decoding, if the form has pixels of
  // this image; the form then counts as used.
  const Pixels* Serve(const Pixels::Image& image);
  // True, once, if the whole file is to be decoded for its pixels.
  bool WantsPixels();
  // Returns a buffer for the file's pixels. kResourceExhausted: they exceed
  // `max_bytes`.
  absl::StatusOr<std::vector<std::byte>> PixelRoom(StoredSize size,
                                                   bool gray) const;
  // Returns the index that a decoding of the whole file has made; nullptr: the
  // file has none.
  std::unique_ptr<const SeekIndex> TakeWholeIndex() const;
  // Takes the file's pixels, or the reason why there are none. The next decoding
  // uses them, and makes no index.
  void SetPixels(absl::StatusOr<std::unique_ptr<const Pixels>> pixels);

  // Returns the bytes that libjpeg reads: the file, or its replacement.
  std::span<const std::byte> source() const { return source_; }
  // Replaces a progressive file by the header of its coefficients, if the form
  // has them. If it returns true, libjpeg has to read the source's header.
  bool StandIn(const jpeg_decompress_struct& cinfo);
  // Makes the file the source again, because the replacement's header differs.
  void StandBack() { source_ = file_; }
  bool stands_in() const { return source_.data() != file_.data(); }

  // Takes over libjpeg's MCUs, if there is a form that fits or one is to be
  // made, and the file is of a kind that has forms. REQUIRES:
  // jpeg_start_decompress of the source has returned, nothing was decoded.
  void Begin(j_decompress_ptr cinfo);
  // MCUs outside these columns may be zero: their pixels are not used.
  void Want(uint32_t first_column, uint32_t last_column) {
    wanted_.first_column = first_column;
    wanted_.last_column = last_column;
  }
  // Says that the source had no MCU: libjpeg decodes the file from its begin.
  void GiveUp();

  // True if blocks may be read: no form is to be made, and there are no pixels
  // to copy, which is faster.
  bool MayReadBlocks() const { return !kinds_.any() && pixels_ == nullptr; }
  // True if libjpeg has accepted this file's coding before: it has a form.
  bool is_accepted() const { return mcus_ != nullptr; }
  // Reads the blocks of `blocks->window`, with the form if it fits. Returns
  // false if the file does not allow that, and libjpeg has to decode it from
  // its begin.
  // REQUIRES: the header was read, and is_accepted() or jpeg_start_decompress
  // has returned; nothing was decoded.
  bool ReadBlocks(const jpeg_decompress_struct& cinfo, size_t max_bytes,
                  JpegBlocks* blocks);

  // False: FindCodes would return false.
  bool MayFindCodes() const;
  // Finds the codes of `codes->window` with the form, or without one. Returns
  // false if the form is no seek index that leads to them. No index is
  // extended. REQUIRES: as for ReadBlocks.
  bool FindCodes(const jpeg_decompress_struct& cinfo, DeviceCodes* codes);

  // These are like JpegDecoder's functions of the same names.
  bool used() const { return used_; }
  absl::StatusOr<std::unique_ptr<const JpegForm>> Take(JpegFormKind kind);
  absl::StatusOr<std::unique_ptr<const SeekIndex>> TakeGrown() const;

  size_t held() const {
    return recorder_.held() + stored_.held() + notes_.held();
  }

 private:
  absl::Status Record(j_decompress_ptr cinfo);
  absl::Status BeginGrowing(j_decompress_ptr cinfo);
  void Use(const Pixels* pixels);

  const std::atomic<uint32_t>* give_up_ = nullptr;
  std::span<const std::byte> file_, source_;
  const McuForm* mcus_ = nullptr;
  const Pixels* pixels_ = nullptr;
  FormKinds kinds_;
  size_t max_bytes_ = 0;
  absl::Status recording_;  // OK: in progress
  bool grows_ = false, begun_growing_ = false;
  absl::Status growing_;  // why the seek index cannot grow
  bool used_ = false;
  bool given_up_ = false;
  bool wants_pixels_ = false;
  bool progressive_ = false;  // true if the recorded form is in stored_
  absl::StatusOr<std::unique_ptr<const Pixels>> made_pixels_ = nullptr;

  HuffmanTables tables_;
  CodeTables code_tables_;
  FileScan scan_;
  WantedBlocks wanted_;
  FormReaders readers_;
  SeekNotes notes_;
  FormRecorder recorder_;
  BlockReader block_reader_;
  ProgressiveScans stored_;
};

}  // namespace leat::worker
