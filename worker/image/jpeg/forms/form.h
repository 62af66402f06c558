// SPDX-License-Identifier: Apache-2.0
//
// JpegForm: a decoded form of a JPEG file, kept by a worker after the first
// decode so that later decodes are faster and give the same bits.
//
//   SeekIndex      where every 16th MCU begins in the file: 1.6 % of the bytes
//                  of a photo; a decode skips what is outside its window
//   Coefficients   the coefficients themselves, in bytes that decode faster
//                  than Huffman codes: 1.9 times the bytes of a photo; it
//                  replaces the file
//   Pixels         the decoded image: 5.4 times the bytes of a photo, or less at
//                  a smaller scale, and a decode is a copy
//
// A form is made from a sound file only. A seek index and coefficients, which
// give libjpeg its MCUs, are made of the kinds of files that CheckHasForms
// accepts; coefficients also of progressive files (progressive_scans.h). All other
// files are decoded as if there were no forms, which is why damage has one
// meaning (docs/decisions/0025).
//
// McuForms are bytes: they are stored on disks and sent to other workers, and
// are not trusted when read back. Parse checks the sum, the version and all
// offsets; a form that passes may decode to other pixels, or not at all, but
// never makes the decoder read or write outside its buffers. Pixels stay in the
// process whose library decoded them.
//
// The layout of McuForms, numbers in little-endian order:
//    0  "LeJF", u32 CRC-32C of all that follows, u16 version, u8 kind
//   11  u8 components, u8 blocks of an MCU, 10 × u8 component of each block
//   23  u8 0, u16 width, u16 height, u32 columns and u32 rows of MCUs
//   36  u32 offset of the scan, u32 bytes of the file, u32 CRC-32C of the file
//   48  the content, which depends on the kind
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/image/jpeg/forms/kinds.h"
#include "worker/image/jpeg/forms/mcu_source.h"
#include "worker/image/jpeg/scan/layout.h"

namespace leat::worker {

struct FormReaders;

// Immutable, and shared by threads.
class JpegForm {
 public:
  // Forms of other versions are refused.
  static constexpr uint16_t kVersion = 1;

  // kDataLoss: damaged or cut off, or its numbers contradict each other.
  // kInvalidArgument: not an McuForm, or one of another version.
  static absl::StatusOr<std::unique_ptr<const JpegForm>> Parse(
      std::vector<std::byte> bytes);

  virtual ~JpegForm() = default;
  JpegForm(const JpegForm&) = delete;
  JpegForm& operator=(const JpegForm&) = delete;

  virtual JpegFormKind kind() const = 0;
  // True if the form was made from these bytes. It reads them all: call it when
  // a form is first paired with a file, not at each decoding.
  virtual bool IsOf(std::span<const std::byte> file) const;

  // Returns the form's memory. The bytes of an McuForm may be written to a disk
  // or sent to another worker.
  std::span<const std::byte> bytes() const { return bytes_; }
  // Returns all memory that it takes.
  virtual size_t size_bytes() const { return bytes_.size(); }

 protected:
  struct FileSum {
    uint32_t bytes = 0;
    uint32_t crc = 0;
  };
  JpegForm(FileSum file, std::vector<std::byte> bytes)
      : file_(file), bytes_(std::move(bytes)) {}
  bool HasFileBytes(size_t bytes) const { return bytes == file_.bytes; }

 private:
  const FileSum file_;
  const std::vector<std::byte> bytes_;
};

// A form that gives libjpeg the MCUs of a file's only scan.
class McuForm : public JpegForm {
 public:
  struct Header {
    ScanLayout layout;
    uint32_t file_bytes = 0;
    uint32_t file_crc = 0;
  };

  // True if the form may be used with a file of `file_bytes` bytes and this
  // layout, as far as a check in constant time can tell.
  virtual bool Fits(const ScanLayout& layout, size_t file_bytes) const;

  // Returns the source of the file's MCUs, which lives in *readers. REQUIRES:
  // Fits; `scan` and `wanted` live as long as it is used.
  virtual McuSource* Begin(const FileScan& scan, const WantedBlocks& wanted,
                           FormReaders* readers) const = 0;

  const Header& header() const { return header_; }

 protected:
  McuForm(Header header, std::vector<std::byte> bytes)
      : JpegForm({header.file_bytes, header.file_crc}, std::move(bytes)),
        header_(header) {}
  std::span<const uint8_t> content() const;

 private:
  const Header header_;
};

// --- For McuForms ----------------------------------------------------------

// Returns the header and `parts`, with the sum.
std::vector<std::byte> SealForm(
    JpegFormKind kind, const McuForm::Header& header,
    std::initializer_list<std::span<const uint8_t>> parts);

template <class Number>
inline Number LoadLittle(const uint8_t* from) {
  Number number = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&number, from, sizeof number);
  } else {
    for (size_t i = sizeof number; i-- > 0;)
      number = static_cast<Number>(number << 8 | from[i]);
  }
  return number;
}
template <class Number>
inline void StoreLittle(Number number, uint8_t* to) {
  for (size_t i = 0; i < sizeof number; ++i)
    to[i] = static_cast<uint8_t>(number >> (8 * i));
}

}  // namespace leat::worker
