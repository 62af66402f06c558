// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arrays/idx_file.h"

#include <algorithm>
#include <array>

#include "core/status.h"
#include "worker/source/packed/gzip_reader.h"

namespace leat::worker {
namespace {

constexpr uint8_t kUbyte = 0x08, kInt = 0x0c, kFloat = 0x0d;
constexpr size_t kPiece = 4 << 20;  // between checks of `cancelled`

std::string_view TypeName(uint8_t type) {
  switch (type) {
    case 0x09:
      return "signed bytes";
    case 0x0b:
      return "16-bit integers";
    case 0x0e:
      return "float64";
    default:
      return "an unknown type";
  }
}

uint32_t BigEndian(std::span<const std::byte> bytes) {
  uint32_t value = 0;
  for (const std::byte byte : bytes.first(4))
    value = value << 8 | static_cast<uint32_t>(byte);
  return value;
}

absl::Status WantLength(const IdxHeader& header, uint64_t length,
                        std::string_view name) {
  const uint64_t want = header.header_bytes() + header.payload_bytes();
  if (length == want) return absl::OkStatus();
  return DataLoss("{}: {} bytes, want {} for {} records of {} bytes", name,
                  length, want, header.records(), header.record_bytes());
}

absl::Status WantUnpacked(const IdxHeader& header, std::string_view name,
                          const SourceLimits& limits) {
  if (header.payload_bytes() <= limits.max_unpacked_bytes)
    return absl::OkStatus();
  return ResourceExhausted(
      "{}: {} bytes when unpacked, the limit is {}: unpack the file", name,
      header.payload_bytes(), limits.max_unpacked_bytes);
}

// Returns the gzipped file's header, and leaves `reader` after it.
absl::StatusOr<IdxHeader> ReadGzipHeader(GzipReader& reader,
                                         std::string_view name) {
  std::array<std::byte, kMaxIdxHead> head = {};
  ASSIGN_OR_RETURN(const size_t four, reader.Read(std::span(head).first(4)));
  const size_t axes =
      std::min<size_t>(static_cast<size_t>(head[3]), kMaxIdxAxes);
  ASSIGN_OR_RETURN(const size_t rest,
                   reader.Read(std::span(head).subspan(4, 4 * axes)));
  return ParseIdxHeader(std::span(head).first(four + rest), name);
}

// Reads all of `into` and checks that nothing follows.
absl::Status ReadGzipPayload(GzipReader& reader, const IdxHeader& header,
                             std::string_view name, const SourceLimits& limits,
                             std::byte* into) {
  std::vector<std::byte> unkept(into == nullptr ? kPiece : 0);
  const uint64_t want = header.payload_bytes();
  for (uint64_t done = 0; done < want;) {
    RETURN_IF_ERROR(CheckCancelled(limits, name));
    const size_t piece = std::min<uint64_t>(kPiece, want - done);
    std::byte* const to = into == nullptr ? unkept.data() : into + done;
    ASSIGN_OR_RETURN(const size_t got, reader.Read({to, piece}));
    done += got;
    if (got < piece)
      return WantLength(header, header.header_bytes() + done, name);
  }
  std::byte more{};
  ASSIGN_OR_RETURN(const size_t got, reader.Read({&more, 1}));
  if (got == 0) return absl::OkStatus();
  return DataLoss("{}: more than {} records of {} bytes", name,
                  header.records(), header.record_bytes());
}

}  // namespace

DType IdxHeader::dtype() const {
  return type == kUbyte ? DType::kUint8
         : type == kInt ? DType::kInt32
                        : DType::kFloat32;
}

uint64_t IdxHeader::record_bytes() const {
  uint64_t bytes = SizeOf(dtype());
  for (size_t i = 1; i < sizes.size(); ++i) bytes *= sizes[i];
  return bytes;
}

ValueType IdxHeader::record_type() const {
  ValueType value{ValueType::Kind::kTensor, dtype(),
                  Shape(sizes.begin() + 1, sizes.end())};
  if (value.shape.size() == 2) value.shape.push_back(1);
  return value;
}

absl::Status CheckIdxHeader(const IdxHeader& header, std::string_view name) {
  if (header.type != kUbyte && header.type != kInt && header.type != kFloat)
    return InvalidArgument(
        "{}: idx of {} (type {:#04x}), want uint8, int32 or float32", name,
        TypeName(header.type), header.type);
  if (header.sizes.empty() || header.sizes.size() > kMaxIdxAxes)
    return InvalidArgument("{}: idx of {} axes, want 1 to {}", name,
                           header.sizes.size(), kMaxIdxAxes);
  uint64_t bytes = SizeOf(header.dtype());
  for (size_t i = 1; i < header.sizes.size(); ++i) {
    bytes *= header.sizes[i];  // both are below 2^32
    if (bytes == 0 || bytes > kMaxRowBytes)
      return DataLoss("{}: records of {} bytes and more, want 1 to {}", name,
                      bytes, kMaxRowBytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<IdxHeader> ParseIdxHeader(std::span<const std::byte> head,
                                         std::string_view name) {
  if (head.size() < 4 || head[0] != std::byte{} || head[1] != std::byte{})
    return DataLoss(
        "{}: not an idx file: want two zero bytes, type and axes first", name);
  const size_t axes = static_cast<size_t>(head[3]);
  if (axes < 1 || axes > kMaxIdxAxes)
    return InvalidArgument("{}: idx of {} axes, want 1 to {}", name, axes,
                           kMaxIdxAxes);
  if (head.size() < 4 + 4 * axes)
    return DataLoss("{}: cut off in the header of {} axes", name, axes);
  IdxHeader header{.type = static_cast<uint8_t>(head[2]), .sizes = {}};
  for (size_t i = 0; i < axes; ++i)
    header.sizes.push_back(BigEndian(head.subspan(4 + 4 * i)));
  RETURN_IF_ERROR(CheckIdxHeader(header, name));
  return header;
}

absl::StatusOr<IdxHeader> InspectIdx(const StorageFile& file,
                                     const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const bool gzip, IsGzip(file));
  if (gzip) {
    GzipReader reader(file);
    ASSIGN_OR_RETURN(IdxHeader header, ReadGzipHeader(reader, file.name()));
    RETURN_IF_ERROR(WantUnpacked(header, file.name(), limits));
    RETURN_IF_ERROR(
        ReadGzipPayload(reader, header, file.name(), limits, nullptr));
    return header;
  }
  std::array<std::byte, kMaxIdxHead> head = {};
  const auto there =
      std::span(head).first(std::min<uint64_t>(file.size(), head.size()));
  RETURN_IF_ERROR(file.ReadAt(0, there));
  ASSIGN_OR_RETURN(IdxHeader header, ParseIdxHeader(there, file.name()));
  RETURN_IF_ERROR(WantLength(header, file.size(), file.name()));
  return header;
}

absl::StatusOr<SampleBytes> LoadIdx(const StorageFile& file,
                                    const IdxHeader& header,
                                    const SourceLimits& limits) {
  RETURN_IF_ERROR(WantUnpacked(header, file.name(), limits));
  ASSIGN_OR_RETURN(const bool gzip, IsGzip(file));
  const uint64_t bytes = header.payload_bytes();
  SampleBytes payload;
  if (gzip) {
    GzipReader reader(file);
    ASSIGN_OR_RETURN(const IdxHeader found,
                     ReadGzipHeader(reader, file.name()));
    if (found != header)
      return DataLoss("{}: its header is not the index's", file.name());
    payload = NewSampleBytes(bytes);
    RETURN_IF_ERROR(
        ReadGzipPayload(reader, header, file.name(), limits, payload.get()));
  } else {
    RETURN_IF_ERROR(WantLength(header, file.size(), file.name()));
    payload = NewSampleBytes(bytes);
    RETURN_IF_ERROR(file.ReadAt(header.header_bytes(), {payload.get(), bytes}));
  }
  SwapElements({payload.get(), bytes}, SizeOf(header.dtype()));
  return payload;
}

void SwapElements(std::span<std::byte> elements, size_t element_bytes) {
  if (element_bytes == 1) return;
  for (size_t i = 0; i + element_bytes <= elements.size(); i += element_bytes)
    std::reverse(elements.begin() + static_cast<ptrdiff_t>(i),
                 elements.begin() + static_cast<ptrdiff_t>(i + element_bytes));
}

}  // namespace leat::worker
