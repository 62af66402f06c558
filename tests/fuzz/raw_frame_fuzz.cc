// SPDX-License-Identifier: Apache-2.0
//
// A message of the raw stream, in slices of any sizes: its payload is the end
// of the message, complete. The first byte sets the length of slices.
#include <algorithm>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "rpc/call/raw_frame.h"
#include "tests/fuzz/target.h"

namespace leat::rpc::raw_frame_fuzz {
namespace {

grpc::ByteBuffer InSlices(std::string_view bytes, size_t length) {
  std::vector<grpc::Slice> slices;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, length);
    slices.emplace_back(piece.data(), piece.size());
    bytes.remove_prefix(piece.size());
    length = length * 3 + 1;
  }
  return {slices.data(), slices.size()};
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  if (bytes.empty()) return;
  const size_t length = static_cast<uint8_t>(bytes[0]) + size_t{1};
  bytes.remove_prefix(1);
  const grpc::ByteBuffer buffer = InSlices(bytes, length);
  v1::RowsResponse whole;
  (void)DecodeMessage(buffer, &whole);
  v1::RowsRequest request;
  (void)DecodeRequest(buffer, &request);
  const auto frame = DecodeRows(buffer);
  if (!frame.ok()) return;
  fuzz::Require(frame->data_bytes <= bytes.size());
  std::vector<std::byte> data(frame->data_bytes);
  frame->CopyTo(data);
  fuzz::Require(std::string_view(reinterpret_cast<const char*>(data.data()),
                                 data.size()) ==
                bytes.substr(bytes.size() - data.size()));
}

std::vector<std::string> Seeds() {
  v1::RowsResponse header;
  header.set_request_id(7);
  header.add_rows(3);
  header.set_payload_bytes(300);
  std::vector<std::string> seeds;
  for (const size_t bytes : {0, 1, 300}) {
    header.set_data(std::string(bytes, 'd'));
    seeds.push_back("\x05" + header.SerializeAsString());
    header.set_crc32c(7);
    seeds.push_back("\x05" + header.SerializeAsString());
    header.clear_crc32c();
  }
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "raw_frame", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::rpc::raw_frame_fuzz
