// SPDX-License-Identifier: Apache-2.0
//
// The raw stream codec encodes leat.v1.RowsResponse with its `data` borrowed
// instead of copied.
//
// On the wire it is an ordinary message (any generated client can parse it).
// Encoding puts the header in one small slice and the payload in a second one
// that points at the caller's memory; decoding returns the header and the
// payload's pieces where gRPC received them.
//
// A message may carry a checksum (`crc32c`) over all its bytes except the
// checksum's own field. Decoding compares it before the message is used; a
// mismatch is kDataLoss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "leat/v1/worker.pb.h"

namespace leat::rpc {

// Maximum size of the payload in one message, in bytes.
inline constexpr size_t kMaxChunkBytes = 2 << 20;

// `header.data` and `header.crc32c` must be empty. `owner` is released on any
// thread when gRPC no longer needs `data` or, if `data` is empty, has sent the
// message: its destructor must neither block nor call gRPC.
grpc::ByteBuffer EncodeRows(const v1::RowsResponse& header,
                            std::span<const std::byte> data,
                            std::shared_ptr<const void> owner,
                            bool checksum = false);

// A received message.
struct RowsFrame {
  v1::RowsResponse header;          // without `data`
  std::vector<grpc::Slice> slices;  // own the memory
  size_t data_bytes = 0;

  // Copies the payload to `destination`, in order. This is the only copy.
  // REQUIRES: destination.size() == data_bytes.
  void CopyTo(std::span<std::byte> destination) const;
  // Calls `piece(offset, bytes)` for each contiguous part of the payload.
  void ForEach(
      const std::function<void(size_t offset,
                               std::span<const std::byte> bytes)>& piece) const;

 private:
  friend absl::StatusOr<RowsFrame> DecodeRows(const grpc::ByteBuffer& buffer);
  size_t skip_ = 0;  // bytes of the header before the payload
};

// kInvalidArgument: not a RowsResponse, or its header is over 256 KiB, or
// `data` is not its last field, or `crc32c` not the one before. kDataLoss: the
// checksum does not match.
absl::StatusOr<RowsFrame> DecodeRows(const grpc::ByteBuffer& buffer);

// Encodes a request, followed by its checksum.
grpc::ByteBuffer EncodeChecked(const v1::RowsRequest& request);
// kInvalidArgument: not a RowsRequest, or `crc32c` is not its last field.
// kDataLoss: as DecodeRows.
absl::Status DecodeRequest(const grpc::ByteBuffer& buffer,
                           v1::RowsRequest* request);

// Encode and decode ordinary messages for a raw method.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message);
absl::Status DecodeMessage(const grpc::ByteBuffer& buffer,
                           google::protobuf::MessageLite* message);

}  // namespace leat::rpc
