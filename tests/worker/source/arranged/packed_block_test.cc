// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packed_block.h"

#include <functional>
#include <string>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/source/varint.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Packing kFit = {.how = PackHow::kFit, .length = 8};

// Documents 3 to 5, of 5, 300 and 2 elements.
stored::v1::PackedBlock Block() {
  stored::v1::PackedBlock block;
  block.set_first_document(3);
  block.set_documents(3);
  for (const uint64_t length : {5, 300, 2})
    AppendVarint(length, block.mutable_lengths());
  block.add_window_documents(3);
  block.add_window_rows(39);
  block.set_rows(39);
  return block;
}

TEST(PackedBlockTest, GivesLengthsByWindowAndSamplesOfTheDataset) {
  const auto block = PackedBlock::Open(kFit, Block(), 6);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_THAT(block->LengthsOf(0), ElementsAre(5, 300, 2));
  EXPECT_EQ(block->SampleOf(2), 5u);
  EXPECT_EQ(block->rows().num_rows(), 39u);
}

TEST(PackedBlockTest, RefusesWhatDoesNotFit) {
  const auto error =
      [](const std::function<void(stored::v1::PackedBlock*)>& change,
         const Packing& packing = kFit) {
        stored::v1::PackedBlock block = Block();
        change(&block);
        const auto opened = PackedBlock::Open(packing, block, 6);
        EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss);
        return std::string(Message(opened.status()));
      };
  EXPECT_THAT(error([](auto* b) { b->set_documents(1'000'000'000); }),
              HasSubstr("has 1000000000 documents from 3 on in 4 bytes"));
  EXPECT_THAT(error([](auto* b) { b->set_first_document(4); }),
              HasSubstr("of a dataset of 6"));
  EXPECT_THAT(error([](auto* b) { b->set_first_document(~uint64_t{0}); }),
              HasSubstr("of a dataset of 6"));
  EXPECT_THAT(error([](auto* b) { b->mutable_lengths()->pop_back(); }),
              HasSubstr("no length of a document at byte 3"));
  EXPECT_THAT(error([](auto* b) { b->mutable_lengths()->append("x"); }),
              HasSubstr("1 bytes behind its lengths"));
  EXPECT_THAT(error([](auto* b) {
                b->set_lengths(std::string(9, '\xff') + "\x01");
                b->set_documents(1);
                b->set_window_documents(0, 1);
              }),
              HasSubstr("no length of a document"));
  EXPECT_THAT(error([](auto* b) { b->set_window_documents(0, 4); }),
              HasSubstr("have over 3 documents"));
  EXPECT_THAT(error([](auto* b) { b->set_window_documents(0, 2); }),
              HasSubstr("have 2 documents, want 3"));
  EXPECT_THAT(error([](auto* b) { b->clear_window_rows(); }),
              HasSubstr("1 windows with documents, 0 with rows"));
  EXPECT_THAT(error([](auto* b) { b->set_rows(7); }),
              HasSubstr("has 39 rows, and says 7"));
  EXPECT_THAT(error([](auto* b) { b->set_first_element(300); }, {.length = 8}),
              HasSubstr("pack makes no row"));
}

}  // namespace
}  // namespace leat::worker
