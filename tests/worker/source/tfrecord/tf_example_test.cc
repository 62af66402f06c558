// SPDX-License-Identifier: Apache-2.0
#include "worker/source/tfrecord/tf_example.h"

#include <random>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"

namespace leat::worker {
namespace {

using Kind = FeatureValues::Kind;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string BytesText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FeatureValues Parse(const std::string& feature) {
  const auto values = ParseFeature(Bytes(feature));
  EXPECT_TRUE(values.ok()) << values.status();
  return values.value_or(FeatureValues{});
}

std::vector<int64_t> Ints(const std::string& feature) {
  const FeatureValues values = Parse(feature);
  EXPECT_EQ(values.kind, Kind::kInts);
  std::vector<int64_t> ints(values.count);
  CopyInts(values, std::as_writable_bytes(std::span(ints)));
  return ints;
}

std::vector<float> Floats(const std::string& feature) {
  const FeatureValues values = Parse(feature);
  EXPECT_EQ(values.kind, Kind::kFloats);
  std::vector<float> floats(values.count);
  CopyFloats(values, std::as_writable_bytes(std::span(floats)));
  if (values.bytes.data() != nullptr) {
    EXPECT_EQ(
        BytesText(values.bytes),
        BytesText(std::as_bytes(std::span(floats.data(), floats.size()))));
  }
  return floats;
}

using IntList = std::vector<int64_t>;
using FloatList = std::vector<float>;

TEST(TfExample, FindsFeaturesByName) {
  const std::string example = ExampleOf({{"b", BytesFeature({"image"})},
                                         {"a", IntFeature({7})},
                                         {"", FloatFeature({1.5f})}});
  std::vector<FeatureBytes> found(4);
  ASSERT_TRUE(FindFeatures(Bytes(example), {"a", "b", "", "c"}, found).ok());
  EXPECT_EQ(Ints(BytesText(found[0])), IntList({7}));
  EXPECT_EQ(BytesText(ParseFeature(found[1])->bytes), "image");
  EXPECT_EQ(Floats(BytesText(found[2])), FloatList({1.5f}));
  EXPECT_EQ(found[3].data(), nullptr);
}

TEST(TfExample, TheLastOfEntriesWithOneNameCounts) {
  const std::string example =
      ExampleOf({{"a", IntFeature({1})}, {"a", IntFeature({2})}}) +
      ExampleOf({{"a", IntFeature({3})}});
  std::vector<FeatureBytes> found(1);
  ASSERT_TRUE(FindFeatures(Bytes(example), {"a"}, found).ok());
  EXPECT_EQ(Ints(BytesText(found[0])), IntList({3}));
}

TEST(TfExample, AnEntryWithoutValueIsAnEmptyFeature) {
  const std::string example = FieldOf(1, FieldOf(1, FieldOf(1, "a")));
  std::vector<FeatureBytes> found(1);
  ASSERT_TRUE(FindFeatures(Bytes(example), {"a"}, found).ok());
  EXPECT_NE(found[0].data(), nullptr);
  EXPECT_EQ(Parse(BytesText(found[0])).kind, Kind::kNone);
}

// By the rules of protocol buffers they are [1, 2].
TEST(TfExample, AnEntryWithTwoValuesIsRefusedAndNotHalved) {
  const std::string entry = FieldOf(1, "a") + FieldOf(2, IntFeature({1})) +
                            FieldOf(2, IntFeature({2}));
  const std::string example = FieldOf(1, FieldOf(1, entry));
  std::vector<FeatureBytes> found(1);
  EXPECT_TRUE(absl::IsDataLoss(FindFeatures(Bytes(example), {"a"}, found)));
}

TEST(TfExample, NumbersMayBePackedOrNotOrBoth) {
  const std::string one = VarintOf(8) + VarintOf(5);  // field 1, a varint
  const std::string packed = FieldOf(1, VarintOf(6) + VarintOf(300));
  EXPECT_EQ(Ints(FieldOf(3, one + packed + one)), IntList({5, 6, 300, 5}));
  EXPECT_EQ(Ints(FieldOf(3, one) + FieldOf(3, packed)), IntList({5, 6, 300}));
  const std::string single = VarintOf(13) + LittleEndian(2.5f);
  EXPECT_EQ(Floats(FieldOf(2, single + single)), FloatList({2.5f, 2.5f}));
  EXPECT_EQ(Floats(FieldOf(2, single + FieldOf(1, LittleEndian(1.f)))),
            FloatList({2.5f, 1.f}));
  EXPECT_EQ(Ints(IntFeature({-1, INT64_MIN, INT64_MAX, 0})),
            IntList({-1, INT64_MIN, INT64_MAX, 0}));
  EXPECT_EQ(Ints(IntFeature({})), IntList());
  EXPECT_EQ(Ints(FieldOf(3, "")), IntList());
  EXPECT_EQ(Floats(FieldOf(2, "")), FloatList());
}

TEST(TfExample, TheLastMemberOfTheOneofCounts) {
  EXPECT_EQ(Ints(IntFeature({1}) + FloatFeature({2}) + IntFeature({3})),
            IntList({3}));
  EXPECT_EQ(Ints(BytesFeature({"x"}) + IntFeature({1}) + IntFeature({2})),
            IntList({1, 2}));
  EXPECT_EQ(Parse(IntFeature({1}) + BytesFeature({"x", "y"})).count, 2u);
}

TEST(TfExample, UnknownFieldsArePassedOver) {
  const std::string unknown = FieldOf(9, "abc") + VarintOf(10 << 3) +
                              VarintOf(7) + VarintOf(11 << 3 | 5) + "1234" +
                              VarintOf(12 << 3 | 1) + "12345678";
  const std::string list = unknown + FieldOf(1, VarintOf(4)) + unknown;
  const std::string feature = unknown + FieldOf(3, list) + unknown;
  const std::string entry = unknown + FieldOf(1, "a") + FieldOf(2, feature);
  const std::string example =
      unknown + FieldOf(1, unknown + FieldOf(1, entry)) + unknown;
  std::vector<FeatureBytes> found(1);
  ASSERT_TRUE(FindFeatures(Bytes(example), {"a"}, found).ok());
  EXPECT_EQ(Ints(BytesText(found[0])), IntList({4}));
}

TEST(TfExample, MalformedMessagesAreErrors) {
  for (const std::string& bytes :
       {std::string("\x0a"), std::string("\x0a\x05\x01", 3),
        std::string("\x00", 1), std::string("\x0b"), std::string("\x0c"),
        std::string("\x0e"), std::string("\x0f"), std::string(11, '\xff'),
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string("\x0d\x01\x02"), std::string("\x09\x01\x02")}) {
    std::vector<FeatureBytes> found(1);
    EXPECT_EQ(FindFeatures(Bytes(bytes), {"a"}, found).code(),
              absl::StatusCode::kDataLoss);
    EXPECT_FALSE(ParseFeature(Bytes(bytes)).ok());
  }
  const std::string endless(10, '\x80');
  for (const std::string& feature :
       {FieldOf(3, FieldOf(1, "\x80")), FieldOf(3, FieldOf(1, endless)),
        FieldOf(3, FieldOf(1, endless + "\x01")), FieldOf(2, FieldOf(1, "123")),
        FieldOf(3, "\x08"), FieldOf(2, "\x0d\x01"), FieldOf(1, "\x0a\x05x")})
    EXPECT_EQ(ParseFeature(Bytes(feature)).status().code(),
              absl::StatusCode::kDataLoss);
}

// Whatever is cut or changed, nothing outside the bytes is touched (the memory
// is exactly as large), and everything that parses can be copied.
TEST(TfExample, AnyBytesAreParsedOrRefused) {
  const std::string good = ExampleOf({{"a", IntFeature({1, 300, -1})},
                                      {"b", FloatFeature({1, 2, 3})},
                                      {"c", BytesFeature({"some", "bytes"})}});
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good.substr(0, random() % (good.size() + 1));
    for (int flips = static_cast<int>(random() % 4); flips > 0; --flips)
      if (!bytes.empty())
        bytes[random() % bytes.size()] = static_cast<char>(random());
    const std::vector<std::byte> exact(Bytes(bytes).begin(),
                                       Bytes(bytes).end());
    std::vector<FeatureBytes> found(3);
    const absl::Status status = FindFeatures(exact, {"a", "b", "c"}, found);
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      continue;
    }
    for (const FeatureBytes& feature : found) {
      if (feature.data() == nullptr) continue;
      const auto values = ParseFeature(feature);
      if (!values.ok()) {
        EXPECT_TRUE(absl::IsDataLoss(values.status())) << values.status();
        continue;
      }
      EXPECT_LE(values->count, feature.size());
      std::vector<std::byte> into(values->count * 8);
      if (values->kind == Kind::kInts) CopyInts(*values, into);
      if (values->kind == Kind::kFloats) CopyFloats(*values, into);
    }
  }
}

}  // namespace
}  // namespace leat::worker
