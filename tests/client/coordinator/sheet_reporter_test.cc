// SPDX-License-Identifier: Apache-2.0
//
// Rows of a batch as small previews, on request.
#include "client/coordinator/sheet_reporter.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

class SheetReporterTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 20, kSide = 8;
  SheetReporterTest() {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t i = 0; i < kSide * kSide * 3; ++i)
        pixels_.push_back(static_cast<std::byte>(10 * row));
    for (int64_t row = 0; row < kRows; ++row) labels_.push_back(row % 3);
  }
  std::vector<FieldRows> Fields() const {
    return {
        {"image", "uint8", image_shape_, pixels_},
        {"label", "int32", label_shape_, std::as_bytes(std::span(labels_))}};
  }
  auto Origin() const {
    return [this](size_t) { return RowOrigin{"", classes_}; };
  }
  static RowOrigin NoOrigin(size_t) { return {}; }
  static v1::WantSheet Wish(uint64_t number, uint32_t rows, uint32_t side) {
    v1::WantSheet wish;
    wish.set_number(number);
    wish.set_rows(rows);
    wish.set_side(side);
    return wish;
  }

  const std::vector<int64_t> image_shape_ = {kRows, kSide, kSide, 3};
  const std::vector<int64_t> label_shape_ = {kRows};
  const std::vector<std::string> classes_ = {"cat", "dog"};
  std::vector<std::byte> pixels_;
  std::vector<int32_t> labels_;
  SheetReporter reporter_;
};

TEST_F(SheetReporterTest, AWishIsAnsweredOnceByTheFirstRows) {
  EXPECT_FALSE(reporter_.wanted());
  reporter_.Answer(0, 1, Fields(), Origin());
  EXPECT_EQ(reporter_.Take(), std::nullopt);
  reporter_.Begin(Wish(5, 4, 4));
  EXPECT_TRUE(reporter_.wanted());
  reporter_.Answer(2, 3, Fields(), Origin());
  EXPECT_FALSE(reporter_.wanted());
  const auto sheet = reporter_.Take();
  ASSERT_TRUE(sheet.has_value());
  EXPECT_EQ(sheet->number(), 5u);
  EXPECT_EQ(sheet->epoch(), 2u);
  EXPECT_EQ(sheet->step(), 3u);
  EXPECT_EQ(sheet->field(), "image");
  ASSERT_EQ(sheet->tiles_size(), 4);
  EXPECT_EQ(sheet->tiles(2).width(), 4u);
  EXPECT_EQ(sheet->tiles(2).rgb(), std::string(4 * 4 * 3, 20));
  EXPECT_EQ(sheet->tiles(0).label(), "cat");
  EXPECT_EQ(sheet->tiles(1).label(), "dog");
  EXPECT_EQ(sheet->tiles(2).label(), "2");  // a class without a name
  EXPECT_EQ(reporter_.Take(), std::nullopt);
}

TEST_F(SheetReporterTest, RowsOfAMixtureHaveTheirSourceAndItsClasses) {
  const std::vector<std::string> books = {"page", "cover", "spine"};
  const auto origin = [&](size_t row) {
    return row % 2 == 0 ? RowOrigin{"web", classes_}
                        : RowOrigin{"books", books};
  };
  reporter_.Begin(Wish(1, 4, 4));
  reporter_.Answer(0, 0, Fields(), origin);
  const auto sheet = reporter_.Take();
  ASSERT_EQ(sheet->tiles_size(), 4);
  EXPECT_EQ(sheet->tiles(0).label(), "web: cat");
  EXPECT_EQ(sheet->tiles(1).label(), "books: cover");
  EXPECT_EQ(sheet->tiles(2).label(), "web: 2");
  reporter_.Begin(Wish(2, 4, 4));
  reporter_.Answer(0, 0, std::vector<FieldRows>{Fields()[0]}, origin);
  EXPECT_EQ(reporter_.Take()->tiles(1).label(), "books");
}

TEST_F(SheetReporterTest, BoundsHoldWhateverIsWished) {
  reporter_.Begin(Wish(1, 1'000'000, 1'000'000));
  reporter_.Answer(0, 0, Fields(), NoOrigin);
  const auto large = reporter_.Take();
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->tiles_size(), static_cast<int>(SheetReporter::kMaxRows));
  EXPECT_EQ(large->tiles(0).width(), 8u);
  reporter_.Begin(Wish(2, 0, 0));
  reporter_.Answer(0, 0, Fields(), NoOrigin);
  const auto small = reporter_.Take();
  ASSERT_TRUE(small.has_value());
  ASSERT_EQ(small->tiles_size(), 1);
  EXPECT_EQ(small->tiles(0).width(), 1u);
  EXPECT_EQ(small->tiles(0).label(), "0");
}

TEST_F(SheetReporterTest, SaysWhyThereIsNone) {
  reporter_.Begin(Wish(1, 4, 4));
  const std::vector<FieldRows> labels = {Fields()[1]};
  reporter_.Answer(0, 0, labels, Origin());
  EXPECT_THAT(reporter_.Take()->why_not(), HasSubstr("no image"));
  reporter_.Begin(Wish(2, 4, 4));
  reporter_.Refuse(0, 9, "in GPU memory");
  const auto refused = reporter_.Take();
  EXPECT_EQ(refused->why_not(), "in GPU memory");
  EXPECT_EQ(refused->step(), 9u);
  EXPECT_EQ(refused->number(), 2u);
}

TEST_F(SheetReporterTest, TheNewestWishCounts) {
  reporter_.Begin(Wish(1, 4, 4));
  reporter_.Begin(Wish(2, 2, 4));
  reporter_.Answer(0, 0, Fields(), Origin());
  const auto sheet = reporter_.Take();
  EXPECT_EQ(sheet->number(), 2u);
  EXPECT_EQ(sheet->tiles_size(), 2);
}

}  // namespace
}  // namespace leat::client
