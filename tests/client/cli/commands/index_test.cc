// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/index.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kReport[] = R"({"uri": "/data/train", "name": "train",
 "format": "image_folder", "args": {"path": "/data/train", "repeat": 1},
 "records": 500, "bytes": 52428800,
 "shards": {"count": 2, "least_records": 244, "most_records": 256},
 "classes": ["cat", "dog"],
 "fields": [{"name": "image", "type": "encoded image", "least_bytes": 100,
             "mean_bytes": 150, "most_bytes": 200},
            {"name": "label", "type": "int32 scalar"}],
 "left_out": [], "fingerprint": "00ff", "content": "ab",
 "index": {"bytes": 2048, "blocks": 3}, "records_read": 100,
 "bad_records": 0, "bad": []})";

struct Indexing : ::testing::Test {
  Indexing() {
    shell.spawn = [this](const std::vector<std::string>& argv) {
      ran = argv;
      return ended;
    };
  }
  Shell shell;
  std::vector<std::string> ran;
  absl::StatusOr<Ended> ended = Ended{0, kReport, ""};
};

TEST_F(Indexing, AFolderWithoutClassFoldersHasNoLineOfClasses) {
  std::string report = kReport;
  const std::string classes = R"(["cat", "dog"])";
  report.replace(report.find(classes), classes.size(), R"([""])");
  ended = Ended{0, report, ""};
  ASSERT_EQ(shell.Run({"index", "/data/train"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("Classes")));
}

TEST_F(Indexing, ShowsWhatADatasetHolds) {
  ASSERT_EQ(shell.Run({"index", "/data/train"}), 0);
  EXPECT_THAT(ran, ElementsAre("leat-worker", "index", "--within-ms", "300000",
                               "--read", "100", "--", "/data/train"));
  EXPECT_THAT(shell.out, HasSubstr("Dataset      train\n"));
  EXPECT_THAT(shell.out, HasSubstr("Records      500\n"));
  EXPECT_THAT(shell.out, HasSubstr("Size         50.0 MiB\n"));
  EXPECT_THAT(shell.out, HasSubstr("Shards       2 of 244 to 256 records\n"));
  EXPECT_THAT(shell.out, HasSubstr("Classes      2: cat, dog\n"));
  EXPECT_THAT(shell.out, HasSubstr("Fingerprint  00ff\n"));
  EXPECT_THAT(shell.out, HasSubstr("Read         100 records, 0 bad\n"));
  EXPECT_THAT(shell.out, HasSubstr("encoded image"));
  EXPECT_THAT(shell.out, Not(HasSubstr("Bad records")));
  EXPECT_EQ(shell.err, "");
}

TEST_F(Indexing, PassesOnWhatIsKnownOfTheReader) {
  ASSERT_EQ(shell.Run({"index", "s3://b/t.parquet", "--format", "parquet",
                       "--arg", "columns=id", "--arg", "types=int64", "--read",
                       "5", "--within", "30s", "--daemon-dir", "/opt/leat"}),
            0);
  EXPECT_THAT(ran, ElementsAre("/opt/leat/leat-worker", "index", "--within-ms",
                               "30000", "--read", "5", "--format", "parquet",
                               "--arg", "columns=id", "--arg", "types=int64",
                               "--", "s3://b/t.parquet"));
}

TEST_F(Indexing, ShowsTheSeekIndexesThatAreWritten) {
  std::string report = kReport;
  report.replace(report.rfind('}'), 1,
                 R"(, "seek": {"path": "/data/train/.00ff.leat-seek",
                     "bytes": 1048576, "indexes": 499}})");
  ended = Ended{0, report, ""};
  ASSERT_EQ(shell.Run({"index", "/data/train", "--seek"}), 0);
  EXPECT_THAT(ran, Contains("--seek"));
  EXPECT_THAT(shell.out,
              HasSubstr("Seek indexes  499 of 500 records (1.0 MiB): "
                        "/data/train/.00ff.leat-seek\n"));
}

