// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/form.h"

#include <algorithm>
#include <cstring>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {
namespace {

constexpr char kFormMagic[4] = {'L', 'e', 'J', 'F'};
constexpr size_t kHeaderBytes = 48;
constexpr size_t kSumAt = 4, kSummedFrom = 8;

absl::Status CheckSum(std::span<const std::byte> bytes, const uint8_t* from) {
  if (bytes.size() < kHeaderBytes ||
      std::memcmp(from, kFormMagic, sizeof kFormMagic) != 0)
    return InvalidArgument("{} bytes that are no form of a JPEG", bytes.size());
  const auto version = LoadLittle<uint16_t>(from + kSummedFrom);
  if (version != JpegForm::kVersion)
    return InvalidArgument("form of a JPEG has version {}, want {}", version,
                           JpegForm::kVersion);
  const auto sum = LoadLittle<uint32_t>(from + kSumAt);
  const uint32_t is = Crc32c(bytes.subspan(kSummedFrom));
  if (sum != is)
    return DataLoss("form of a JPEG has the CRC-32C {:08x}, want {:08x}", is,
                    sum);
  return absl::OkStatus();
}

McuForm::Header ReadFormHeader(const uint8_t* from) {
  McuForm::Header header;
  ScanLayout& layout = header.layout;
  layout.components = from[11];
  layout.blocks = from[12];
  std::copy_n(from + 13, kMaxMcuBlocks, layout.component_of.begin());
  layout.width = LoadLittle<uint16_t>(from + 24);
  layout.height = LoadLittle<uint16_t>(from + 26);
  layout.columns = LoadLittle<uint32_t>(from + 28);
  layout.rows = LoadLittle<uint32_t>(from + 32);
  layout.scan_begin = LoadLittle<uint32_t>(from + 36);
  header.file_bytes = LoadLittle<uint32_t>(from + 40);
  header.file_crc = LoadLittle<uint32_t>(from + 44);
  return header;
}

absl::Status CheckLayout(const McuForm::Header& header) {
  const ScanLayout& layout = header.layout;
  constexpr uint32_t kMostMcus = 65536 / DCTSIZE;
  bool sound =
      layout.components >= 1 && layout.components <= kMaxJpegComponents &&
      layout.blocks >= 1 && layout.blocks <= kMaxMcuBlocks &&
      layout.columns >= 1 && layout.columns <= kMostMcus && layout.rows >= 1 &&
      layout.rows <= kMostMcus && layout.scan_begin < header.file_bytes;
  for (const uint8_t component : layout.component_of)
    sound = sound && component < layout.components;
  if (!sound)
    return DataLoss(
        "form of a JPEG has {} components, {} × {} MCUs of {} blocks, and its "
        "scan at {} of {} bytes: there is no such file",
        layout.components, layout.columns, layout.rows, layout.blocks,
        layout.scan_begin, header.file_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const JpegForm>> JpegForm::Parse(
    std::vector<std::byte> bytes) {
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  RETURN_IF_ERROR(CheckSum(bytes, from));
  const McuForm::Header header = ReadFormHeader(from);
  RETURN_IF_ERROR(CheckLayout(header));
  switch (const auto kind = static_cast<JpegFormKind>(from[10])) {
    case JpegFormKind::kSeekIndex:
      return SeekIndex::Of(header, std::move(bytes));
    case JpegFormKind::kCoefficients:
      return Coefficients::Of(header, std::move(bytes));
    default:
      return InvalidArgument("form of a JPEG has kind {}, want 1 or 2",
                             static_cast<int>(kind));
  }
}

bool JpegForm::IsOf(std::span<const std::byte> file) const {
  return HasFileBytes(file.size()) && Crc32c(file) == file_.crc;
}

std::span<const uint8_t> McuForm::content() const {
  return std::span(reinterpret_cast<const uint8_t*>(bytes().data()),
                   bytes().size())
      .subspan(kHeaderBytes);
}

bool McuForm::Fits(const ScanLayout& layout, size_t file_bytes) const {
  return HasFileBytes(file_bytes) && layout == header_.layout;
}

std::vector<std::byte> SealForm(
    JpegFormKind kind, const McuForm::Header& header,
    std::initializer_list<std::span<const uint8_t>> parts) {
  size_t size = kHeaderBytes;
  for (const auto& part : parts) size += part.size();
  std::vector<std::byte> bytes(size);
  auto* const to = reinterpret_cast<uint8_t*>(bytes.data());
  std::memcpy(to, kFormMagic, sizeof kFormMagic);
  StoreLittle(JpegForm::kVersion, to + kSummedFrom);
  to[10] = static_cast<uint8_t>(kind);
  const ScanLayout& layout = header.layout;
  to[11] = layout.components;
  to[12] = layout.blocks;
  std::copy(layout.component_of.begin(), layout.component_of.end(), to + 13);
  StoreLittle(layout.width, to + 24);
  StoreLittle(layout.height, to + 26);
  StoreLittle(layout.columns, to + 28);
  StoreLittle(layout.rows, to + 32);
  StoreLittle(layout.scan_begin, to + 36);
  StoreLittle(header.file_bytes, to + 40);
  StoreLittle(header.file_crc, to + 44);
  uint8_t* next = to + kHeaderBytes;
  for (const auto& part : parts)
    next = std::copy(part.begin(), part.end(), next);
  StoreLittle(Crc32c(std::span(bytes).subspan(kSummedFrom)), to + kSumAt);
  return bytes;
}

}  // namespace leat::worker
