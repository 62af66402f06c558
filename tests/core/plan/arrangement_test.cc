// SPDX-License-Identifier: Apache-2.0
#include "core/plan/arrangement.h"

#include <numeric>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

std::string ErrorOf(const Arrangement& arrangement) {
  const absl::Status status = CheckArrangement(arrangement);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(Message(status));
}

TEST(Arrangement, EqualRangesHaveEqualTexts) {
  const Arrangement range{.samples = {.begin = 3, .end = 10, .step = 3}};
  EXPECT_EQ(CanonicalText(range), "samples range 3 9 3\n");
  EXPECT_EQ(CanonicalText({.samples = {.begin = 3, .end = 12, .step = 3}}),
            CanonicalText(range));
  EXPECT_EQ(CanonicalText({.samples = {.begin = 5, .end = 6, .step = 7}}),
            "samples range 5 5 7\n");
}

TEST(Arrangement, AListStandsInTheTextByItsHash) {
  const std::string text = CanonicalText({.samples = {.list = {1, 2}}});
  EXPECT_EQ(text.size(), std::string("samples list 2 \n").size() + 64);
  EXPECT_NE(text, CanonicalText({.samples = {.list = {2, 1}}}));
}

TEST(Arrangement, AFileStandsInTheTextByItsPlaceOrWithoutIt) {
  const Arrangement file{.samples = {.uri = "s3://b/\"x\".npy"},
                         .where = "3 <  width"};
  EXPECT_EQ(CanonicalText(file),
            "samples file \"s3://b/\\\"x\\\".npy\"\nwhere \"width > 3\"\n");
  EXPECT_EQ(CanonicalText(file, /*place=*/false),
            "samples file\nwhere \"width > 3\"\n");
}

TEST(Arrangement, GroupsStandInTheTextBehindWhatIsChosen) {
  EXPECT_EQ(CanonicalText({.where = "a == 1", .by = " length( a )"}),
            "where \"a == 1\"\nby \"length(a)\"\n");
  EXPECT_EQ(CanonicalText({.where = "a == 1", .by_class = true}),
            "where \"a == 1\"\nby class\n");
  const std::string text = CanonicalText({.weights = {.list = {1, 0.5}}});
  EXPECT_EQ(text.size(), std::string("weights list 2 \n").size() + 64);
  EXPECT_NE(text, CanonicalText({.weights = {.list = {0.5, 1}}}));
  const Arrangement file{.weights = {.uri = "/w.npy"}};
  EXPECT_EQ(CanonicalText(file), "weights file \"/w.npy\"\n");
  EXPECT_EQ(CanonicalText(file, /*place=*/false), "weights file\n");
  for (const Arrangement& each :
       {Arrangement{.by_class = true}, Arrangement{.by = "a"}, file})
    EXPECT_TRUE(IsSet(each) && IsGrouped(each) && !Chooses(each));
}

TEST(Arrangement, IsShownOnOneLine) {
  EXPECT_EQ(ShownText({.samples = {.begin = 0, .end = 10, .step = 1}}), "0:10");
  EXPECT_EQ(ShownText({.samples = {.begin = 0, .end = 10, .step = 2}}),
            "0:10:2");
  EXPECT_EQ(ShownText({.samples = {.list = {4, 5}}}), "2 samples");
  EXPECT_EQ(ShownText({.samples = {.uri = "https://u:p@h/n.npy?key=5"},
                       .where = "a == 1"}),
            "samples of https://h/n.npy where a == 1");
  EXPECT_EQ(ShownText({.where = "a == 1", .by_class = true}),
            "where a == 1 by class");
  EXPECT_EQ(ShownText({.by = "label"}), "by label");
  EXPECT_EQ(ShownText({.weights = {.list = {1, 2}}}), "2 weights");
  EXPECT_EQ(ShownText({.weights = {.uri = "https://u:p@h/w.npy?key=5"}}),
            "weights of https://h/w.npy");
  std::string where = "a == 0";
  for (int i = 1; i < 50; ++i) where += fmt::format(" or a == {}", i);
  EXPECT_EQ(ShownText({.where = where}),
            "where a == 0 or a == 1 or a == 2 or a == 3 or a == 4 or a == 5 or "
            "...");
  EXPECT_EQ(ShownText({.where = std::string(1000, 'a') + " == 1"}),
            "where " + std::string(60, 'a') + " ...");
}

TEST(Arrangement, IsCheckedWithoutADataset) {
  EXPECT_EQ(ErrorOf({.samples = {.list = {3, 1, 3}}}),
            "samples has 3 twice: want each number once");
  EXPECT_EQ(ErrorOf({.samples = {.begin = 5, .end = 5, .step = 1}}),
            "samples: range(5, 5, 1) is empty: want samples");
  EXPECT_EQ(ErrorOf({.samples = {.begin = 5, .end = 9}}),
            "samples: range(5, 9, 0): want a step of 1 or more");
  EXPECT_EQ(ErrorOf({.samples = {.begin = 5, .end = ~0ull, .step = 1}}),
            "samples: range(5, 18446744073709551615, 1): want numbers below "
            "281474976710656");
  EXPECT_EQ(ErrorOf({.samples = {.list = {1}, .uri = "/x.npy"}}),
            "samples: 2 of a range, a list and a file: want one of them");
  std::vector<uint64_t> list(kMaxListedNumbers + 1);
  std::iota(list.begin(), list.end(), 0);
  EXPECT_EQ(ErrorOf({.samples = {.list = list}}),
            "samples: a list of 100001: want at most 100000, a range, or a "
            ".npy file");
  EXPECT_EQ(ErrorOf({.where = "a ="}).substr(0, 11), "where: = at");
  EXPECT_EQ(ErrorOf({.samples = {.begin = 0, .end = 5, .step = 2},
                     .where = "a == 1"}),
            "");
  EXPECT_FALSE(IsSet(Arrangement()));
}

TEST(Arrangement, GroupsAreCheckedWithoutADataset) {
  EXPECT_EQ(ErrorOf({.by = "label"}), "");
  EXPECT_EQ(ErrorOf({.by = "label", .weights = {.list = {1}}}),
            "select: 2 of groups by class, by a column, a list of weights and "
            "a file of weights: want one of them");
  EXPECT_EQ(ErrorOf({.weights = {.list = {1}, .uri = "/w.npy"}}).substr(0, 11),
            "select: 2 o");
  EXPECT_EQ(ErrorOf({.pack = PackNode{}, .by_class = true}),
            "weights: rows that are packed of several samples are in no group: "
            "want no weights with fn.pack");
  for (const char* by : {"a == 1", "a == 1 or a", "not a", "5", "`", "a b"})
    EXPECT_EQ(ErrorOf({.by = by}),
              fmt::format("by: {}: want the name of a column, as label, "
                          "length(tokens) or `odd name`",
                          by));
  EXPECT_EQ(ErrorOf({.weights = {.list = {1, -1}}}),
            "weights[1] = -1; want a number of 0 to 1e+100");
  EXPECT_EQ(ErrorOf({.weights = {.list = std::vector<double>(100'001)}}),
            "weights: a list of 100001: want at most 100000, or a .npy file");
}

}  // namespace
}  // namespace leat
