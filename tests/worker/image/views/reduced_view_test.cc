// SPDX-License-Identifier: Apache-2.0
//
// The scale that a view permits, and its window in the smaller image.
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

View Resized(ImageSize image, const Rect& window, ImageSize to,
             const Filters& filters = {}) {
  View view(image);
  view.Crop(window);
  view.Resize(to, filters);
  return view;
}

TEST(MostHalvings, IsWhatTheWindowIsLargerByAlongBothAxes) {
  const ImageSize image{3000, 4000};
  const auto of = [&](int64_t height, int64_t width, ImageSize to) {
    return Resized(image, {0, 0, width, height}, to).MostHalvings();
  };
  EXPECT_EQ(of(3000, 4000, {224, 224}), 3);
  EXPECT_EQ(of(1792, 1792, {224, 224}), 3);  // exactly
  EXPECT_EQ(of(1791, 4000, {224, 224}), 2);
  EXPECT_EQ(of(4 * 224, 4 * 224 - 1, {224, 224}), 1);
  EXPECT_EQ(of(448, 448, {224, 224}), 1);
  EXPECT_EQ(of(447, 448, {224, 224}), 0);
  EXPECT_EQ(of(100, 100, {224, 224}), 0);
  EXPECT_EQ(of(8, 8, {1, 1}), 3);
  EXPECT_EQ(of(7, 8, {1, 1}), 2);
}

// It depends on sizes alone, not on the filter or the rule.
TEST(HalvingsOfAll, IsThatOfTheWholeImageWhateverTheWindow) {
  const ImageSize image{3000, 4000}, to{224, 224};
  for (const Rect& window :
       {Rect{0, 0, 4000, 3000}, Rect{7, 5, 300, 400}, Rect{0, 0, 224, 224}})
    EXPECT_EQ(Resized(image, window, to).HalvingsOfAll(image), 3);
  EXPECT_EQ(View(image).HalvingsOfAll(image), 0) << "nothing is resized";
  EXPECT_EQ(Resized(image, {0, 0, 4000, 3000}, {750, 100}).HalvingsOfAll(image),
            2);
}

TEST(MostHalvings, LooksAtNothingButSizes) {
  for (const Filter filter : {Filter::kNearest, Filter::kLanczos3})
    for (const bool antialias : {false, true})
      for (const bool dali : {false, true}) {
        const Filters filters{filter, filter, antialias, dali};
        EXPECT_EQ(Resized({800, 800}, {0, 0, 500, 500}, {100, 100}, filters)
                      .MostHalvings(),
                  2);
      }
  View view(ImageSize{800, 800});
  EXPECT_EQ(view.MostHalvings(), 0);
  view.Crop({0, 0, 500, 500});
  EXPECT_EQ(view.MostHalvings(), 0);
  // For a region, the region's size counts.
  view.Resize({{10, 10}, {0, 41}, {300.5, 420.5}}, {});
  EXPECT_EQ(view.MostHalvings(), 2);
  // Crops after the resize do not count.
  view.Crop({3, 3, 2, 2});
  EXPECT_EQ(view.MostHalvings(), 2);
}

TEST(HalvedView, KeepsItsPlaceToFractionsOfAPixel) {
  const StoredSize stored(3000, 4030);
  View view = Resized(stored, {1003, 640, 1000, 999}, {224, 224});
  ASSERT_EQ(view.MostHalvings(), 2);
  const Orientation as_stored;
  view.Halve(as_stored.Across(stored, 2), as_stored.Down(stored, 2));
  // Columns 250.75 to 500.75, rows 160 to 409.75.
  EXPECT_EQ(view.before(), (Rect{251, 160, 250, 250}));
  EXPECT_EQ(view.across().begin, -0.25);
  EXPECT_EQ(view.across().end, 249.75);
  EXPECT_EQ(view.across().in, 250);
  EXPECT_EQ(view.down().begin, 0);
  EXPECT_EQ(view.down().end, 249.75);
  EXPECT_EQ(view.down().in, 250);
  EXPECT_EQ(view.size(), (ImageSize{224, 224}));
}

