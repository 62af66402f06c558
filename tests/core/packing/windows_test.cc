// SPDX-License-Identifier: Apache-2.0
#include "core/packing/windows.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/hash.h"
#include "core/packing/cut_window.h"
#include "core/packing/fit_window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/golden.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The packings and corpora of tests/golden/packing.py.
const std::map<std::string, Packing> kPackings = {
    {"cut", {.length = 2048}},
    {"cut_targets", {.length = 4097, .overlap = 1}},
    {"fit", {.how = PackHow::kFit, .length = 2048}},
    {"fit_targets", {.how = PackHow::kFit, .length = 513, .overlap = 1}},
    {"fit_drop",
     {.how = PackHow::kFit, .length = 1000, .longer = PackLonger::kDrop}},
    {"fit_few", {.how = PackHow::kFit, .length = 8192, .max_documents = 4}},
    {"fit_short", {.how = PackHow::kFit, .length = 7, .overlap = 3}}};

uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ x >> 31;
}

uint64_t SizeOf(uint64_t salt, uint64_t document) {
  const uint64_t word = Mix64((salt << 32) + document);
  const uint64_t bits = word & 15;
  return bits == 15
             ? 0
             : (word >> 8) % (uint64_t{16} << bits % 10) + (word >> 40) % 32;
}

std::vector<uint64_t> LengthsOf(const std::string& corpus) {
  std::vector<uint64_t> lengths;
  const auto add = [&](uint64_t salt, uint64_t documents) {
    for (uint64_t document = 0; document < documents; ++document)
      lengths.push_back(SizeOf(salt, document));
  };
  if (corpus == "few") add(1, 5);
  if (corpus == "small") add(2, 1000);
  if (corpus == "large") add(3, 50'000);
  if (corpus == "huge") {
    add(4, 100);
    lengths.push_back(40'000'000);
    add(5, 400);
  }
  return lengths;
}

// A packed corpus, whose rows are computed one by one.
struct Packed {
  Packed(const Packing& how, const std::vector<uint64_t>& all)
      : packing(how), lengths(all) {
    WindowCutter cutter(
        packing, [&](const PackWindow& window, std::span<const uint64_t> own) {
          EXPECT_EQ(own.size(), window.documents);
          windows.push_back(window);
          return absl::OkStatus();
        });
    for (const uint64_t length : lengths)
      EXPECT_TRUE(cutter.Add(length).ok()) << length;
    EXPECT_TRUE(cutter.Finish().ok());
  }

  std::vector<Piece> RowOf(const PackedRows& rows, uint64_t row) {
    std::vector<Piece> pieces;
    auto [window, index] = rows.Locate(row);
    if (packing.how == PackHow::kFit) {
      Opened(rows, window).fit->AppendPieces(index, &pieces);
      Number(rows, window, 0, &pieces);
      return pieces;
    }
    for (uint64_t left = packing.length; left > 0; ++window, index = 0) {
      const size_t before = pieces.size();
      left -= Opened(rows, window).cut->AppendPieces(index, left, &pieces);
      Number(rows, window, before, &pieces);
    }
    return pieces;
  }

  const Packing packing;
  const std::vector<uint64_t> lengths;
  std::vector<PackWindow> windows;

 private:
  struct Window {
    std::optional<CutWindow> cut;
    std::optional<FitWindow> fit;
  };

  static void Number(const PackedRows& rows, size_t window, size_t from,
                     std::vector<Piece>* pieces) {
    for (size_t i = from; i < pieces->size(); ++i)
      (*pieces)[i].document += rows.FirstDocument(window);
  }

  const Window& Opened(const PackedRows& rows, size_t window) {
    const auto [place, is_new] = opened_.try_emplace(window);
    if (!is_new) return place->second;
    const std::span<const uint64_t> own = std::span(lengths).subspan(
        rows.FirstDocument(window), windows[window].documents);
    if (packing.how == PackHow::kCut) {
      place->second.cut.emplace(own);
    } else {
      place->second.fit = FitWindow::Pack(packing, own).value();
    }
    return place->second;
  }

  std::map<size_t, Window> opened_;
};

std::string TextOf(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    absl::StrAppend(&text, text.empty() ? "" : ",", piece.document, ":",
                    piece.begin, "+", piece.size);
  }
  return text;
}

