// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/sequences.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/previews/packed_rows.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Sequences, ARowHasItsDocumentsAndItsFill) {
  const Sequences made = Made(nullptr);
  EXPECT_EQ(made.title, "llm  epoch 0  step 3 of 9");
  EXPECT_THAT(made.detail, HasSubstr("2 of 8 rows, field ids uint16 of 6"));
  EXPECT_THAT(made.detail, HasSubstr("91.7 % full"));
  ASSERT_EQ(made.rows.size(), 2u);
  EXPECT_EQ(made.rows[0].caption, "row 0  sample 17  2 documents  83.3 % full");
  EXPECT_EQ(made.rows[1].caption, "row 1  sample 4  1 document  100.0 % full");
  const std::vector<Segment>& segments = made.rows[0].segments;
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].document, "a<b>.bin: record 3, elements 7 to 9 of 20");
  EXPECT_EQ(segments[1].document, "c.bin: k");
  EXPECT_EQ(segments[1].begin, 3u);
  EXPECT_EQ(segments[1].text, "0 60000");
  EXPECT_TRUE(segments[2].padding);
  EXPECT_EQ(segments[2].text, "");
}

TEST(Sequences, ASheetShowsImagesIfThereAreAny) {
  Rows rows = PackedRows();
  EXPECT_TRUE(ShowsSequences(rows, ""));
  EXPECT_FALSE(ShowsSequences(rows, "nothing"));
  rows.fields.push_back(FieldOf<uint8_t>("image", "uint8", {2, 4, 4, 3},
                                         std::vector<uint8_t>(96, 7)));
  EXPECT_FALSE(ShowsSequences(rows, ""));
  EXPECT_TRUE(ShowsSequences(rows, "ids"));
  EXPECT_FALSE(ShowsSequences(rows, "image"));
}

TEST(Sequences, RowsThatAreNotPackedHaveOneSegment) {
  Rows rows = PackedRows();
  rows.fields.erase(rows.fields.begin());
  const auto made = SequencesOf(rows, "", nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->rows[0].caption, "row 0  sample 17");
  ASSERT_EQ(made->rows[0].segments.size(), 1u);
  EXPECT_EQ(made->rows[0].segments[0].text, "0 1 2 0 60000 9");
  EXPECT_THAT(made->detail, Not(HasSubstr("full")));
}

TEST(Sequences, DocumentsThatAreNotKnownAreLeftOut) {
  Rows rows = PackedRows();
  int asked = 0;
  rows.record = [&](uint64_t) -> absl::StatusOr<std::string> {
    ++asked;
    return Unavailable("no worker is ready");
  };
  const auto made = SequencesOf(rows, "", nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->note, "documents are not known: no worker is ready");
  EXPECT_EQ(made->rows[0].segments[0].document, "");
  EXPECT_EQ(made->rows[0].documents, 2u);
  EXPECT_EQ(asked, 1) << "the other rows are not asked for";
}

TEST(Sequences, ALongRowHasTextForItsBeginning) {
  Rows rows = PackedRows();
  const int64_t length = 20'000;
  rows.fields = {FieldOf<int32_t>("ids", "int32", {1, length},
                                  std::vector<int32_t>(length, 7))};
  const auto made = SequencesOf(rows, "", nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->rows[0].segments[0].text,
              HasSubstr("7 7 [and 3616 elements]"));
}

}  // namespace
}  // namespace leat::cli
