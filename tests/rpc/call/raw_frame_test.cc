// SPDX-License-Identifier: Apache-2.0
#include "rpc/call/raw_frame.h"

#include <random>
#include <string>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

grpc::ByteBuffer BufferOf(const std::string& bytes, size_t piece = 1 << 20) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += piece)
    slices.emplace_back(bytes.substr(i, piece));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

std::span<const std::byte> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

v1::RowsResponse Header(int rows) {
  v1::RowsResponse header;
  header.set_request_id(7);
  header.set_group_id(9);
  header.set_payload_bytes(1 << 20);
  for (int i = 0; i < rows; ++i) header.add_rows(static_cast<uint32_t>(i * 3));
  return header;
}

std::string Payload(size_t bytes) {
  std::string payload(bytes, '\0');
  std::minstd_rand random(1);
  for (char& c : payload) c = static_cast<char>(random());
  return payload;
}

TEST(RawFrame, GeneratedCodeParsesWhatWasEncodedAtEveryVarintBoundary) {
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{16383},
        size_t{16384}, size_t{2097151}, size_t{2097152}}) {
    const std::string payload = Payload(bytes);
    const std::string wire =
        BytesOf(EncodeRows(Header(3), AsBytes(payload), nullptr));
    v1::RowsResponse parsed;
    ASSERT_TRUE(parsed.ParseFromString(wire)) << bytes;
    EXPECT_EQ(parsed.data(), payload);
    EXPECT_EQ(parsed.group_id(), 9u);
  }
}

TEST(RawFrame, DecodesWhatGeneratedCodeWroteInPiecesOfAnySize) {
  for (size_t piece : {1, 7, 64, 4096, 70000}) {
    v1::RowsResponse message = Header(500);
    message.set_data(Payload(100'000));
    absl::StatusOr<RowsFrame> frame =
        DecodeRows(BufferOf(message.SerializeAsString(), piece));
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->header.rows_size(), 500);
    EXPECT_TRUE(frame->header.data().empty());
    ASSERT_EQ(frame->data_bytes, message.data().size());
    std::string copy(frame->data_bytes, '\0');
    frame->CopyTo({reinterpret_cast<std::byte*>(copy.data()), copy.size()});
    EXPECT_EQ(copy, message.data());
  }
}

TEST(RawFrame, PayloadIsBorrowedAndItsOwnerReleasedOnce) {
  auto owner = std::make_shared<const std::string>(Payload(1000));
  std::weak_ptr<const std::string> watch = owner;
  grpc::ByteBuffer buffer = EncodeRows(Header(1), AsBytes(*owner), owner);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_EQ(static_cast<const void*>(slices.back().begin()),
            static_cast<const void*>(owner->data()));
  owner.reset();
  slices.clear();
  EXPECT_FALSE(watch.expired());
  buffer.Clear();
  EXPECT_TRUE(watch.expired());
}

TEST(RawFrame, ErrorsTravelWithoutData) {
  v1::RowsResponse header = Header(2);
  header.mutable_error()->set_code(15);
  header.mutable_error()->set_message("a.jpg: truncated");
  absl::StatusOr<RowsFrame> frame = DecodeRows(EncodeRows(header, {}, nullptr));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->data_bytes, 0u);
  EXPECT_EQ(frame->header.error().message(), "a.jpg: truncated");
}

