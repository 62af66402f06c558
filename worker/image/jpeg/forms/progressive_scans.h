// SPDX-License-Identifier: Apache-2.0
//
// ProgressiveScans: makes coefficients from a progressive file.
//
// Such a file has several scans, each with some bits of some coefficients
// (ITU-T T.81, annex G), so libjpeg decodes all of them before it returns the
// first row, and stores the coefficients of the whole image. These become the
// form. Its header is that of a sequential file with one scan of all
// components. So a decoding with the form neither reads the scans nor stores
// anything, and reads only the rows that it needs. All later steps are the same
// for both kinds of files.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

extern "C" {
#include <jpeglib.h>
}

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/image/jpeg/forms/coefficient_writer.h"

namespace leat::worker {

// Thread-compatible. It reuses its memory from file to file.
class ProgressiveScans {
 public:
  // Takes the coefficients of `file`, which *cinfo decodes. REQUIRES:
  // jpeg_start_decompress has returned, without an error or a warning, and
  // nothing was decoded since; the file is progressive, and
  // LibraryGivesCoefficients(). An error of libjpeg takes the error handler's
  // jump. kFailedPrecondition: such a file has no coefficients. kCancelled:
  // `give_up` is not nullptr, and was not 0.
  absl::Status Take(j_decompress_ptr cinfo, std::span<const std::byte> file,
                    size_t max_bytes,
                    const std::atomic<uint32_t>* give_up = nullptr);

  // Returns the form. kResourceExhausted: its blocks take more than
  // `max_bytes`.
  // REQUIRES: Take was OK; called once, and the file still exists.
  absl::StatusOr<std::unique_ptr<const JpegForm>> Make();

  size_t held() const { return file_header_.capacity() + writer_.held(); }

 private:
  bool Describe(const jpeg_decompress_struct& cinfo);
  bool TakeRow(j_decompress_ptr cinfo, jvirt_barray_ptr* arrays, uint32_t row);

  std::span<const std::byte> file_;
  ScanLayout layout_;
  std::vector<uint8_t> file_header_;
  CoefficientWriter writer_;
};

// Writes the header of a sequential file, up to its coded data, with the
// components, the colours and the quantisation tables of the progressive
// `file`. Returns false if it has segments that libjpeg refuses, or lacks a
// table.
bool WriteSequentialHeader(std::span<const std::byte> file,
                           const jpeg_decompress_struct& cinfo,
                           std::vector<uint8_t>* to);

}  // namespace leat::worker