TEST_F(Indexing, ShowsHowLongDocumentsAreAndHowFullRowsWouldBe) {
  Json report = Json::parse(kReport);
  report["sequences"] = Json::parse(R"({"documents": 5, "elements": 12,
    "empty": 1, "least": 0, "mean": 2.4, "most": 6, "p1": 0, "p10": 0,
    "p50": 2, "p90": 6, "p99": 6, "packed": [
      {"length": 4, "rows": 3, "fill": 0.99984},
      {"length": 1, "error": "document 0 is too long"}]})");
  ended = Ended{0, report.dump(), ""};
  ASSERT_EQ(shell.Run({"index", "/data/train"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("5 of 12 elements in all, 1 empty"));
  EXPECT_THAT(shell.out, HasSubstr("0 to 6, mean 2.4"));
  EXPECT_THAT(shell.out, HasSubstr("1 % 0, 10 % 0, 50 % 2, 90 % 6, 99 % 6"));
  EXPECT_THAT(shell.out, HasSubstr("Packed into rows"));
  EXPECT_THAT(shell.out, HasSubstr("99.98"));
  EXPECT_THAT(shell.out, HasSubstr("document 0 is too long"));
  report["example"] = Json::parse(
      R"({"sample": 0, "record": "a.bin: document 0", "field_bytes": [4],
          "first": [1, 0]})");
  ended = Ended{0, report.dump(), ""};
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("leat-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "v.json") << R"json({"model": {"vocab":
      {"there": 0, "Hi\u001b": 1}}})json";
  EXPECT_EQ(shell.Run({"inspect", "a.bin", "--row-length", "4", "--row-length",
                       "1", "--vocabulary", folder / "v.json"}),
            0)
      << shell.err;
  EXPECT_THAT(shell.out, HasSubstr("Text of sample 0, the first 2 tokens"));
  EXPECT_THAT(shell.out, HasSubstr("Hi\\x1b there"));
  EXPECT_THAT(ran, Contains("--row-length").Times(2));
  report["example"].erase("first");
  ended = Ended{0, report.dump(), ""};
  EXPECT_EQ(shell.Run({"inspect", "a.bin", "--vocabulary", folder / "v.json"}),
            2);
  EXPECT_THAT(shell.err, HasSubstr("no sequences of whole numbers"));
  std::filesystem::remove_all(folder);
}

TEST_F(Indexing, InspectsTheRowsThatAPipelinePacks) {
  Json report = Json::parse(kReport);
  report["sequences"] = Json::parse(R"({"documents": 5, "elements": 12,
    "empty": 0, "least": 1, "mean": 2.4, "most": 6, "p1": 1, "p10": 1,
    "p50": 2, "p90": 6, "p99": 6, "packed": [
      {"how": "cut", "length": 4, "rows": 3, "fill": 1}]})");
  ended = Ended{0, report.dump(), ""};
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("leat-{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string file = folder / "job.json";
  for (const char* json :
       {R"({"nodes": [], "outputs": []})", R"({"pipeline": {}})",
        R"({"sources": []})", R"({"job": {"spec": {}}})"}) {
    std::ofstream(file) << json;
    ASSERT_EQ(shell.Run({"inspect", file, "--source", "web"}), 0) << shell.err;
    EXPECT_THAT(ran, ElementsAre("leat-worker", "index", "--within-ms", "30000",
                                 "--pipeline", file, "--source", "web"));
  }
  EXPECT_THAT(shell.out, HasSubstr("Packed into rows with how=\"cut\""));
  EXPECT_EQ(shell.Run({"inspect", file, "--row-length", "4"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("says how long its rows are"));
  std::ofstream(file) << R"({"step": 5})";
  EXPECT_EQ(shell.Run({"inspect", file, "--source", "web"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("is no file with a job"));
  std::filesystem::remove_all(folder);
}

TEST_F(Indexing, ARelativePathBecomesTheOneThatAWorkerWouldRead) {
  ASSERT_EQ(shell.Run({"index", "photos"}), 0);
  EXPECT_EQ(ran.back(), std::filesystem::current_path() / "photos");
}

TEST_F(Indexing, BadRecordsAreShownAndUnhealthy) {
  Json report = Json::parse(kReport);
  report["bad_records"] = 1;
  report["bad"] = Json::parse(
      R"([{"sample": 7, "record": "cat/a.jpg", "error": "cut off"}])");
  ended = Ended{0, report.dump(), ""};
  EXPECT_EQ(shell.Run({"index", "/data/train"}), 6);
  EXPECT_THAT(shell.out, HasSubstr("Bad records (1 of 100 that were read)"));
  EXPECT_THAT(shell.out, HasSubstr("cut off"));
  EXPECT_EQ(shell.Run({"index", "/data/train", "-o", "json"}), 6);
  EXPECT_EQ(Json::parse(shell.out).at("bad_records"), 1);
}

TEST_F(Indexing, TheWorkersErrorDecidesTheExitCode) {
  ended =
      Ended{1, R"({"error": {"code": 5, "message": "/x: no such path"}})", ""};
  EXPECT_EQ(shell.Run({"index", "/x"}), 3);
  EXPECT_THAT(shell.err, HasSubstr("leat: index: /x: no such path"));
  EXPECT_THAT(shell.err, Not(HasSubstr("LEAT_COORDINATOR")));
  ended = Ended{1, R"({"error": {"code": 4, "message": "out of time"}})", ""};
  EXPECT_EQ(shell.Run({"index", "/x"}), 4);
  EXPECT_THAT(shell.err, Not(HasSubstr("leat status")));
  ended = Ended{139, "", "crashed"};
  EXPECT_EQ(shell.Run({"index", "/x"}), 1);
  EXPECT_THAT(shell.err, HasSubstr("ended with 139: crashed"));
  ended = NotFound("there is no program leat-worker on the PATH");
  EXPECT_EQ(shell.Run({"index", "/x"}), 3);
  EXPECT_THAT(shell.err, HasSubstr("--daemon-dir names its folder"));
  EXPECT_EQ(shell.Run({"index"}), 2);
}

TEST_F(Indexing, ATerminalSeesHowFarItIs) {
  shell.terminal = true;
  ASSERT_EQ(shell.Run({"index", "/data/train"}), 0);
  EXPECT_THAT(ran, Contains("--progress"));
  EXPECT_THAT(shell.err, HasSubstr("\r1 s: 5 records\x1b[K"));
}

}  // namespace
}  // namespace leat::cli
