// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/long_list.h"

#include <numeric>

#include "core/pipeline/arguments.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using Ints = std::vector<int64_t>;

Ints Numbers(size_t count) {
  Ints numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Graph FilesOf(Value files, Value labels) {
  Graph graph;
  graph.nodes = {
      {"readers.files",
       {},
       {{"files", std::move(files)}, {"labels", std::move(labels)}}}};
  graph.outputs = {{"label", {0, 1}}};
  return graph;
}

std::string Refusal(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(Message(status));
}

std::string RefusedToShorten(Graph graph) {
  return Refusal(ShortenLists(&graph));
}

TEST(LongList, KeepsItsEntriesAndIsGolden) {
  const Texts texts = {"/a.jpg", "", "/c\xc3\xa9 d.jpg", "/e.jpg"};
  const LongList list = *LongListOf(texts);
  EXPECT_EQ(TextsOf(list), texts);
  EXPECT_EQ(list.count, 4);
  EXPECT_THAT(list.first, ElementsAre("/a.jpg", "", "/c\xc3\xa9 d.jpg"));
  const Ints ints = {-1, 0, int64_t{1} << 62, 7};
  const LongList numbers = *LongListOf(ints);
  EXPECT_EQ(IntsOf(numbers), ints);
  EXPECT_THAT(numbers.first, ElementsAre("-1", "0", "4611686018427387904"));
  EXPECT_EQ(ToHex(list.digest),
            "ffe9774c03c4da615bcbf5a78cae762550b85503800e45d1263cccaa71c21c77");
  EXPECT_EQ(ToHex(numbers.digest),
            "145129f480aa8f24836d6298426d42d6c441f2c175760a84755f83781365dc55");
  EXPECT_EQ(CanonicalText(Node{"v", {}, {{"v", numbers}}}),
            fmt::format("v v=ints{{count=4 sha256={} "
                        "first=texts[\"-1\",\"0\",\"4611686018427387904\"]}}",
                        ToHex(numbers.digest)));
}

TEST(LongList, IsCutIntoBlocksThatAreNamedByTheirBytes) {
  const LongList list = *LongListOf(Numbers(300'000));
  ASSERT_EQ(list.blocks.size(), 3);
  std::string whole;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(HashOf(BlockOf(list, i)), list.blocks[i]);
    EXPECT_EQ(BlockBytes(list, i), BlockOf(list, i).size());
    whole += BlockOf(list, i);
  }
  EXPECT_EQ(*MakeLongList(LongList::Kind::kInts, whole), list);
  whole[whole.size() / 2] ^= 1;
  EXPECT_FALSE(*MakeLongList(LongList::Kind::kInts, whole) == list);
}

TEST(LongList, ValuesThatAreNoListAreRefused) {
  using Kind = LongList::Kind;
  EXPECT_THAT(Refusal(MakeLongList(Kind::kTexts, "a").status()),
              HasSubstr("cut off"));
  EXPECT_THAT(Refusal(MakeLongList(Kind::kTexts, "").status()),
              HasSubstr("cut off"));
  EXPECT_THAT(Refusal(MakeLongList(Kind::kInts, "1234567").status()),
              HasSubstr("cut off"));
  EXPECT_THAT(Refusal(MakeLongList(Kind::kInts, "").status()),
              HasSubstr("0 numbers: want 1 to 4194304"));
  EXPECT_THAT(Refusal(LongListOf(Texts{"a", std::string(4097, 'x')}).status()),
              HasSubstr("entry 1 has 4097 bytes: want at most 4096"));
}

TEST(LongList, WhatCameWithoutValuesHasTheSameDigestOrIsRefused) {
  const LongList list = *LongListOf(Numbers(200'000));
  const auto completed = [&](auto change) {
    LongList other = list;
    other.values = nullptr;
    other.digest = {};
    change(&other);
    const absl::Status status = CompleteLongList(&other);
    return status.ok() ? std::string(other == list ? "same" : "another")
                       : Refusal(status);
  };
  EXPECT_EQ(completed([](LongList*) {}), "same");
  EXPECT_EQ(completed([](LongList* l) { l->blocks[1][0] ^= 1; }), "another");
  EXPECT_EQ(completed([](LongList* l) { l->first[0] = "x"; }), "another");
  EXPECT_THAT(completed([](LongList* l) { l->count = 0; }),
              HasSubstr("0 numbers: want 1 to"));
  EXPECT_THAT(completed([](LongList* l) { l->count = ~uint64_t{0}; }),
              HasSubstr("want 1 to"));
  EXPECT_THAT(completed([](LongList* l) { l->count = 199'999; }),
              HasSubstr("do not fit"));
  EXPECT_THAT(completed([](LongList* l) { l->bytes = ~uint64_t{0}; }),
              HasSubstr("bytes: want 1 to"));
  EXPECT_THAT(completed([](LongList* l) { l->blocks.pop_back(); }),
              HasSubstr("do not fit"));
  EXPECT_THAT(completed([](LongList* l) { l->first.clear(); }),
              HasSubstr("0 entries shown: want the first 3"));
  EXPECT_THAT(completed([](LongList* l) { l->first[2] = std::string(1, 0); }),
              HasSubstr("none of them 0"));
  EXPECT_THAT(
      completed([](LongList* l) { l->kind = static_cast<LongList::Kind>(3); }),
      HasSubstr("kind 3"));
}

TEST(ShortenLists, OnlyWhatAMessageDoesNotTakeIsShortened) {
  Graph graph = FilesOf(Texts(5000, "a"), Numbers(5000));
  const Graph given = graph;
  ASSERT_TRUE(ShortenLists(&graph).ok());
  EXPECT_EQ(graph.nodes[0].args.at("files"), given.nodes[0].args.at("files"));
  const auto& labels = std::get<LongList>(graph.nodes[0].args.at("labels"));
  EXPECT_EQ(IntsOf(labels), Numbers(5000));
  EXPECT_TRUE(Check(graph).ok()) << Check(graph).status();
  Graph again = graph;
  ASSERT_TRUE(ShortenLists(&again).ok());
  EXPECT_EQ(again, graph);

  Graph least = FilesOf(Texts(65'536, "a"), Numbers(4096));
  const Graph before = least;
  ASSERT_TRUE(ShortenLists(&least).ok());
  EXPECT_EQ(least, before);
  Graph more = FilesOf(Texts(65'537, "a"), Ints{});
  ASSERT_TRUE(ShortenLists(&more).ok());
  EXPECT_TRUE(std::holds_alternative<LongList>(more.nodes[0].args.at("files")));
}

TEST(ShortenLists, FewTextsThatAreTooLargeForAMessageAreShortenedToo) {
  Graph graph = FilesOf(Texts(4000, std::string(2000, 'a')), Ints{});
  ASSERT_TRUE(ShortenLists(&graph).ok());
  EXPECT_TRUE(
      std::holds_alternative<LongList>(graph.nodes[0].args.at("files")));
  Graph small = FilesOf(Texts(3500, std::string(2000, 'a')), Ints{});
  ASSERT_TRUE(ShortenLists(&small).ok());
  EXPECT_TRUE(std::holds_alternative<Texts>(small.nodes[0].args.at("files")));
}

TEST(ShortenLists, EntriesAreCheckedAsThoseOfShortLists) {
  Ints labels = Numbers(5000);
  labels[4321] = -2;
  EXPECT_THAT(RefusedToShorten(FilesOf(Texts(5000, "a"), labels)),
              HasSubstr("readers.files: argument labels: entry 4321: -2, want "
                        "integers 0 to"));
  Texts files(70'000, "a");
  files[69'999] = std::string("a\0b", 3);
  EXPECT_THAT(RefusedToShorten(FilesOf(files, Ints{})),
              HasSubstr("argument files: entry 69999: 3 bytes, want at most "
                        "4096 and none of them 0"));
  files[69'999] = "\xff";
  EXPECT_THAT(RefusedToShorten(FilesOf(files, Ints{})),
              HasSubstr("entry 69999: is no UTF-8"));
  EXPECT_THAT(RefusedToShorten(FilesOf(Texts(5000, "a"), Texts(70'000, "1"))),
              HasSubstr("argument labels: 70000 values, want integers"));
}

TEST(ShortenLists, ABoundThatRemainsSaysTheWayOut) {
  EXPECT_THAT(
      RefusedToShorten(FilesOf(Texts{"a"}, Ints(kMaxListEntries + 1))),
      AllOf(HasSubstr("argument labels: 4194305 values: at most 4194304"),
            HasSubstr("readers.file_list reads a list of any length")));
  Graph other = FilesOf(Texts{"a"}, Ints{});
  other.nodes.push_back({"slice", {{0, 1}}, {{"start", Ints(5000)}}});
  EXPECT_THAT(RefusedToShorten(other),
              HasSubstr("slice: argument start: 5000 values: at most 4096"));
  Graph many = FilesOf(Texts{"a"}, Numbers(5000));
  many.nodes.resize(17, many.nodes[0]);
  EXPECT_THAT(RefusedToShorten(many),
              HasSubstr("a pipeline of 17 long lists: at most 16"));
}

TEST(ShortenLists, ALongListIsNoArgumentWhereNoneIsData) {
  const LongList texts = *LongListOf(Texts{"a", "b"});
  const LongList ints = *LongListOf(Ints{1, 2});
  const auto refused = [](const Graph& graph) {
    return Refusal(Check(graph).status());
  };
  EXPECT_THAT(refused(FilesOf(ints, Ints{})),
              HasSubstr("a list of 2 entries, want texts"));
  EXPECT_THAT(refused(FilesOf(texts, texts)),
              HasSubstr("a list of 2 entries, want integers"));
  EXPECT_THAT(refused(FilesOf(texts, Ints{1})),
              HasSubstr("1 label for 2 files"));
  Graph root = FilesOf(Texts{"a"}, Ints{});
  root.nodes[0].args["root"] = texts;
  EXPECT_THAT(refused(root), HasSubstr("a list of 2 entries, want text"));
}

}  // namespace
}  // namespace leat
