// SPDX-License-Identifier: Apache-2.0
//
// A RowsResponse on the wire has its header's fields, then tag 0x7A (field 15,
// length-delimited), the payload's length as a varint, and the payload.
// Decoding reads the header from the front, which is nearly always in the first
// slice, and reads the payload only if there is a checksum to compare.
//
// A checksum is a field of five bytes: it is the header's last one, so that its
// position is known without parsing.
#include "rpc/call/raw_frame.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/crc32c.h"
#include "core/status.h"
#include "google/protobuf/io/coded_stream.h"

namespace leat::rpc {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kDataTag = (v1::RowsResponse::kDataFieldNumber << 3) | 2;
constexpr size_t kMaxHeaderBytes = 256 << 10;
constexpr uint8_t kResponseCrcTag =
    (v1::RowsResponse::kCrc32CFieldNumber << 3) | 5;
constexpr uint8_t kRequestCrcTag =
    (v1::RowsRequest::kCrc32CFieldNumber << 3) | 5;
constexpr size_t kCrcBytes = 5;  // of the field: its tag and a fixed32

// Returns the first `wanted` bytes of the slices, or all if there are fewer,
// contiguous. Copies only if the first slice is too small.
std::string_view Front(const std::vector<grpc::Slice>& slices, size_t wanted,
                       std::string* storage) {
  if (slices.empty()) return {};
  const auto* first = reinterpret_cast<const char*>(slices[0].begin());
  if (slices.size() == 1 || slices[0].size() >= wanted)
    return {first, std::min(wanted, slices[0].size())};
  for (const grpc::Slice& slice : slices) {
    storage->append(reinterpret_cast<const char*>(slice.begin()),
                    std::min(slice.size(), wanted - storage->size()));
    if (storage->size() == wanted) break;
  }
  return *storage;
}

uint8_t* WriteCrc(uint8_t tag, uint32_t crc, uint8_t* to) {
  *to++ = tag;
  return CodedOutputStream::WriteLittleEndian32ToArray(crc, to);
}

// Returns the sum of all bytes except those of the field at `skip`.
uint32_t CrcWithout(const std::vector<grpc::Slice>& slices, size_t skip) {
  uint32_t crc = 0;
  size_t at = 0;  // position of the slice in the message
  for (const grpc::Slice& slice : slices) {
    const auto bytes = std::as_bytes(std::span(slice.begin(), slice.size()));
    const auto cut = [&](size_t offset) {
      return std::clamp(offset, at, at + bytes.size()) - at;
    };
    crc = ExtendCrc32c(crc, bytes.first(cut(skip)));
    crc = ExtendCrc32c(crc, bytes.subspan(cut(skip + kCrcBytes)));
    at += bytes.size();
  }
  return crc;
}

// Compares a message's checksum, whose field must end at `end`.
absl::Status CheckCrc(std::string_view what,
                      const std::vector<grpc::Slice>& slices,
                      std::string_view front, size_t end, uint8_t tag,
                      uint32_t crc) {
  const size_t at = end - kCrcBytes;
  uint8_t field[kCrcBytes];
  WriteCrc(tag, crc, field);
  if (end < kCrcBytes || end > front.size() ||
      std::memcmp(front.data() + at, field, kCrcBytes) != 0)
    return InvalidArgument("{}: crc32c is not where it has to be", what);
  const uint32_t is = CrcWithout(slices, at);
  if (is == crc) return absl::OkStatus();
  return DataLoss(
      "{} was changed on its way: its bytes sum to {:08x}, and {:08x} was sent",
      what, is, crc);
}

struct Layout {
  size_t header_bytes = 0;  // of the fields before `data`
  size_t data_offset = 0;
  uint32_t data_bytes = 0;
};

// Visits the fields up to `data`. Returns false if the message is malformed, or
// truncated inside a field.
bool FindData(std::string_view bytes, Layout* layout) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  while (true) {
    layout->header_bytes = static_cast<size_t>(in.CurrentPosition());
    const uint32_t tag = in.ReadTag();
    if (tag == 0) {
      layout->data_offset = layout->header_bytes;
      return in.ConsumedEntireMessage();
    }
    if (tag == kDataTag) {
      if (!in.ReadVarint32(&layout->data_bytes)) return false;
      layout->data_offset = static_cast<size_t>(in.CurrentPosition());
      return true;
    }
    uint64_t number = 0;
    uint32_t length = 0;
    switch (tag & 7) {
      case 0:
        if (!in.ReadVarint64(&number)) return false;
        break;
      case 1:
        if (!in.Skip(8)) return false;
        break;
      case 2:
        if (!in.ReadVarint32(&length) ||
            !in.Skip(static_cast<int>(length & 0x7FFFFFFF)))
          return false;
        break;
      case 5:
        if (!in.Skip(4)) return false;
        break;
      default:
        return false;
    }
  }
}

