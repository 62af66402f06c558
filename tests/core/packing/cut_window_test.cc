// SPDX-License-Identifier: Apache-2.0
#include "core/packing/cut_window.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CutWindowTest, ARowTakesWhatFollowsAndPassesOverEmptyDocuments) {
  const std::vector<uint64_t> lengths = {0, 5, 0, 0, 2, 3, 0};
  const CutWindow window(lengths);
  EXPECT_EQ(window.num_elements(), 10u);
  std::vector<Piece> pieces;
  EXPECT_EQ(window.AppendPieces(3, 5, &pieces), 5u);
  EXPECT_THAT(pieces,
              ElementsAre(Piece{1, 3, 2}, Piece{4, 0, 2}, Piece{5, 0, 1}));
  // The first element of a document is found behind empty ones.
  pieces.clear();
  EXPECT_EQ(window.AppendPieces(5, 1, &pieces), 1u);
  EXPECT_THAT(pieces, ElementsAre(Piece{4, 0, 1}));
}

TEST(CutWindowTest, TheWindowMayEndBeforeTheRow) {
  const std::vector<uint64_t> lengths = {4};
  const CutWindow window(lengths);
  std::vector<Piece> pieces;
  EXPECT_EQ(window.AppendPieces(1, 100, &pieces), 3u);
  EXPECT_THAT(pieces, ElementsAre(Piece{0, 1, 3}));
  pieces.clear();
  EXPECT_EQ(window.AppendPieces(4, 1, &pieces), 0u);
  EXPECT_THAT(pieces, IsEmpty());
  EXPECT_EQ(CutWindow({}).AppendPieces(0, 1, &pieces), 0u);
  EXPECT_THAT(pieces, IsEmpty());
}

}  // namespace
}  // namespace leat
