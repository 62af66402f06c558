// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/packed_index_writer.h"

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/packing/cut_window.h"
#include "core/packing/fit_window.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/source/arranged/packed_block.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;

struct Written {
  std::vector<stored::v1::PackedBlock> blocks;
  uint64_t rows = 0;
};

absl::StatusOr<Written> Write(const Packing& packing,
                              const std::vector<uint64_t>& lengths,
                              uint64_t block_bytes, bool chosen = false) {
  Written written;
  PackedIndexWriter writer(
      packing, chosen, block_bytes,
      [&](const stored::v1::PackedBlock& block, uint64_t rows) {
        EXPECT_GT(rows, 0u);
        written.blocks.push_back(block);
        written.rows += rows;
        return absl::OkStatus();
      });
  // Chosen documents are every second sample.
  for (size_t i = 0; i < lengths.size(); ++i)
    RETURN_IF_ERROR(writer.Add(chosen ? 2 * i : i, lengths[i]));
  RETURN_IF_ERROR(writer.Finish());
  EXPECT_EQ(writer.num_rows(), written.rows);
  return written;
}

// A window of a block, opened in the way that the packing wants.
struct OpenWindow {
  OpenWindow(const Packing& packing, const PackedBlock& block, size_t window)
      : cut(block.LengthsOf(window)) {
    if (packing.how == PackHow::kFit)
      fit = FitWindow::Pack(packing, block.LengthsOf(window)).value();
  }
  CutWindow cut;
  std::optional<FitWindow> fit;
};

// Returns the pieces of all rows, read block by block.
std::vector<std::vector<Piece>> RowsOf(const Packing& packing,
                                       const Written& written,
                                       uint64_t documents) {
  std::vector<std::vector<Piece>> rows;
  for (const stored::v1::PackedBlock& each : written.blocks) {
    const auto block = PackedBlock::Open(packing, each, documents);
    EXPECT_TRUE(block.ok()) << block.status();
    std::vector<OpenWindow> windows;
    for (size_t i = 0; i < block->rows().num_windows(); ++i)
      windows.emplace_back(packing, *block, i);
    for (uint64_t row = 0; row < block->rows().num_rows(); ++row) {
      std::vector<Piece>& pieces = rows.emplace_back();
      auto [window, index] = block->rows().Locate(row);
      for (uint64_t left = packing.length; left > 0; ++window, index = 0) {
        const size_t before = pieces.size();
        if (windows[window].fit) {
          windows[window].fit->AppendPieces(index, &pieces);
          left = 0;
        } else {
          left -= windows[window].cut.AppendPieces(index, left, &pieces);
        }
        for (size_t i = before; i < pieces.size(); ++i)
          pieces[i].document = block->SampleOf(
              block->rows().FirstDocument(window) + pieces[i].document);
      }
    }
  }
  return rows;
}

TEST(PackedIndexWriterTest, RowsDoNotDependOnTheDivisionIntoBlocks) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 30; ++trial) {
    Packing packing{.how = static_cast<PackHow>(trial % 2),
                    .length = 1 + random() % 60};
    packing.overlap = random() % std::min<uint64_t>(packing.length, 4);
    std::vector<uint64_t> lengths(1 + random() % 40'000);
    for (uint64_t& length : lengths) length = random() % (1 + random() % 9);
    lengths.push_back(1 + random() % 5000);
    const auto whole = Write(packing, lengths, uint64_t{1} << 40);
    const auto parts = Write(packing, lengths, 1 + random() % 3000);
    ASSERT_TRUE(whole.ok() && parts.ok()) << whole.status() << parts.status();
    ASSERT_EQ(whole->blocks.size(), 1u);
    ASSERT_EQ(whole->rows, parts->rows);
    if (lengths.size() >
        (packing.how == PackHow::kCut ? 3000 : 2 * kWindowDocuments))
      EXPECT_GT(parts->blocks.size(), 1u);
    const auto rows = RowsOf(packing, *whole, lengths.size());
    ASSERT_EQ(rows, RowsOf(packing, *parts, lengths.size()))
        << PackingText(packing);
    const auto chosen = Write(packing, lengths, 1 + random() % 3000, true);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    auto doubled = rows;
    for (auto& row : doubled)
      for (Piece& piece : row) piece.document *= 2;
    ASSERT_EQ(doubled, RowsOf(packing, *chosen, 2 * lengths.size()));
  }
}

TEST(PackedIndexWriterTest, DocumentsThatMakeNoRowAreAnError) {
  EXPECT_THAT(std::string(Message(Write({.length = 8}, {3, 4}, 1).status())),
              HasSubstr("pack makes no row of 2 documents with 7 elements"));
}

}  // namespace
}  // namespace leat::worker
