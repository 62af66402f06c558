// SPDX-License-Identifier: Apache-2.0
#include "core/packing/fit_window.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::ElementsAre;

std::vector<std::vector<Piece>> RowsOf(const Packing& packing,
                                       const std::vector<uint64_t>& lengths) {
  const auto window = FitWindow::Pack(packing, lengths);
  EXPECT_TRUE(window.ok()) << window.status();
  std::vector<std::vector<Piece>> rows(window->num_rows());
  for (size_t row = 0; row < rows.size(); ++row)
    window->AppendPieces(row, &rows[row]);
  return rows;
}

TEST(FitWindowTest, TheExampleOfTheHeader) {
  const auto rows = RowsOf({.how = PackHow::kFit, .length = 7}, {5, 3, 2, 4});
  EXPECT_THAT(rows, ElementsAre(ElementsAre(Piece{0, 0, 5}, Piece{2, 0, 2}),
                                ElementsAre(Piece{1, 0, 3}, Piece{3, 0, 4})));
}

TEST(FitWindowTest, OfEqualRoomsTheOneThatGotItLastIsTaken) {
  const auto rows = RowsOf({.how = PackHow::kFit, .length = 4}, {3, 3, 1});
  EXPECT_THAT(rows, ElementsAre(ElementsAre(Piece{0, 0, 3}),
                                ElementsAre(Piece{1, 0, 3}, Piece{2, 0, 1})));
}

TEST(FitWindowTest, ARowWithTheMostDocumentsTakesNoMore) {
  const auto rows =
      RowsOf({.how = PackHow::kFit, .length = 10, .max_documents = 2},
             {1, 1, 1, 1, 1});
  EXPECT_THAT(rows, ElementsAre(ElementsAre(Piece{0, 0, 1}, Piece{1, 0, 1}),
                                ElementsAre(Piece{2, 0, 1}, Piece{3, 0, 1}),
                                ElementsAre(Piece{4, 0, 1})));
}

// Every element of every document stands in one piece (two where pieces
// overlap), no row is over its length, and no two rows could be one.
void ExpectPacked(const Packing& packing,
                  const std::vector<uint64_t>& lengths) {
  const auto rows = RowsOf(packing, lengths);
  std::vector<std::vector<Piece>> of(lengths.size());
  uint64_t first_of_last = 0;
  std::vector<uint64_t> fills;
  for (const auto& row : rows) {
    ASSERT_FALSE(row.empty());
    if (packing.max_documents != 0) {
      ASSERT_LE(row.size(), packing.max_documents);
    }
    ASSERT_GE(row[0].document, first_of_last);
    first_of_last = row[0].document;
    uint64_t fill = 0;
    for (const Piece& piece : row) {
      fill += piece.size;
      of[piece.document].push_back(piece);
    }
    ASSERT_LE(fill, packing.length);
    fills.push_back(fill);
  }
  for (size_t document = 0; document < lengths.size(); ++document) {
    auto& pieces = of[document];
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    if (lengths[document] > packing.length &&
        packing.longer == PackLonger::kDrop) {
      ASSERT_TRUE(pieces.empty());
      continue;
    }
    uint64_t end = 0;
    for (const Piece& piece : pieces) {
      ASSERT_EQ(piece.begin, end == 0 ? 0 : end - packing.overlap);
      end = piece.begin + piece.size;
    }
    ASSERT_EQ(end, lengths[document]);
  }
  // Best fit leaves no two rows that are at most half full.
  if (packing.max_documents == 0) {
    const auto half = std::count_if(
        fills.begin(), fills.end(),
        [&](uint64_t fill) { return 2 * fill <= packing.length; });
    ASSERT_LE(half, 1);
  }
}

TEST(FitWindowTest, RandomWindowsArePackedWhole) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    Packing packing{.how = PackHow::kFit, .length = 1 + random() % 300};
    packing.overlap = random() % std::min<uint64_t>(packing.length, 5);
    packing.longer = static_cast<PackLonger>(random() % 2);
    packing.max_documents = static_cast<uint32_t>(random() % 3 * 2);
    std::vector<uint64_t> lengths(random() % 200);
    for (uint64_t& length : lengths) length = random() % (1 + random() % 700);
    ExpectPacked(packing, lengths);
    if (HasFatalFailure()) FAIL() << PackingText(packing);
  }
}

TEST(FitWindowTest, RoomsOfEachLevelOfTheTreeAreFound) {
  // 64^3 and its neighbours are where levels of OpenRows begin.
  for (const uint64_t length :
       {63u, 64u, 65u, 4095u, 4096u, 262143u, 262145u}) {
    const Packing packing{.how = PackHow::kFit, .length = length};
    const auto rows = RowsOf(
        packing, {length - 1, 1, length, length / 2, length - length / 2});
    EXPECT_EQ(rows.size(), 3u) << length;
  }
}

TEST(FitWindowTest, ADocumentThatIsTooLongIsAnErrorIfSoWanted) {
  const std::vector<uint64_t> lengths = {3, 9};
  const auto window = FitWindow::Pack(
      {.how = PackHow::kFit, .length = 8, .longer = PackLonger::kError},
      lengths);
  EXPECT_EQ(window.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
