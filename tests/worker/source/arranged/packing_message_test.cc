// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packing_message.h"

#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

const PackNode kPack = {.packing = {.how = PackHow::kFit,
                                    .length = 512,
                                    .overlap = 1,
                                    .longer = PackLonger::kDrop,
                                    .max_documents = 4},
                        .outputs = {2, 0},
                        .fill_values = {-1, 7}};
const std::vector<ValueType> kStoredTypes = {
    {ValueType::Kind::kTensor, DType::kUint8, {-1, 3}},
    {ValueType::Kind::kEncoded},
    {ValueType::Kind::kTensor, DType::kInt32, {-1}}};

TEST(PackingMessage, ComesBackAsItWas) {
  const auto stored = FromStored(ToStored(kPack, kStoredTypes));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->pack, kPack);
  EXPECT_EQ(stored->types, kStoredTypes);
}

TEST(PackingMessage, RefusesWhatNoListingWrites) {
  const auto error =
      [](const std::function<void(stored::v1::StoredPacking*)>& change) {
        stored::v1::StoredPacking message = ToStored(kPack, kStoredTypes);
        change(&message);
        const auto stored = FromStored(message);
        EXPECT_EQ(stored.status().code(), absl::StatusCode::kDataLoss);
        return std::string(Message(stored.status()));
      };
  EXPECT_THAT(error([](auto* m) { m->set_length(0); }),
              HasSubstr("length is 0"));
  EXPECT_THAT(error([](auto* m) { m->set_longer(259); }),
              HasSubstr("longer is 255"));
  EXPECT_THAT(error([](auto* m) { m->clear_outputs(); }),
              HasSubstr("pack has 0 values"));
  EXPECT_THAT(error([](auto* m) { m->add_fill_values(1); }),
              HasSubstr("has 3 numbers"));
  EXPECT_THAT(error([](auto* m) { m->set_outputs(0, 3); }),
              HasSubstr("packs output 3 of 3"));
  EXPECT_THAT(error([](auto* m) { m->set_outputs(0, 1); }),
              HasSubstr("input 0 is"));
  EXPECT_THAT(error([](auto* m) { m->mutable_types(0)->set_shape(0, 4); }),
              HasSubstr("input 1 is"));
  EXPECT_THAT(error([](auto* m) { m->mutable_types(0)->set_dtype(99); }),
              HasSubstr("a type of number 99"));
  EXPECT_THAT(error([](auto* m) { m->set_fill_values(1, 300); }),
              HasSubstr("has 300 for input 1, want a value of uint8"));
  EXPECT_THAT(error([](auto* m) {
                m->mutable_types(0)->set_shape(1, int64_t{1} << 62);
              }),
              HasSubstr("rows of length=512 have over 67108864 bytes"));
}

}  // namespace
}  // namespace leat::worker