// Pixels are grouped from the stored image's first on, which is the last one of
// a mirrored image. So of 4030 columns the last group has 6: it is the first.
TEST(HalvedView, GroupsAreTheStoredImagesWhereItIsMirrored) {
  const StoredSize stored(3000, 4030);
  View view = Resized(stored, {0, 0, 4030, 3000}, {224, 224});
  const Orientation mirrored{false, true, false};
  view.Halve(mirrored.Across(stored, 3), mirrored.Down(stored, 3));
  EXPECT_EQ(view.before(), (Rect{0, 0, 504, 375}));
  EXPECT_EQ(view.across().begin, 0.25);
  EXPECT_EQ(view.across().end, 504);
}

// Less than half of a group at the image's end is left out: an encoder has
// padded it.
TEST(HalvedView, HasPixelsWhoseMiddleIsInside) {
  for (const auto& [width, columns] :
       {std::pair{803, 100}, {804, 101}, {805, 101}}) {
    const StoredSize stored(800, width);
    View view = Resized(stored, {0, 0, width, 800}, {100, 100});
    view.Halve(Orientation().Across(stored, 3), Orientation().Down(stored, 3));
    EXPECT_EQ(view.before(), (Rect{0, 0, columns, 100})) << width;
    // The same pixels if the image is mirrored.
    View back = Resized(stored, {0, 0, width, 800}, {100, 100});
    const Orientation mirrored{false, true, false};
    back.Halve(mirrored.Across(stored, 3), mirrored.Down(stored, 3));
    EXPECT_EQ(back.before(), (Rect{101 - columns, 0, columns, 100})) << width;
  }
}

TEST(HalvedView, StaysInsideTheSmallerImage) {
  std::mt19937 random(5);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  int halved = 0;
  for (int i = 0; i < 20'000; ++i) {
    const StoredSize stored(1 + below(300), 1 + below(300));
    const Orientation turn = Orientation::Of(1 + static_cast<int>(below(8)));
    const TurnedSize size = turn.Turned(stored);
    Rect window{.width = 1 + below(size.width),
                .height = 1 + below(size.height)};
    window.x = below(2) ? below(size.width - window.width + 1)
                        : size.width - window.width;
    window.y = below(size.height - window.height + 1);
    View view(size);
    view.Crop(window);
    const ImageSize to{1 + below(40), 1 + below(40)};
    Resizing resizing{to,
                      {0, static_cast<double>(window.height)},
                      {0, static_cast<double>(window.width)}};
    if (below(3) == 0) {  // a region, perhaps widened beyond the image
      const double part = static_cast<double>(below(100)) / 100;
      resizing.rows.begin += part * 0.4 * static_cast<double>(window.height);
      const double more = static_cast<double>(below(49)) / 100 *
                          static_cast<double>(window.width) /
                          static_cast<double>(to.width);
      resizing.columns.begin -= more;
      resizing.columns.end += more;
    }
    view.Resize(resizing, {});
    for (int h = 1; h <= view.MostHalvings(); ++h, ++halved) {
      View less = view;
      less.Halve(turn.Across(stored, h), turn.Down(stored, h));
      const TurnedSize small = turn.Turned(Halved(stored, h));
      const Rect& part = less.before();
      ASSERT_GE(part.x, 0);
      ASSERT_GE(part.y, 0);
      ASSERT_GT(part.width, 0);
      ASSERT_GT(part.height, 0);
      ASSERT_LE(part.x + part.width, small.width);
      ASSERT_LE(part.y + part.height, small.height);
      ASSERT_EQ(less.across().in, part.width);
      ASSERT_EQ(less.down().in, part.height);
      ASSERT_NEAR(less.across().step(), view.across().step() / (1 << h), 1e-9);
      // Tables need the middles of outputs within half a pixel of the axis.
      for (const ResampleAxis& axis : {less.across(), less.down()}) {
        ASSERT_GT(axis.begin + axis.step() / 2, -0.5);
        ASSERT_LT(axis.end - axis.step() / 2, axis.in + 0.5);
      }
    }
  }
  EXPECT_GT(halved, 5000);
}

}  // namespace
}  // namespace leat::worker