void ReleaseOwner(void* owner) {
  delete static_cast<std::shared_ptr<const void>*>(owner);
}

// The bytes of a message without data, and the owner that they keep alive.
struct OwnedHeader {
  std::string bytes;
  std::shared_ptr<const void> owner;
};

// Returns the message's bytes, contiguous: in *slices or *storage.
absl::StatusOr<std::string_view> ParseMessage(
    const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message,
    std::vector<grpc::Slice>* slices, std::string* storage) {
  if (const grpc::Status dumped = buffer.Dump(slices); !dumped.ok())
    return InvalidArgument("{}: {}", message->GetTypeName(),
                           dumped.error_message());
  const std::string_view bytes = Front(*slices, buffer.Length(), storage);
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("{}: {} bytes that are not such a message",
                           message->GetTypeName(), bytes.size());
  return bytes;
}

void ReleaseHeader(void* header) { delete static_cast<OwnedHeader*>(header); }

// Appends the checksum of `bytes`.
void AppendCrc(uint8_t tag, std::string* bytes) {
  uint8_t field[kCrcBytes];
  WriteCrc(tag, Crc32c(*bytes), field);
  bytes->append(reinterpret_cast<const char*>(field), kCrcBytes);
}

grpc::ByteBuffer EncodeHeader(const v1::RowsResponse& header,
                              std::shared_ptr<const void> owner,
                              bool checksum) {
  auto* const owned =
      new OwnedHeader{header.SerializeAsString(), std::move(owner)};
  if (checksum) AppendCrc(kResponseCrcTag, &owned->bytes);
  const grpc::Slice slice(owned->bytes.data(), owned->bytes.size(),
                          &ReleaseHeader, owned);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

grpc::ByteBuffer EncodeRows(const v1::RowsResponse& header,
                            std::span<const std::byte> data,
                            std::shared_ptr<const void> owner, bool checksum) {
  if (data.empty()) return EncodeHeader(header, std::move(owner), checksum);
  const size_t header_bytes = header.ByteSizeLong();
  uint8_t tail[10];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kDataTag, tail);
  end = CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(data.size()), end);
  const auto tail_bytes = static_cast<size_t>(end - tail);
  grpc_slice front =
      grpc_slice_malloc(header_bytes + (checksum ? kCrcBytes : 0) + tail_bytes);
  uint8_t* const begin = GRPC_SLICE_START_PTR(front);
  uint8_t* to = header.SerializeWithCachedSizesToArray(begin);
  if (checksum) {
    uint32_t crc = Crc32c(std::as_bytes(std::span(begin, header_bytes)));
    crc = ExtendCrc32c(crc, std::as_bytes(std::span(tail, tail_bytes)));
    to = WriteCrc(kResponseCrcTag, ExtendCrc32c(crc, data), to);
  }
  std::memcpy(to, tail, tail_bytes);
  const grpc::Slice slices[] = {
      grpc::Slice(front, grpc::Slice::STEAL_REF),
      grpc::Slice(const_cast<std::byte*>(data.data()), data.size(),
                  &ReleaseOwner,
                  new std::shared_ptr<const void>(std::move(owner)))};
  return grpc::ByteBuffer(slices, 2);
}

