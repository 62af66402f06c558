// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <string>
#include <string_view>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

// The examples of FIPS 180-4 that NIST publishes.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(ToHex(HashOf("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(HashOf("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      ToHex(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, DoesNotSeeWhereUpdatesWereCut) {
  Sha256 hash;
  hash.Update("a").Update("").Update(
      std::as_bytes(std::span(std::string_view("bc"))));
  EXPECT_EQ(hash.Finish(), HashOf("abc"));
  std::string text;
  for (size_t i = 0; i < 10'000; ++i) text += static_cast<char>(i * i / 7);
  for (const size_t piece : {1, 8, 1000, 1024, 1025, 3000}) {
    Sha256 pieces;
    for (size_t at = 0; at < text.size(); at += piece)
      pieces.Update(std::string_view(text).substr(at, piece));
    EXPECT_EQ(pieces.Finish(), HashOf(text)) << piece;
  }
}

TEST(Sha256, SeesWhereFieldsWereCut) {
  const auto hash_of = [](std::string_view a, std::string_view b) {
    return Sha256().UpdateField(a).UpdateField(b).Finish();
  };
  EXPECT_NE(hash_of("ab", "c"), hash_of("a", "bc"));
  EXPECT_NE(hash_of("abc", ""), hash_of("", "abc"));
}

TEST(Sha256, TakesNumbersLittleEndian) {
  EXPECT_EQ(Sha256().UpdateU64(0x0807060504030201).Finish(),
            HashOf("\x01\x02\x03\x04\x05\x06\x07\x08"));
  EXPECT_EQ(Sha256().UpdateField("hi").Finish(),
            HashOf(std::string_view("\x02\0\0\0\0\0\0\0hi", 10)));
}

TEST(Digest, IsMadeOfItsOwnBytesAlone) {
  const Digest digest = HashOf("abc");
  EXPECT_EQ(AsText(digest), BytesOf(digest));
  const auto again = DigestOf("plan_hash", BytesOf(digest));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, digest);
  const absl::Status status = DigestOf("plan_hash", "abc").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "plan_hash: 3 bytes, want 32");
  EXPECT_EQ(DigestOf("x", "", absl::StatusCode::kDataLoss).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(Hex, IsLowerCase) {
  const uint8_t bytes[] = {0x00, 0x9F, 0xA0, 0xFF};
  EXPECT_EQ(ToHex(bytes), "009fa0ff");
  EXPECT_EQ(ToHex({}), "");
}

TEST(Hex, ForPeopleIsTheFirst12Digits) {
  EXPECT_EQ(ShortHex(HashOf("abc")), "ba7816bf8f01");
}

}  // namespace
}  // namespace leat
