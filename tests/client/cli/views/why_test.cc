// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/why.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMixed = R"json([
  {"row": 1, "padding": false, "pass": 2, "partner_row": 0,
   "record": {"sample": 70, "root": "/data", "file": "a/\u001b[31m.jpg",
              "key": "", "size": 812, "shard": 3, "index_in_shard": 6},
   "partner": {"sample": 9, "root": "/data", "file": "b/9.tar", "key": "",
               "offset": 512, "size": 90, "index": 4, "shard": 0,
               "index_in_shard": 9},
   "draws": [
     {"node": 3, "op": "coin_flip", "name": "flip.horizontal", "values": [1.0],
      "text": "", "unknown": ""},
     {"node": 5, "op": "random_resized_crop", "name": "",
      "values": [3.0, 4.0, 100.0, 120.0], "text": "", "unknown": ""},
     {"node": 7, "op": "rand_augment", "name": "", "values": [],
      "text": "rotate(14.5)", "unknown": ""},
     {"node": 8, "op": "noise_shot", "name": "", "values": [], "text": "",
      "unknown": "each element has a draw of its own"}]}])json";

TEST(Why, OneRowIsShownInFullWithItsPartnerAndItsDraws) {
  Shell shell;
  shell.service.explained = kMixed;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--epoch", "2", "--step", "340",
                       "--row", "1"}),
            0)
      << shell.err;
  EXPECT_THAT(shell.service.calls, ElementsAre("explain resnet50 2 340 1"));
  for (const char* part :
       {"Row 1 of step 340 of epoch 2 of job resnet50", "/data/a/",
        "Partner: row 0", "/data/b/9.tar", "812", "512", "3, sample 6 in it",
        "%3", "coin_flip", "flip.horizontal", "y 3, x 4, 100 x 120 pixels",
        "rotate(14.5)", "? (each element has a draw of its own)"})
    EXPECT_THAT(shell.out, HasSubstr(part));
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b"))) << "names are hostile";
}

TEST(Why, AllRowsAreATable) {
  Shell shell;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "3"}), 0) << shell.err;
  EXPECT_THAT(shell.service.calls, ElementsAre("explain resnet50 0 3 all"));
  EXPECT_THAT(shell.out, HasSubstr("Step 3 of epoch 0 of job resnet50, files "
                                   "below /data"));
  EXPECT_THAT(shell.out, HasSubstr("record 2 at 64"));
  EXPECT_THAT(shell.out, HasSubstr("scale=0.25; random_crop=?"));
  EXPECT_THAT(shell.err, HasSubstr("--row R says more"));
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "3", "-o", "name"}), 0);
  EXPECT_EQ(shell.out, "/data/x.tfrecord\n-\n");
}

TEST(Why, RowsOfAMixtureHaveTheirSource) {
  Json rows = Json::parse(kMixed);
  rows[0]["record"]["source"] = "books";
  Shell shell;
  shell.service.explained = rows.dump();
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1", "--row", "1"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("Source"));
  EXPECT_THAT(shell.out, HasSubstr("books"));
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1"}), 0) << shell.err;
  EXPECT_THAT(shell.out, HasSubstr("SOURCE"));
  EXPECT_THAT(shell.out, HasSubstr("books"));
  shell.service.explained = kMixed;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("SOURCE")));
}

TEST(Why, RowsOfClassesHaveTheirClass) {
  Json rows = Json::parse(kMixed);
  rows[0]["record"]["source"] = "books";
  rows[0]["record"]["class_name"] = "poems";
  Shell shell;
  shell.service.explained = rows.dump();
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1", "--row", "1"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("Class"));
  EXPECT_THAT(shell.out, HasSubstr("poems"));
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1"}), 0) << shell.err;
  EXPECT_THAT(shell.out, ContainsRegex("ROW +SOURCE +CLASS +SAMPLE"));
  EXPECT_THAT(shell.out, ContainsRegex("books +poems"));
  shell.service.explained = kMixed;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("CLASS")));
}

constexpr const char* kPacked = R"json([
  {"row": 0, "padding": false, "pass": 0,
   "record": {"sample": 5, "root": "/data", "file": "web.bin", "key": "",
              "offset": 64, "size": 40, "index": 3, "shard": 0,
              "index_in_shard": 5,
              "documents": {"count": 4000, "first": 0, "listed": [
                {"document": 3, "root": "/data", "file": "web.bin", "key": "",
                 "offset": 64, "size": 40, "index": 3, "begin": 7,
                 "elements": 13, "row_begin": 0, "document_elements": 20},
                {"document": 9, "root": "/data", "file": "b\u001b[31m.bin",
                 "key": "", "index": 1, "begin": 0, "elements": 115,
                 "row_begin": 13, "document_elements": 116}]}},
   "draws": []}])json";

TEST(Why, APackedRowListsItsDocuments) {
  Shell shell;
  shell.service.explained = kPacked;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1", "--row", "0"}), 0)
      << shell.err;
  for (const char* part :
       {"Documents (4000)", "web.bin", "record 3 at 64", "115", "116",
        "and 3998 more; job.record(sample, first_document=2)"})
    EXPECT_THAT(shell.out, HasSubstr(part));
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b"))) << "names are hostile";
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1"}), 0) << shell.err;
  EXPECT_THAT(shell.out, HasSubstr("DOCUMENTS"));
  EXPECT_THAT(shell.out, HasSubstr("4000"));
}

TEST(Why, TheAnswerAsDataIsWhole) {
  Shell shell;
  shell.service.explained = kMixed;
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "340", "-o", "json"}), 0);
  const auto json = nlohmann::json::parse(shell.out, nullptr, false);
  EXPECT_EQ(json["job"], "resnet50");
  EXPECT_EQ(json["step"], 340);
  EXPECT_EQ(json["rows"], nlohmann::json::parse(kMixed));
}

TEST(Why, WhatIsWrongIsSaid) {
  Shell shell;
  EXPECT_EQ(shell.Run({"why", "resnet51", "--step", "1"}), 3);
  EXPECT_THAT(shell.err, HasSubstr("resnet50")) << "the near name";
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1", "--row", "2"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("row 2"));
  EXPECT_EQ(shell.Run({"why", "resnet50"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("--step"));
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1", "--row", "-1"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("-1"));
  shell.service.explained = "{}";
  EXPECT_EQ(shell.Run({"why", "resnet50", "--step", "1"}), 1);
}

}  // namespace
}  // namespace leat::cli
