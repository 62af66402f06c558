// SPDX-License-Identifier: Apache-2.0
//
// StoredScans: makes coefficients of a progressive file.
//
// Such a file has several scans, each with some bits of some coefficients
// (ITU-T T.81, annex G), so libjpeg decodes all of them before the first row
// comes out, and keeps the coefficients of the whole image. These become the
// form. Its header is that of a sequential file of one scan of all components,
// so that a decoding by it neither goes through the scans nor stores anything,
// and looks only at the rows that it needs. What follows the coefficients is
// the same for both kinds of files.
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

// Thread-compatible. Its memory is kept from file to file.
class StoredScans {
 public:
  // Takes the coefficients of `file`, which *cinfo decodes. REQUIRES:
  // jpeg_start_decompress has returned, without an error or a warning, and
  // nothing was decoded since; the file is progressive, and
  // LibraryGivesCoefficients(). An error of libjpeg's
  // takes the error handler's jump. kFailedPrecondition: of such a file there
  // are no coefficients. kCancelled: `give_up` is not null, and was not 0.
  absl::Status Take(j_decompress_ptr cinfo, std::span<const std::byte> file,
                    size_t max_bytes,
                    const std::atomic<uint32_t>* give_up = nullptr);

  // The form. kResourceExhausted: its blocks take more than `max_bytes`.
  // REQUIRES: Take was OK; it is asked for once, and the file is still there.
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

// Writes the header of a sequential file, as far as its coded data, with the
// components, the colours and the quantisation tables of the progressive
// `file`. False: it has segments that libjpeg does not take, or lacks a table.
bool WriteSequentialHeader(std::span<const std::byte> file,
                           const jpeg_decompress_struct& cinfo,
                           std::vector<uint8_t>* to);

}  // namespace leat::worker
