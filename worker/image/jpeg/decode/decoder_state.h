// SPDX-License-Identifier: Apache-2.0
//
// JpegDecoder::State: a JpegDecoder's members. calls.cc has the functions that
// call libjpeg, decoder.cc the others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/decoding.h"
#include "worker/image/jpeg/scan/errors.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {

inline constexpr int kJpegStripRows = 16;

struct JpegProgress {
  jpeg_progress_mgr manager;  // first: libjpeg hands out a pointer to it
  int max_scans = 0;
  const std::atomic<uint32_t>* give_up = nullptr;
};

struct JpegDecoder::State {
  jpeg_decompress_struct cinfo = {};
  JpegErrors errors;
  JpegProgress progress = {};
  ImageLimits limits;
  Header header;
  int halvings = 0, pixel_halvings = 0;
  uint64_t working_bytes = 0;
  FormDecoding forms;
  const Pixels* served = nullptr;  // copied instead of decoding
  // True if the decoding in progress reads only a part.
  bool partial = false;
  Rect window;
  bool gray = false;
  bool cmyk = false;        // decoded as CMYK
  bool dense = false;       // colours take three bytes
  int left = 0;             // columns decoded before the window's first
  int rows_left = 0;        // rows of the window
  int rows_to_discard = 0;  // rows above the window
  int rows_done = 0;        // rows of a strip
  size_t pixel_bytes = 4;
  size_t row_bytes = 0;  // of a row as decoded
  absl::Status damage;
  int64_t sound_rows = 0;
  size_t stride = 0;
  std::vector<uint8_t> strip;
  JSAMPROW row_pointers[kJpegStripRows] = {};

  // --- calls.cc: false after an error or a warning of libjpeg's ---------

  void Create();
  bool ReadHeader();
  bool ReadStandIn();
  void SetScale(int times_halved);
  bool HasScales();
  bool CanGiveUpForms() const;
  void StartDecompress();
  bool Begin();
  bool BeginBlocks();
  bool ReadStrip(int rows);  // to row_pointers; counts them in rows_done
  bool BeginWithoutForms();

  // --- decoder.cc -------------------------------------------------------

  absl::Status Prepare(const Rect& of, bool to_gray, bool to_dense,
                       bool may_be_partial);
  absl::Status BeginDecoding(const Rect& of, bool to_gray, bool to_dense,
                             bool may_be_partial);
  absl::StatusOr<std::unique_ptr<const Pixels>> DecodePixels(bool to_gray);
  absl::Status Fill(int rows);
  absl::Status FillAll(uint8_t* out, ptrdiff_t to_next);
  absl::Status Lose(int64_t first_row);
  absl::Status Failed() const;
  absl::Status Check() const;
  int MostScans() const;
  StoredSize size() const { return Halved(header.size, halvings); }
  Pixels::Image image() const { return {size(), halvings, gray}; }
  bool KeepsPixels() const {
    return pixel_halvings == 0 || !header.progressive;
  }
  // Samples along a side of an 8 x 8 block, at the scale that is decoded.
  int block() const { return DCTSIZE >> halvings; }
  void Convert(int rows);
  template <class Read>
  absl::StatusOr<bool> WithAccepted(const BlockWindow& of, Read read);
};

}  // namespace leat::worker