absl::StatusOr<RowsFrame> DecodeRows(const grpc::ByteBuffer& buffer) {
  RowsFrame frame;
  if (const grpc::Status dumped = buffer.Dump(&frame.slices); !dumped.ok())
    return InvalidArgument("RowsResponse: {}", dumped.error_message());
  const size_t total = buffer.Length();
  const size_t wanted = std::min(total, kMaxHeaderBytes + 16);
  // Headers are small: the first slice is enough if it has the whole header.
  std::string storage;
  std::string_view front =
      Front(frame.slices, std::min<size_t>(wanted, 4096), &storage);
  Layout layout;
  if (!FindData(front, &layout) ||
      (layout.data_offset == front.size() && front.size() < total)) {
    layout = Layout();
    storage.clear();
    front = Front(frame.slices, wanted, &storage);
    if (!FindData(front, &layout))
      return InvalidArgument(
          "RowsResponse of {} bytes: malformed, or its header is over {} bytes",
          total, kMaxHeaderBytes);
  }
  if (layout.header_bytes > kMaxHeaderBytes)
    return InvalidArgument(
        "RowsResponse: a header of {} bytes, the limit is {}",
        layout.header_bytes, kMaxHeaderBytes);
  if (layout.data_offset + layout.data_bytes != total)
    return InvalidArgument(
        "RowsResponse of {} bytes: data of {} bytes at {} is not its last "
        "field",
        total, layout.data_bytes, layout.data_offset);
  if (!frame.header.ParseFromArray(front.data(),
                                   static_cast<int>(layout.header_bytes)))
    return InvalidArgument("RowsResponse: malformed header of {} bytes",
                           layout.header_bytes);
  if (frame.header.has_crc32c())
    RETURN_IF_ERROR(CheckCrc("RowsResponse", frame.slices, front,
                             layout.header_bytes, kResponseCrcTag,
                             frame.header.crc32c()));
  frame.data_bytes = layout.data_bytes;
  frame.skip_ = layout.data_offset;
  return frame;
}

void RowsFrame::ForEach(
    const std::function<void(size_t, std::span<const std::byte>)>& piece)
    const {
  size_t skip = skip_;
  size_t offset = 0;
  for (const grpc::Slice& slice : slices) {
    if (skip >= slice.size()) {
      skip -= slice.size();
      continue;
    }
    const std::span<const std::byte> bytes(
        reinterpret_cast<const std::byte*>(slice.begin()) + skip,
        slice.size() - skip);
    piece(offset, bytes);
    offset += bytes.size();
    skip = 0;
  }
}

void RowsFrame::CopyTo(std::span<std::byte> destination) const {
  ForEach([&](size_t offset, std::span<const std::byte> bytes) {
    std::memcpy(destination.data() + offset, bytes.data(), bytes.size());
  });
}

grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  grpc_slice bytes = grpc_slice_malloc(size);
  message.SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(bytes));
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer EncodeChecked(const v1::RowsRequest& request) {
  const size_t size = request.ByteSizeLong();
  grpc_slice bytes = grpc_slice_malloc(size + kCrcBytes);
  uint8_t* const begin = GRPC_SLICE_START_PTR(bytes);
  uint8_t* const end = request.SerializeWithCachedSizesToArray(begin);
  WriteCrc(kRequestCrcTag, Crc32c(std::as_bytes(std::span(begin, size))), end);
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status DecodeRequest(const grpc::ByteBuffer& buffer,
                           v1::RowsRequest* request) {
  std::vector<grpc::Slice> slices;
  std::string storage;
  ASSIGN_OR_RETURN(const std::string_view bytes,
                   ParseMessage(buffer, request, &slices, &storage));
  if (!request->has_crc32c()) return absl::OkStatus();
  return CheckCrc("RowsRequest", slices, bytes, bytes.size(), kRequestCrcTag,
                  request->crc32c());
}

absl::Status DecodeMessage(const grpc::ByteBuffer& buffer,
                           google::protobuf::MessageLite* message) {
  std::vector<grpc::Slice> slices;
  std::string storage;
  return ParseMessage(buffer, message, &slices, &storage).status();
}

}  // namespace leat::rpc
