// SPDX-License-Identifier: Apache-2.0
#include "worker/source/tfrecord/framing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "core/crc32c.h"
#include "core/status.h"
#include "worker/source/packed/header_reader.h"

namespace leat::worker {
namespace {

constexpr uint32_t kMaskDelta = 0xa282ead8;
constexpr uint64_t kSpotChecks = 64;  // of headers against an index

template <class T>
T LittleEndianAt(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

absl::Status AtRecord(const absl::Status& status, const StorageFile& file,
                      uint64_t record, uint64_t offset) {
  return Annotate(
      status, fmt::format("{}: record {} at {}", file.name(), record, offset));
}

// Removes "offset size" from the front of `text`. nullopt: it has another text.
std::optional<std::pair<uint64_t, uint64_t>> TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::pair<uint64_t, uint64_t> numbers;
  const char* const stop = line.data() + line.size();
  const auto first = std::from_chars(line.data(), stop, numbers.first);
  if (first.ec != std::errc() || first.ptr == stop || *first.ptr != ' ')
    return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, stop, numbers.second);
  if (second.ec != std::errc() || second.ptr != stop) return std::nullopt;
  return numbers;
}

// Checks the headers of some records, including the first and the last.
absl::Status CheckSome(const StorageFile& file,
                       const std::vector<uint32_t>& sizes) {
  uint64_t offset = 0;
  const uint64_t step = std::max<uint64_t>(1, sizes.size() / kSpotChecks);
  for (uint64_t i = 0; i < sizes.size(); offset += sizes[i], ++i) {
    if (i % step != 0 && i + 1 != sizes.size()) continue;
    std::array<std::byte, kTfrecordHeader> header;
    RETURN_IF_ERROR(file.ReadAt(offset, header));
    const auto size = TfrecordSize(header, file.size() - offset);
    if (size.ok() && *size == sizes[i]) continue;
    return FailedPrecondition(
        "line {} says that a record of {} bytes is at {}, but {}", i + 1,
        sizes[i], offset,
        size.ok() ? fmt::format("it has {}", *size)
                  : std::string(Message(size.status())));
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t MaskedCrc32c(std::span<const std::byte> bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + kMaskDelta;
}

absl::StatusOr<uint32_t> TfrecordSize(
    std::span<const std::byte, kTfrecordHeader> header, uint64_t left) {
  const uint64_t length = LittleEndianAt<uint64_t>(header.data());
  const uint32_t stored = LittleEndianAt<uint32_t>(header.data() + 8);
  if (const uint32_t sum = MaskedCrc32c(header.first(8)); sum != stored)
    return DataLoss(
        "the checksum of its length is {:08x}, stored is {:08x}: corrupt, or "
        "not a TFRecord file{}",
        sum, stored,
        header[0] == std::byte{0x1f} && header[1] == std::byte{0x8b}
            ? " but compressed by gzip: unpack it"
            : "");
  if (left < kTfrecordFraming || length > left - kTfrecordFraming)
    return DataLoss(
        "it has {} bytes of data, but the file has {} from there: it was cut "
        "off",
        length, left);
  if (length > std::numeric_limits<uint32_t>::max() - kTfrecordFraming)
    return Unimplemented("it has {} bytes: want less than 4 GiB", length);
  return static_cast<uint32_t>(length + kTfrecordFraming);
}

absl::StatusOr<std::span<const std::byte>> TfrecordData(
    std::span<const std::byte> record) {
  if (record.size() < kTfrecordFraming)
    return DataLoss("it has {} bytes: want at least {}", record.size(),
                    kTfrecordFraming);
  ASSIGN_OR_RETURN(
      const uint32_t size,
      TfrecordSize(record.first<kTfrecordHeader>(), record.size()));
  if (size != record.size())
    return DataLoss("it has {} bytes, the index says {}", size, record.size());
  const std::span<const std::byte> data =
      record.subspan(kTfrecordHeader, size - kTfrecordFraming);
  const uint32_t stored =
      LittleEndianAt<uint32_t>(record.data() + size - sizeof(uint32_t));
  if (const uint32_t sum = MaskedCrc32c(data); sum != stored)
    return DataLoss("the checksum of its {} bytes is {:08x}, stored is {:08x}",
                    data.size(), sum, stored);
  return data;
}

absl::StatusOr<std::vector<uint32_t>> WalkTfrecord(
    const StorageFile& file, uint64_t max_records,
    const std::atomic<bool>* cancelled) {
  HeaderReader window(file);
  std::vector<uint32_t> sizes;
  for (uint64_t offset = 0; offset < file.size();) {
    if (cancelled != nullptr && *cancelled)
      return Cancelled("{}: the listing was cancelled", file.name());
    const uint64_t left = file.size() - offset;
    if (left < kTfrecordFraming)
      return AtRecord(
          DataLoss("the file has {} bytes from there, want at least {}: it was "
                   "cut off, or is no TFRecord file",
                   left, kTfrecordFraming),
          file, sizes.size(), offset);
    if (sizes.size() >= max_records)
      return ResourceExhausted("{}: more than {} records: the limit",
                               file.name(), max_records);
    ASSIGN_OR_RETURN(const auto header, window.At(offset, kTfrecordHeader));
    const absl::StatusOr<uint32_t> size =
        TfrecordSize(header.first<kTfrecordHeader>(), left);
    if (!size.ok()) return AtRecord(size.status(), file, sizes.size(), offset);
    sizes.push_back(*size);
    offset += *size;
  }
  return sizes;
}

absl::StatusOr<std::vector<uint32_t>> SizesFromDaliIndex(
    std::string_view text, const StorageFile& file, uint64_t max_records) {
  std::vector<uint32_t> sizes;
  uint64_t offset = 0;
  while (!text.empty()) {
    const uint64_t line = sizes.size() + 1;
    const auto numbers = TakeLine(&text);
    if (!numbers)
      return InvalidArgument(
          "line {} is not an offset and a size, as tfrecord2idx writes them",
          line);
    const auto [at, size] = *numbers;
    if (sizes.size() >= max_records)
      return ResourceExhausted("more than {} records: the limit", max_records);
    if (at != offset || size < kTfrecordFraming || size > file.size() - offset)
      return FailedPrecondition(
          "line {} has a record of {} bytes at {}: want one at {} within the "
          "{} bytes of {}",
          line, size, at, offset, file.size(), file.name());
    if (size > std::numeric_limits<uint32_t>::max())
      return Unimplemented("line {}: {} bytes: want less than 4 GiB", line,
                           size);
    sizes.push_back(static_cast<uint32_t>(size));
    offset += size;
  }
  if (offset != file.size())
    return FailedPrecondition("its records end at {}, but {} has {} bytes",
                              offset, file.name(), file.size());
  RETURN_IF_ERROR(CheckSome(file, sizes));
  return sizes;
}

}  // namespace leat::worker
