// SPDX-License-Identifier: Apache-2.0
//
// JpegForm: what a worker keeps of a JPEG file that it has decoded once, so
// that it decodes it faster, to the same bits.
//
//   SeekIndex      where every 16th MCU begins in the file: 1.6 % of the bytes
//                  of a photo, and what is outside a window is not decoded
//   Coefficients   the coefficients themselves, in bytes that decode faster
//                  than Huffman codes: 1.9 times the bytes of a photo; it
//                  stands in the file's place
//   Pixels         the decoded image: 5.4 times the bytes of a photo, and a
//                  decode is a copy
//
// A form is made of a sound file only; a seek index and coefficients, which
// give libjpeg its MCUs, of the kinds that CheckHasForms takes; and
// coefficients of progressive files as well (stored_scans.h). All others are
// decoded as if there were no forms, which is why damage has one meaning
// (docs/decisions/0025).
//
// McuForms are bytes: they go to disks and to other workers, and what comes
// back is not trusted. Parse checks the sum, the version and all offsets;
// whatever gets past it may decode to other pixels, or not at all, but never
// reads or writes outside its buffers. Pixels stay in the process whose
// library decoded them.
//
// The layout of McuForms, numbers in little-endian order:
//    0  "LeJF", u32 CRC-32C of all that follows, u16 version, u8 kind
//   11  u8 components, u8 blocks of an MCU, 10 × u8 component of each block
//   23  u8 0, u16 width, u16 height, u32 columns and u32 rows of MCUs
//   36  u32 offset of the scan, u32 bytes of the file, u32 CRC-32C of the file
//   48  what the kind has
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

// Immutable: shared by threads.
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
  // Whether it was made of these bytes. It reads them all: ask when a form and
  // a file are brought together, not at each decoding.
  virtual bool IsOf(std::span<const std::byte> file) const;

  // An McuForm's are for a disk or another worker.
  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size_bytes() const { return bytes_.size(); }

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

  // Whether it may be used with a file of so many bytes and this layout, as
  // far as that can be seen in no time.
  virtual bool Fits(const ScanLayout& layout, size_t file_bytes) const;

  // What gives the file's MCUs; it lives in *readers. REQUIRES: Fits; `scan`
  // and `wanted` live as long as it is used.
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

// --- For McuForms
// --------------------------------------------------------------

// The header and `parts`, with the sum.
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