TEST(PackingGoldenTest, WindowsAndRowsAreThoseOfTheSecondImplementation) {
  std::map<std::string, Packed> all;
  const auto packed = [&](const std::vector<std::string>& line) -> Packed& {
    const std::string name = line[1] + " " + line[2];
    const auto at = all.find(name);
    if (at != all.end()) return at->second;
    return all.try_emplace(name, kPackings.at(line[2]), LengthsOf(line[1]))
        .first->second;
  };
  for (const auto& line : GoldenLines("packing.txt")) {
    SCOPED_TRACE(line[0] + " " + line[1] + " " + line[2] + " " + line[3]);
    Packed& corpus = packed(line);
    if (line[0] == "window") {
      const size_t window = std::stoul(line[3]);
      ASSERT_LT(window, corpus.windows.size());
      EXPECT_EQ(corpus.windows[window],
                (PackWindow{std::stoul(line[4]), std::stoul(line[5]),
                            std::stoul(line[6])}));
      continue;
    }
    const auto rows = PackedRows::Create(corpus.packing, corpus.windows);
    if (line[0] == "rows" && line[3] == "0") {
      EXPECT_THAT(std::string(rows.status().message()),
                  HasSubstr("pack makes no row of "));
      continue;
    }
    ASSERT_TRUE(rows.ok()) << rows.status();
    if (line[0] == "row") {
      EXPECT_EQ(TextOf(corpus.RowOf(*rows, std::stoul(line[3]))), line[4]);
      continue;
    }
    ASSERT_EQ(rows->num_rows(), std::stoul(line[3]));
    std::string text;
    for (uint64_t row = 0; row < rows->num_rows(); ++row)
      absl::StrAppend(&text, TextOf(corpus.RowOf(*rows, row)), "\n");
    EXPECT_EQ(ToHex(HashOf(text)), line[4]);
  }
}

TEST(WindowCutterTest, RefusesDocumentsThatAreTooLong) {
  WindowCutter cutter({.length = 8},
                      [](const PackWindow&, std::span<const uint64_t>) {
                        return absl::OkStatus();
                      });
  EXPECT_TRUE(cutter.Add(8).ok());
  EXPECT_THAT(std::string(cutter.Add(kMaxDocumentElements + 1).message()),
              HasSubstr("document 1 has 1099511627777 elements: want at most"));
}

// The last window takes up to 2 · kWindowDocuments - 1 documents.
TEST(WindowCutterTest, TheLastWindowTakesTheRest) {
  const auto windows_of = [](uint64_t documents) {
    std::vector<uint64_t> found;
    WindowCutter cutter({.length = 8}, [&](const PackWindow& window,
                                           std::span<const uint64_t>) {
      found.push_back(window.documents);
      return absl::OkStatus();
    });
    for (uint64_t i = 0; i < documents; ++i) EXPECT_TRUE(cutter.Add(1).ok());
    EXPECT_TRUE(cutter.Finish().ok());
    return found;
  };
  const uint64_t w = kWindowDocuments;
  EXPECT_THAT(windows_of(0), ElementsAre());
  EXPECT_THAT(windows_of(2 * w - 1), ElementsAre(2 * w - 1));
  EXPECT_THAT(windows_of(2 * w), ElementsAre(w, w));
  EXPECT_THAT(windows_of(3 * w + 5), ElementsAre(w, w, w + 5));
}

TEST(PackedRowsTest, ErrorsSayWhatThereIs) {
  const auto error = [](const Packing& packing,
                        const std::vector<PackWindow>& windows) {
    return std::string(PackedRows::Create(packing, windows).status().message());
  };
  EXPECT_EQ(error({.length = 4096}, {{7, 900, 0}}),
            "pack makes no row of 7 documents with 900 elements together: want "
            "at least length=4096");
  EXPECT_EQ(error({.how = PackHow::kFit, .length = 8}, {{7, 0, 0}}),
            "pack makes no row of 7 documents with 0 elements together: want "
            "one that is not empty");
  EXPECT_EQ(
      error({.how = PackHow::kFit, .length = 8, .longer = PackLonger::kDrop},
            {{7, 900, 0}}),
      "pack makes no row of 7 documents with 900 elements together: want "
      "one of 1 to length=8, since longer ones are dropped");
  EXPECT_EQ(error({.length = 1}, {}),
            "pack makes no row of 0 documents with 0 elements together: want "
            "at least length=1");
  // Windows may come from a disk: their sums are bounded.
  const uint64_t most = ~uint64_t{0};
  for (const PackWindow& window :
       {PackWindow{most, 1, 1}, PackWindow{1, most, 1}, PackWindow{1, 1, most}})
    EXPECT_THAT(error({.length = 1}, {{1, 1, 1}, window}),
                HasSubstr("window 1 has "));
  EXPECT_THAT(error({.length = 1}, {{1, uint64_t{1} << 59, 0}}),
              HasSubstr("rows: want at most 281474976710656"));
}

TEST(PackedRowsTest, EmptyWindowsAreNeverLocated) {
  const std::vector<PackWindow> windows = {
      {1, 0, 0}, {1, 4, 1}, {1, 0, 0}, {1, 4, 1}, {1, 0, 0}};
  for (const PackHow how : {PackHow::kCut, PackHow::kFit}) {
    const auto rows = PackedRows::Create({.how = how, .length = 4}, windows);
    ASSERT_TRUE(rows.ok());
    ASSERT_EQ(rows->num_rows(), 2u);
    EXPECT_EQ(rows->Locate(0).window, 1u);
    EXPECT_EQ(rows->Locate(1).window, 3u);
    EXPECT_EQ(rows->Locate(1).index, 0u);
  }
}

}  // namespace
}  // namespace leat
