// SPDX-License-Identifier: Apache-2.0
#include "core/packing/pack_node.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::ElementsAre;

constexpr auto Byte = [](int value) { return static_cast<std::byte>(value); };

PackNode WithFills(std::vector<double> fills) {
  return {.packing = {.length = 8},
          .outputs = {2, 0},
          .fill_values = std::move(fills)};
}

TEST(PackNode, TheTextNamesTheValuesAndTheirPadding) {
  EXPECT_EQ(CanonicalText(WithFills({-1, 0.5})),
            "pack(how=cut,length=8,overlap=0,longer=cut,max_documents=0) "
            "2:-0x1p+0 0:0x1p-1");
  EXPECT_EQ(CanonicalText(WithFills({0})),
            "pack(how=cut,length=8,overlap=0,longer=cut,max_documents=0) "
            "2:0x0p+0 0:0x0p+0");
}

TEST(PackNode, WholeNumbersFitExactlyOrNotAtAll) {
  const PackNode node = WithFills({300, -1});
  EXPECT_FALSE(node.FillFits(0, DType::kUint8));
  EXPECT_TRUE(node.FillFits(0, DType::kInt32));
  EXPECT_FALSE(node.FillFits(1, DType::kUint8));
  EXPECT_TRUE(node.FillFits(1, DType::kInt64));
  EXPECT_FALSE(node.FillFits(1, DType::kBool));
  EXPECT_FALSE(WithFills({0.5}).FillFits(0, DType::kInt32));
  EXPECT_FALSE(WithFills({0x1p31}).FillFits(0, DType::kInt32));
  EXPECT_FALSE(WithFills({0x1p54}).FillFits(0, DType::kInt64));
}

TEST(PackNode, OthersFitIfTheyAreFinite) {
  EXPECT_TRUE(WithFills({0.1}).FillFits(0, DType::kFloat16));
  EXPECT_FALSE(WithFills({1e6}).FillFits(0, DType::kFloat16));
  EXPECT_TRUE(WithFills({1e6}).FillFits(0, DType::kFloat32));
  EXPECT_FALSE(WithFills({1e39}).FillFits(0, DType::kFloat32));
}

TEST(PackNode, PaddingIsLittleEndian) {
  EXPECT_THAT(WithFills({50256, 1}).FillBytes(0, DType::kInt32),
              ElementsAre(Byte(0x50), Byte(0xc4), Byte(0), Byte(0)));
  EXPECT_THAT(WithFills({50256, 1}).FillBytes(1, DType::kFloat16),
              ElementsAre(Byte(0), Byte(0x3c)));
  EXPECT_THAT(WithFills({1}).FillBytes(1, DType::kBool), ElementsAre(Byte(1)));
}

}  // namespace
}  // namespace leat
