// SPDX-License-Identifier: Apache-2.0
#include "worker/image/codecs/webp_structure.h"

#include "gtest/gtest.h"
#include "tests/support/image_maker.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/codecs/codec.h"

namespace leat::worker {
namespace {

using testing::MakePicture;
using testing::MakeWebp;

constexpr uint64_t kGroup = 2954 * 4 + 600;  // without a cache of colours

// Bits, the lowest of a byte first.
class BitWriter {
 public:
  BitWriter& Put(uint32_t value, int count) {
    for (int i = 0; i < count; ++i, ++at_) {
      if (at_ % 8 == 0) bytes_.push_back('\0');
      bytes_.back() |= static_cast<char>((value >> i & 1) << at_ % 8);
    }
    return *this;
  }
  // A code of one symbol, 0.
  BitWriter& PutZero() { return Put(1, 4); }
  // A code in which each of 256 symbols has 8 bits; others have none.
  BitWriter& PutEven(uint32_t others) {
    Put(0, 1).Put(8, 4);
    constexpr uint32_t kLengths[] = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    for (const uint32_t length : kLengths) Put(length, 3);
    Put(0, 1).Put(0, 256);
    if (others > 0) Put(1, 1).Put(others - 11, 7);
    return *this;
  }
  BitWriter& PutByte(uint32_t symbol) {
    for (int i = 7; i >= 0; --i) Put(symbol >> i & 1, 1);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

std::string Number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

std::string WebpOf(const std::string& stream) {
  const std::string padded = stream + std::string(stream.size() % 2, '\0');
  return "RIFF" + Number(padded.size() + 12, 4) + "WEBPVP8L" +
         Number(stream.size(), 4) + padded;
}

// A black image whose blocks of 4 × 4 pixels use these groups of codes.
std::string WithGroups(uint32_t side, const std::vector<uint32_t>& groups,
                       uint32_t cache_bits = 0) {
  BitWriter bits;
  bits.Put(0x2f, 8).Put(side - 1, 14).Put(side - 1, 14).Put(0, 4);
  bits.Put(0, 1);  // no transforms
  bits.Put(cache_bits > 0 ? 1 : 0, 1);
  if (cache_bits > 0) bits.Put(cache_bits, 4);
  bits.Put(1, 1).Put(0, 3).Put(0, 1);
  bits.PutEven(24).PutEven(0).PutZero().PutZero().PutZero();
  for (const uint32_t group : groups)
    bits.PutByte(group & 255).PutByte(group >> 8);
  const uint32_t last = *std::ranges::max_element(groups);
  for (uint32_t i = 0; i < 5 * (last + 1); ++i) bits.PutZero();
  return WebpOf(bits.bytes());
}

absl::StatusOr<uint64_t> WorkingBytes(const std::string& file) {
  ASSIGN_OR_RETURN(const ImageHeader header,
                   kWebp.read_header(AsSpan(file), {}));
  std::vector<uint8_t> pixels(header.bytes());
  RETURN_IF_ERROR(kWebp.decode(AsSpan(file), header, {}, pixels.data()));
  return header.working_bytes;
}

TEST(WebpStructure, GroupsOfCodesAreCounted) {
  const uint64_t pixels = 5 * 16 * 16;
  std::vector<uint32_t> groups(16);
  EXPECT_EQ(*WorkingBytes(WithGroups(16, groups)), pixels + kGroup);
  groups[3] = 7;  // libwebp keeps a few that are not used
  EXPECT_EQ(*WorkingBytes(WithGroups(16, groups)), pixels + 8 * kGroup);
  groups[4] = 5'000;
  EXPECT_EQ(*WorkingBytes(WithGroups(16, groups)), pixels + 3 * kGroup);
  EXPECT_EQ(*WorkingBytes(WithGroups(16, groups, 11)),
            pixels + 3 * ((2300 + 2704) * 4 + 600));
}

// A small file for which libwebp takes as much as for 100 megapixels.
TEST(WebpStructure, MemoryOfMostGroupsCounts) {
  std::vector<uint32_t> groups(256 * 256);
  for (uint32_t i = 0; i < groups.size(); ++i) groups[i] = i;
  const std::string file = WithGroups(1024, groups, 11);
  EXPECT_LT(file.size(), 300'000u);
  const auto header = kWebp.read_header(AsSpan(file), {});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_GT(header->working_bytes, uint64_t{1'300'000'000});
}

// A file of an encoder is read up to the tables, whatever comes before them.
TEST(WebpStructure, FilesOfAnEncoderHaveTables) {
  for (const int channels : {3, 4})
    for (const int side : {1, 7, 60, 300})
      for (const int bits : {1, 2, 4, 8})
        for (const bool lossless : {true, false}) {
          const std::string file =
              MakeWebp(MakePicture(side, side + 3, channels, bits),
                       {.lossless = lossless});
          const uint64_t bytes = WebpTableBytes(AsSpan(file), {side + 3, side});
          // Alpha of a few pixels, or of noise, is stored unpacked.
          if (lossless || (channels == 4 && side > 10 && bits < 8))
            EXPECT_GE(bytes, kGroup) << side << " " << bits;
          else if (channels == 3)
            EXPECT_EQ(bytes, 0u);
        }
}

TEST(WebpStructure, OfADamagedFileEndsWithinIt) {
  std::vector<uint32_t> groups(16);
  groups[3] = 7;
  for (const std::string& whole :
       {WithGroups(16, groups), MakeWebp(MakePicture(33, 20, 4)),
        MakeWebp(MakePicture(33, 20, 4), {.lossless = false})}) {
    for (size_t size = 0; size < whole.size(); ++size)
      (void)WebpTableBytes(AsSpan(whole.substr(0, size)), {16, 16});
    for (size_t at = 12; at < whole.size(); ++at)
      for (const int bit : {0, 3, 7}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
        (void)WebpTableBytes(AsSpan(damaged), {16, 16});
      }
  }
}

}  // namespace
}  // namespace leat::worker
