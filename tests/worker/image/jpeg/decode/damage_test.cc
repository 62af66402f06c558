// SPDX-License-Identifier: Apache-2.0
//
// Damage has one meaning (docs/decisions/0025): the file determines which of
// its rows are lost, and the pipeline which rows of a batch are bad, however
// much is decoded at once.
#include <algorithm>
#include <optional>
#include <random>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/program/support.h"
#include "tests/worker/image/views/view_graphs.h"
#include "worker/image/jpeg/decode/check.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {
namespace {

struct Decoded {
  absl::Status damage;
  int64_t sound_rows = 0;
  std::vector<std::string> rows;  // of the window
};

// nullopt: decoding did not begin.
std::optional<Decoded> DecodeWindow(JpegDecoder& decoder,
                                    const std::string& jpeg, const Rect& window,
                                    bool gray, bool partial) {
  if (!decoder.Open(AsSpan(jpeg)).ok()) return std::nullopt;
  if (!decoder.Start(window, gray, partial).ok()) return std::nullopt;
  Decoded result;
  PixelRows rows;
  for (int64_t y = 0; y < window.height; y += rows.count) {
    if (!decoder.ReadRows(&rows).ok()) return std::nullopt;
    const size_t bytes = static_cast<size_t>(window.width) * (gray ? 1 : 4);
    for (int i = 0; i < rows.count; ++i) {
      const uint8_t* row = rows.first + i * rows.stride;
      result.rows.emplace_back(row, row + bytes);
      // The fourth byte is undefined.
      for (size_t x = 3; !gray && x < bytes; x += 4) result.rows.back()[x] = 0;
    }
  }
  result.damage = decoder.damage();
  result.sound_rows = decoder.sound_rows();
  return result;
}

Rect Whole(const JpegDecoder& decoder) {
  return {0, 0, decoder.header().size.width, decoder.header().size.height};
}

Rect RandomWindow(ImageSize size, std::mt19937& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Rect window;
  window.height = 1 + below(random() % 3 == 0 ? 5 : size.height);
  window.height = std::min(window.height, size.height);
  window.width = 1 + below(size.width);
  window.y = below(size.height - window.height + 1);
  window.x = below(size.width - window.width + 1);
  return window;
}

// Expects the window's rows of the whole image; rows below its damage are
// black.
void ExpectRowsOf(const Decoded& whole, const Rect& window, size_t pixel,
                  const Decoded& part) {
  for (size_t y = 0; y < part.rows.size(); ++y) {
    const std::string& row = whole.rows[y + static_cast<size_t>(window.y)];
    ASSERT_EQ(part.rows[y],
              row.substr(static_cast<size_t>(window.x) * pixel,
                         static_cast<size_t>(window.width) * pixel))
        << "row " << y + static_cast<size_t>(window.y);
  }
}

TEST(JpegDamage, IsTheFilesWhateverWindowIsDecoded) {
  std::mt19937 random(8);
  JpegDecoder decoder({.max_pixels = 100'000});
  int partly = 0, lost = 0, sound = 0;
  uint32_t seed = 0;
  for (const std::string& jpeg : JpegsOfManyKinds())
    for (const std::string& copy : JpegDamager(jpeg, ++seed).Copies(2)) {
      if (!decoder.Open(AsSpan(copy)).ok()) continue;
      const bool gray = random() % 3 == 0;
      const Rect all = Whole(decoder);
      const auto whole = DecodeWindow(decoder, copy, all, gray, true);
      if (!whole) continue;
      const int64_t rows = whole->sound_rows;
      ASSERT_EQ(whole->damage.ok(), rows == all.height);
      ASSERT_TRUE(whole->damage.ok() || absl::IsDataLoss(whole->damage));
      (rows == all.height ? sound : rows == 0 ? lost : partly)++;
      for (int i = 0; i < 6; ++i) {
        const Rect window = RandomWindow({all.height, all.width}, random);
        const auto part =
            DecodeWindow(decoder, copy, window, gray, random() % 4 != 0);
        ASSERT_TRUE(part);
        ASSERT_EQ(part->damage.ok(), window.y + window.height <= rows)
            << "rows " << window.y << " to " << window.y + window.height
            << " of a file of which " << rows << " are sound";
        ASSERT_EQ(part->sound_rows,
                  part->damage.ok() ? all.height : std::max(rows, window.y));
        ExpectRowsOf(*whole, window, gray ? 1 : 4, *part);
      }
    }
  EXPECT_GT(partly, 400);
  EXPECT_GT(lost, 40);
  EXPECT_GT(sound, 40);
}

TEST(JpegDamage, IsFoundWithoutDecodingTheRowsToo) {
  std::mt19937 random(9);
  JpegDecoder decoder({.max_pixels = 100'000});
  int found = 0;
  uint32_t seed = 50;
  for (const std::string& jpeg : JpegsOfManyKinds())
    for (const std::string& copy : JpegDamager(jpeg, ++seed).Copies(5)) {
      if (!decoder.Open(AsSpan(copy)).ok()) continue;
      const bool gray = random() % 3 == 0;
      const Rect all = Whole(decoder);
      const auto whole = DecodeWindow(decoder, copy, all, gray, true);
      if (!whole) continue;
      const int64_t some =
          1 + static_cast<int64_t>(random() % 1000) % all.height;
      for (const int64_t rows :
           {whole->sound_rows, whole->sound_rows + 1, some, all.height}) {
        if (rows < 1 || rows > all.height) continue;
        ASSERT_TRUE(decoder.Open(AsSpan(copy)).ok());
        const absl::Status status = CheckJpegRows(&decoder, rows, gray);
        ASSERT_EQ(status,
                  rows > whole->sound_rows ? whole->damage : absl::OkStatus());
        found += !status.ok();
      }
    }
  EXPECT_GT(found, 300);
}

TEST(Damage, MakesTheSameRowsBadFusedAndPlain) {
  Scratch scratch({.max_pixels = 100'000}), other({.max_pixels = 100'000});
  std::vector<Graph> graphs = FusedViewGraphs();
  for (Graph& graph : OperatedViewGraphs()) graphs.push_back(std::move(graph));
  uint32_t seed = 100;
  const std::vector<std::string> jpegs = JpegsOfManyKinds();
  for (size_t g = 0; g < graphs.size(); ++g) {
    Runner fused(graphs[g], 3), plain(graphs[g], 3, false);
    int good = 0, bad = 0;
    for (const std::string& jpeg : jpegs)
      for (const std::string& copy : JpegDamager(jpeg, ++seed).Copies(9)) {
        const absl::Status status = fused.Run(copy, scratch, seed % 7);
        const absl::Status want = plain.Run(copy, other, seed % 7);
        ASSERT_EQ(status, want) << CanonicalText(graphs[g]);
        (status.ok() ? good : bad)++;
        if (!status.ok()) continue;
        ASSERT_EQ(fused.outputs, plain.outputs) << CanonicalText(graphs[g]);
      }
    EXPECT_GT(good, 30) << CanonicalText(graphs[g]);
    EXPECT_GT(bad, 100) << CanonicalText(graphs[g]);
  }
}

// A file without its quantisation tables, like an abbreviated one.
std::string WithoutTables(std::string jpeg) {
  for (size_t at; (at = jpeg.find("\xff\xdb")) != std::string::npos;)
    jpeg.erase(at, 2 + static_cast<uint8_t>(jpeg[at + 2]) * size_t{256} +
                       static_cast<uint8_t>(jpeg[at + 3]));
  return jpeg;
}

TEST(JpegDamage, IsNotMendedByTheTablesOfAnotherFile) {
  const std::string whole = testing::MakeJpeg({.width = 40, .height = 40});
  const std::string lacking = WithoutTables(whole);
  ASSERT_LT(lacking.size(), whole.size());
  JpegDecoder decoder({});
  for (const std::string& before : {lacking, whole, lacking}) {
    ASSERT_TRUE(DecodeWindow(decoder, before, {0, 0, 40, 40}, false, true));
    const auto decoded =
        DecodeWindow(decoder, lacking, {0, 0, 40, 40}, false, true);
    ASSERT_TRUE(decoded);
    EXPECT_TRUE(absl::IsDataLoss(decoded->damage)) << decoded->damage;
  }
}

// A file whose lower half is lost.
std::string HalfLost(int orientation = 0) {
  const std::string jpeg = testing::MakeJpeg(
      {.width = 160, .height = 160, .orientation = orientation});
  return jpeg.substr(0, jpeg.size() * 6 / 10) + "\xff\xd9";
}

TEST(Damage, BelowAllViewsIsNone) {
  Scratch scratch({});
  for (const bool fuse : {true, false}) {
    ViewGraph g;
    g.Output(g.At(0, 40));
    g.Output(g.At(0.1, 40));
    EXPECT_TRUE(Runner(g.graph, 1, fuse).Run(HalfLost(), scratch).ok());
    // EXIF 3 turns the image by 180°: the views end at its last stored row.
    const absl::Status turned =
        Runner(g.graph, 1, fuse).Run(HalfLost(3), scratch);
    EXPECT_TRUE(absl::IsDataLoss(turned)) << turned;
    g.Output(g.At(1, 40));
    const absl::Status status =
        Runner(g.graph, 1, fuse).Run(HalfLost(), scratch);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

TEST(Damage, IsThatOfTheWholeImageForWhatIsNoView) {
  Scratch scratch({});
  for (const bool fuse : {true, false}) {
    ViewGraph g;
    g.Output(g.At(0, 40));
    g.Output(
        g.Add("resize",
              {g.Add("cast", {1}, {{"dtype", Value(std::string("uint8"))}})},
              {{"size", ViewGraph::Ints{8, 8}}}));
    const absl::Status status =
        Runner(g.graph, 1, fuse).Run(HalfLost(), scratch);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

}  // namespace
}  // namespace leat::worker