TEST(RawFrame, DataThatIsNotTheLastFieldIsRefused) {
  v1::RowsResponse message = Header(1);
  message.set_data("abc");
  const std::string wire =
      message.SerializeAsString() + Header(1).SerializeAsString();
  EXPECT_EQ(DecodeRows(BufferOf(wire)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RawFrame, OversizeHeadersAreRefused) {
  v1::RowsResponse message;
  message.mutable_error()->set_message(std::string(300'000, 'x'));
  message.set_data("abc");
  EXPECT_EQ(DecodeRows(BufferOf(message.SerializeAsString())).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RawFrame, GarbageAndTruncationNeverCrash) {
  v1::RowsResponse message = Header(100);
  message.set_data(Payload(5000));
  const std::string wire = message.SerializeAsString();
  for (size_t length = 0; length < wire.size(); length += 13) {
    absl::StatusOr<RowsFrame> frame =
        DecodeRows(BufferOf(wire.substr(0, length), 100));
    EXPECT_TRUE(!frame.ok() || frame->data_bytes == 0) << length;
  }
  std::minstd_rand random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    absl::StatusOr<RowsFrame> frame =
        DecodeRows(BufferOf(bytes, 1 + random() % 50));
    if (!frame.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(frame.status())) << frame.status();
      continue;
    }
    std::string copy(frame->data_bytes, '\0');
    frame->CopyTo({reinterpret_cast<std::byte*>(copy.data()), copy.size()});
    EXPECT_NE(bytes.find(copy), std::string::npos);
  }
}

TEST(RawFrame, AChecksumIsReadByGeneratedCodeAndFitsInPiecesOfAnySize) {
  for (const size_t bytes : {0, 1, 127, 128, 5000, 100'000}) {
    const std::string payload = Payload(bytes);
    const std::string wire =
        BytesOf(EncodeRows(Header(3), AsBytes(payload), nullptr, true));
    v1::RowsResponse parsed;
    ASSERT_TRUE(parsed.ParseFromString(wire)) << bytes;
    EXPECT_TRUE(parsed.has_crc32c());
    EXPECT_EQ(parsed.data(), payload);
    // Generated code writes the same bytes.
    EXPECT_EQ(parsed.SerializeAsString(), wire);
    for (const size_t piece : {1, 7, 4096, 70'000}) {
      absl::StatusOr<RowsFrame> frame = DecodeRows(BufferOf(wire, piece));
      ASSERT_TRUE(frame.ok()) << frame.status();
      EXPECT_EQ(frame->data_bytes, bytes);
    }
  }
}

// Flips each bit of `wire`; `decode` must reject the result. Returns how often
// the checksum was missing, which its caller has to reject.
template <class Decode>
int FlipEachBit(const std::string& wire, const Decode& decode) {
  int unchecked = 0;
  for (size_t bit = 0; bit < wire.size() * 8; ++bit) {
    std::string changed = wire;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const absl::StatusOr<bool> checked = decode(changed);
    if (!checked.ok()) continue;
    EXPECT_FALSE(*checked) << "bit " << bit;
    ++unchecked;
  }
  return unchecked;
}

TEST(RawFrame, EveryFlippedBitOfAnAnswerIsNoticed) {
  const std::string payload = Payload(700);
  const int unchecked = FlipEachBit(
      BytesOf(EncodeRows(Header(9), AsBytes(payload), nullptr, true)),
      [](const std::string& wire) -> absl::StatusOr<bool> {
        const absl::StatusOr<RowsFrame> frame = DecodeRows(BufferOf(wire, 90));
        if (!frame.ok()) return frame.status();
        return frame->header.has_crc32c();
      });
  EXPECT_LE(unchecked, 8);  // the bits of its tag
}

TEST(RawFrame, EveryFlippedBitOfARequestIsNoticed) {
  v1::RowsRequest request;
  request.mutable_request()->set_request_id(9);
  request.mutable_request()->add_rows(3);
  request.mutable_request()->add_samples(77);
  request.mutable_request()->add_supplied()->add_fields()->set_data(
      Payload(300));
  const std::string wire = BytesOf(EncodeChecked(request));
  v1::RowsRequest parsed;
  ASSERT_TRUE(DecodeRequest(BufferOf(wire, 50), &parsed).ok());
  EXPECT_EQ(parsed.request().samples(0), 77u);
  EXPECT_EQ(parsed.SerializeAsString(), wire);
  const int unchecked =
      FlipEachBit(wire, [](const std::string& bytes) -> absl::StatusOr<bool> {
        v1::RowsRequest changed;
        RETURN_IF_ERROR(DecodeRequest(BufferOf(bytes, 50), &changed));
        return changed.has_crc32c();
      });
  EXPECT_LE(unchecked, 8);
}

TEST(RawFrame, AChecksumElsewhereIsRefused) {
  v1::RowsResponse sum;
  sum.set_crc32c(1);
  const std::string wire =
      sum.SerializeAsString() + Header(1).SerializeAsString();
  EXPECT_EQ(DecodeRows(BufferOf(wire)).status().code(),
            absl::StatusCode::kInvalidArgument);
  v1::RowsRequest request;
  request.set_crc32c(1);
  v1::RowsRequest open;
  open.mutable_open();
  v1::RowsRequest parsed;
  EXPECT_EQ(DecodeRequest(BufferOf(request.SerializeAsString() +
                                   open.SerializeAsString()),
                          &parsed)
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RawFrame, MessagesRoundTripOverRawBuffers) {
  v1::RowsRequest request;
  request.mutable_request()->set_epoch(3);
  v1::RowsRequest parsed;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(request), &parsed).ok());
  EXPECT_EQ(parsed.request().epoch(), 3u);
  EXPECT_EQ(DecodeMessage(BufferOf("\xff\xff\xff"), &parsed).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat::rpc
