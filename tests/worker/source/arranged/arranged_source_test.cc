// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/arranged_source.h"

#include "gmock/gmock.h"
#include "tests/worker/source/arranged/arranged_fixture.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;

class ArrangedSourceTest : public ArrangedTest {};

TEST_F(ArrangedSourceTest, ReadsTheRecordsOfItsBase) {
  const auto index = Made({.samples = {.list = {7, 199, 0, 8}}});
  ASSERT_TRUE(index.ok()) << index.status();
  const auto source = Opened(*index);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->fingerprint(), index->fingerprint);
  EXPECT_EQ((*source)->num_records(), kFiles);
  EXPECT_EQ((*source)->Read(1)->fields[0].bytes.size(), 199u);
  EXPECT_EQ((*source)
                ->ReadMany(std::vector<uint64_t>{3, 0})[0]
                ->fields[0]
                .bytes.size(),
            8u);
  EXPECT_THAT((*source)->Describe(3), HasSubstr("008.jpg"));
  EXPECT_EQ((*source)->Locate(0)->bytes, 7u);
  EXPECT_EQ(*(*source)->FindRecord(1), 199u);
  EXPECT_EQ(*(*source)->IndexedColumn("label", 3), 0);
  const auto parts = (*source)->ReadParts(std::vector<RecordPart>{{3, 0, 8}});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0]->stored.fields[0].bytes.size(), 8u);
  EXPECT_EQ(*(*source)->DocumentsOf(0, 0, 1), std::nullopt);
  EXPECT_TRUE(absl::IsUnimplemented((*source)->OpenColumns({}).status()))
      << "conditions are about the base";
}

TEST_F(ArrangedSourceTest, AnIndexOfAnotherBaseIsAnError) {
  const auto index = Made({.samples = {.list = {7}}});
  ASSERT_TRUE(index.ok()) << index.status();
  base_.fingerprint[0] ^= 1;
  const absl::Status status = Opened(*index).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(Message(status),
            "the index arranges another dataset than its base");
}

TEST_F(ArrangedSourceTest, AMalformedIndexIsAnError) {
  auto index = Made({.samples = {.list = {7, 8}}});
  ASSERT_TRUE(index.ok()) << index.status();
  const std::string whole = index->blob;
  for (size_t size = 0; size < whole.size(); ++size) {
    index->blob = whole.substr(0, size);
    EXPECT_TRUE(absl::IsDataLoss(Opened(*index).status())) << size;
  }
  index->blob = whole + whole;
  EXPECT_TRUE(absl::IsDataLoss(Opened(*index).status()));
}

}  // namespace
}  // namespace leat::worker
