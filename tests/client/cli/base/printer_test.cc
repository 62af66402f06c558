// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/printer.h"

#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"
#include "yaml-cpp/yaml.h"

namespace leat::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns every command that prints a View.
std::vector<std::vector<std::string>> ViewCommands() {
  return {{"status"},
          {"get", "workers"},
          {"get", "jobs"},
          {"get", "datasets"},
          {"get", "shards", "train"},
          {"get", "consumers"},
          {"get", "pools"},
          {"describe", "worker", "node1"},
          {"describe", "job", "resnet50"},
          {"describe", "dataset", "train"},
          {"why", "resnet50", "--step", "3"},
          {"bottleneck", "resnet50"},
          {"health"},
          {"inspect", LEAT_SOURCE_DIR "/docs/images"}};
}

// Expects the same value from both formats.
void ExpectSame(const Json& json, const YAML::Node& yaml) {
  if (json.is_object()) {
    ASSERT_TRUE(yaml.IsMap()) << json;
    EXPECT_EQ(json.size(), yaml.size());
    for (const auto& [key, value] : json.items()) ExpectSame(value, yaml[key]);
  } else if (json.is_array()) {
    ASSERT_TRUE(yaml.IsSequence()) << json;
    ASSERT_EQ(json.size(), yaml.size());
    for (size_t i = 0; i < json.size(); ++i) ExpectSame(json[i], yaml[i]);
  } else if (json.is_string()) {
    EXPECT_EQ(yaml.as<std::string>(), json.get<std::string>());
  } else if (json.is_number()) {
    EXPECT_EQ(yaml.as<double>(), json.get<double>());
  }
}

TEST(Printer, EveryCommandPrintsEveryFormat) {
  for (std::vector<std::string> command : ViewCommands()) {
    SCOPED_TRACE(command[0] + " " + command.back());
    Shell shell;
    if (command[0] == "inspect")
      shell.spawn = [](const std::vector<std::string>&) {
        return Ended{0, R"({"format": "image_folder"})", ""};
      };
    std::map<std::string, std::string> printed;
    for (const std::string& format : FormatNames()) {
      command.insert(command.end(), {"-o", format});
      const int exit_code = shell.Run(command);
      EXPECT_TRUE(exit_code == 0 || command[0] == "inspect") << shell.err;
      printed[format] = shell.out;
      command.resize(command.size() - 2);
    }
    const Json json = Json::parse(printed["json"], nullptr, false);
    ASSERT_TRUE(json.is_object());
    ExpectSame(json, YAML::Load(printed["yaml"]));
    EXPECT_THAT(printed["table"], Not(IsEmpty()));
    EXPECT_GE(printed["wide"].size(), printed["table"].size());
    EXPECT_THAT(printed["name"], Not(HasSubstr(" ")));
  }
}

TEST(Printer, JsonKeepsTheServicesNamesAndTimes) {
  Shell shell;
  shell.Run({"get", "workers", "node1", "-o", "json"});
  const Json json = Json::parse(shell.out);
  ASSERT_EQ(json["workers"].size(), 1u);
  EXPECT_EQ(json["workers"][0]["joined_at"], "2026-11-21T01:00:00Z");
  EXPECT_EQ(json["workers"][0]["state"], "WORKER_STATE_READY");
}

TEST(Printer, JsonLinesHaveAnItemEach) {
  Shell shell;
  shell.Run({"get", "workers", "-o", "jsonl"});
  const std::vector<std::string> lines = Lines(shell.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(Json::parse(lines[1])["name"], "node2");
  shell.Run({"describe", "worker", "node1", "-o", "jsonl"});
  ASSERT_EQ(Lines(shell.out).size(), 1u);
  EXPECT_EQ(Json::parse(shell.out)["name"], "node1");
}

TEST(Printer, CsvHasEveryColumnAndQuotesWhatNeedsIt) {
  Shell shell;
  shell.terminal = true;
  shell.width = 40;
  shell.service.answers["workers"] =
      R"({"workers": [{"name": "a\"b,c", "host": "x\ny"}]})";
  shell.Run({"get", "workers", "-o", "csv"});
  const std::vector<std::string> lines = Lines(shell.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("NAME,STATE,"), HasSubstr("ADDRESS")));
  EXPECT_THAT(lines[1], ::testing::StartsWith("\"a\"\"b,c\","));
  EXPECT_THAT(lines[1], HasSubstr(",x\\ny,"));
  shell.Run({"describe", "dataset", "train", "-o", "csv"});
  EXPECT_THAT(shell.out, HasSubstr("Dataset,train\n"));
}

TEST(Printer, WhatIsKeptOfShardsIsAskedForByWide) {
  Shell shell;
  shell.Run({"get", "shards", "train"});
  EXPECT_THAT(shell.out, Not(HasSubstr("KEPT")));
  shell.Run({"get", "shards", "train", "-o", "wide"});
  const std::vector<std::string> lines = Lines(shell.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("KEPT"));
  EXPECT_THAT(lines[1], HasSubstr("88%"));
  EXPECT_THAT(lines[2], Not(HasSubstr("%"))) << "it is not known";
}

TEST(Printer, NamesAreOneALine) {
  Shell shell;
  shell.Run({"get", "jobs", "-o", "name"});
  EXPECT_EQ(shell.out, "resnet50\nstatus\n");
  shell.Run({"get", "shards", "train", "-o", "name"});
  EXPECT_EQ(shell.out, "0\n1\n");
  EXPECT_EQ(shell.service.calls.back(), "shards");
}

TEST(Printer, AnEmptyListSaysSoOnStderrOnly) {
  Shell shell;
  shell.service.answers["workers"] = R"({"workers": []})";
  EXPECT_EQ(shell.Run({"get", "workers"}), 0);
  EXPECT_THAT(shell.out, IsEmpty());
  EXPECT_THAT(shell.err, HasSubstr("leat-worker --coordinator"));
  EXPECT_EQ(shell.Run({"get", "workers", "-o", "json"}), 0);
  EXPECT_EQ(Json::parse(shell.out)["workers"].size(), 0u);
}

TEST(Printer, NoLineIsWiderThanTheTerminal) {
  for (const std::vector<std::string>& command : ViewCommands()) {
    // Names beside values, which are shown in full.
    if (command[0] == "describe" || command[0] == "inspect" ||
        command[0] == "bottleneck")
      continue;
    for (const size_t width : {20, 40, 60, 80, 100, 132, 200}) {
      Shell shell;
      shell.service.findings = R"([{"code": "X", "severity": "error",
        "summary": "a rather long text that needs more than one line of it",
        "remedy": "do what has to be done, and look again in a minute"}])";
      shell.width = width;
      shell.Run(command);
      for (const std::string& line : Lines(shell.out)) {
        if (line.starts_with("Coordinator")) continue;
        EXPECT_LE(DisplayWidth(line), width) << command.back() << "\n" << line;
      }
    }
  }
}

TEST(Printer, NarrowTablesDropTheLeastImportantColumnsFirst) {
  Shell shell;
  shell.terminal = true;
  shell.width = 80;
  shell.Run({"get", "workers"});
  EXPECT_THAT(shell.out, AllOf(HasSubstr("RATE(rows/s)"), HasSubstr("node1"),
                               Not(HasSubstr("ADDRESS"))));
  EXPECT_THAT(shell.err, AllOf(HasSubstr("ADDRESS"), HasSubstr("-o wide")));
  shell.Run({"get", "workers", "-o", "wide"});
  EXPECT_THAT(shell.out, AllOf(HasSubstr("ADDRESS"), HasSubstr("10.0.0.1")));
}

TEST(Printer, WhatIsCutIsMarkedAndNoColumnGoesUnsaid) {
  Shell shell;
  shell.terminal = true;
  shell.width = 40;
  shell.variables = {{"NO_COLOR", "1"}};
  const std::string name = std::string(60, 'n') + "-07";
  shell.service.answers["consumers"] = fmt::format(
      R"({{"consumers": [{{"consumer": "{}", "stats": {{"rows_per_s": 123}}}}]}})",
      name);
  shell.Run({"get", "consumers"});
  EXPECT_THAT(shell.out, AllOf(HasSubstr("…"), HasSubstr("-07"),
                               HasSubstr("RATE("), HasSubstr(" 123")));
  for (const std::string& line : Lines(shell.out))
    EXPECT_LE(DisplayWidth(line), 40u) << line;
  shell.width = 100;  // a long name does not displace other columns
  shell.Run({"get", "consumers"});
  EXPECT_THAT(shell.out,
              AllOf(HasSubstr("…"), HasSubstr("-07"), HasSubstr("STALL(%)"),
                    HasSubstr("WAIT P95(ms)")));
  // Output for a program is complete.
  shell.terminal = false;
  shell.width = 0;
  shell.Run({"get", "consumers"});
  EXPECT_THAT(shell.out, AllOf(HasSubstr(name), Not(HasSubstr("…"))));
}

TEST(Printer, NamesAreCutInTheirMiddle) {
  EXPECT_EQ(ClipMiddle("worker-07", 9), "worker-07");
  EXPECT_EQ(ClipMiddle("worker-of-a-pool-07", 9), "work…l-07");
  EXPECT_EQ(ClipMiddle("worker-of-a-pool-07", 2), "w…");
  const std::string wide = ClipMiddle("漢字漢字漢字漢字", 8);
  EXPECT_EQ(wide, "漢字…字");
  EXPECT_LE(DisplayWidth(wide), 8u);
}

TEST(Printer, AWorkerThatIsLostHasNoRate) {
  Shell shell;
  shell.service.answers["workers"] = R"({"workers": [
    {"name": "a", "state": "WORKER_STATE_LOST", "stats": {"rows_per_s": 991}},
    {"name": "b", "state": "WORKER_STATE_READY", "stats": {"rows_per_s": 7}}]})";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"get", "workers", "-o", "csv"},
        {"top", "workers", "--count", "1", "-o", "csv"}}) {
    ASSERT_EQ(shell.Run(command), 0) << shell.err;
    EXPECT_THAT(shell.out, AllOf(Not(HasSubstr("991")), HasSubstr(",7.0,")));
  }
}

TEST(Printer, LongValuesGoOnBelowThemselvesOrTheirNames) {
  for (const auto& [kind, name] :
       {std::pair("job", "resnet50"), std::pair("worker", "node1")}) {
    Shell shell;
    shell.width = 40;
    shell.Run({"describe", kind, name});
    const std::vector<std::string> narrow = Lines(shell.out);
    shell.width = 0;
    shell.Run({"describe", kind, name});
    EXPECT_GT(narrow.size(), Lines(shell.out).size());
    for (const std::string& line : narrow)
      EXPECT_TRUE(DisplayWidth(line) <= 40 ||
                  line.find(' ', line.rfind("  ") + 2) == std::string::npos)
          << line;
  }
}

TEST(Printer, ColorsAreForTerminalsUnlessToldOtherwise) {
  Shell shell;
  shell.Run({"status"});
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
  shell.Run({"status", "--color", "always"});
  EXPECT_THAT(shell.out, HasSubstr("\x1b[32m"));
  shell.terminal = true;
  shell.Run({"status"});
  EXPECT_THAT(shell.out, HasSubstr("\x1b[32m"));
  shell.Run({"status", "--color=never"});
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
  shell.variables = {{"NO_COLOR", "1"}};
  shell.Run({"status"});
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
  shell.variables = {{"TERM", "dumb"}};
  shell.Run({"status"});
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
}

TEST(Printer, NothingFromTheServiceReachesTheTerminalAsControl) {
  const std::string evil = R"(\u001b]0;x\u0007\u009b31m\u007f\r\n\u202e)";
  for (const std::string& format : FormatNames()) {
    Shell shell;
    shell.service.answers["workers"] = R"({"workers": [{"name": ")" + evil +
                                       R"(", "host": ")" + evil + R"("}]})";
    shell.Run({"get", "workers", "-o", format});
    for (size_t i = 0; i < shell.out.size(); ++i) {
      const auto byte = static_cast<uint8_t>(shell.out[i]);
      EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte != 0x7F)) << format;
      if (byte == 0xC2) {
        EXPECT_GE(static_cast<uint8_t>(shell.out[i + 1]), 0xA0) << format;
      }
    }
    EXPECT_LE(Lines(shell.out).size(), 100u);
  }
  Shell shell;
  shell.service.failing = {Internal("bad \x1b[2J text\n")};
  shell.Run({"get", "workers"});
  EXPECT_THAT(shell.err, Not(HasSubstr("\x1b")));
}

TEST(Describe, AJobShowsItsPipelinePlanAndBadSamples) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "job", "resnet50"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("Decoder class  exact"));
  EXPECT_THAT(shell.out, HasSubstr("000102030405060708090a0b0c0d0e0f1011121314"
                                   "15161718191a1b1c1d1e1f"));
  EXPECT_THAT(shell.out, HasSubstr("%3 = flip(%1, horizontal=%2, "
                                   "size=[224, 224])"));
  EXPECT_THAT(shell.out, HasSubstr("%0.1 -> \"label\""));
  EXPECT_THAT(shell.out, HasSubstr("image uint8 (224, 224, 3); label int32 "
                                   "()"));
  EXPECT_THAT(shell.out, HasSubstr("trainer0-77"));
  EXPECT_THAT(shell.out, HasSubstr("n01/a\\x1b[31m.jpg"));
  EXPECT_THAT(shell.out, HasSubstr("Limited by     decode and augment (58 s)"));
}

TEST(Describe, AJobOfAClassThatNotEverybodyHasTellsWhoHasIt) {
  Shell shell;
  std::string& jobs = shell.service.answers["jobs"];
  const std::string exact = "DECODER_CLASS_EXACT";
  jobs.replace(jobs.find(exact), exact.size(), "DECODER_CLASS_NVJPEG");
  ASSERT_EQ(shell.Run({"describe", "job", "resnet50"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("Decoder class  nvjpeg (0 of 1 ready "
                                   "workers have it)"));
  std::string& workers = shell.service.answers["workers"];
  workers.replace(workers.find(exact), exact.size(), "DECODER_CLASS_NVJPEG");
  ASSERT_EQ(shell.Run({"describe", "job", "resnet50"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("nvjpeg (1 of 1 ready workers has it)"));
}

TEST(Describe, AJobSaysWhichNodeKeepsItOnTheCores) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "job", "resnet50"}), 0);
  EXPECT_THAT(
      shell.out,
      HasSubstr("\nGPU            could be used, but no worker has one\n"));
  std::string& workers = shell.service.answers["workers"];
  const std::string name = R"("name": )";
  workers.replace(workers.find(name), 0, R"("devices": [{"name": "T4"}], )");
  ASSERT_EQ(shell.Run({"describe", "job", "resnet50"}), 0);
  EXPECT_THAT(
      shell.out,
      HasSubstr("\nGPU            used by the 1 worker that has one\n"));
  ASSERT_EQ(shell.Run({"describe", "job", "status"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("\nGPU            -\n"));  // not reported
  std::string& jobs = shell.service.answers["jobs"];
  const std::string yes = R"("GPU_USE_YES", "gpu_reason": "")";
  jobs.replace(jobs.find(yes), yes.size(),
               R"("GPU_USE_NO", "gpu_reason": "node 3 (flip) has no form")");
  ASSERT_EQ(shell.Run({"describe", "job", "resnet50"}), 0);
  EXPECT_THAT(shell.out,
              HasSubstr("\nGPU            no: node 3 (flip) has no form; GPU "
                        "workers compute this job on their cores\n"));
  for (const char* format : {"json", "yaml"}) {
    ASSERT_EQ(shell.Run({"describe", "job", "resnet50", "-o", format}), 0);
    EXPECT_THAT(shell.out, HasSubstr("GPU_USE_NO"));
    EXPECT_THAT(shell.out, HasSubstr("node 3 (flip) has no form"));
  }
}

TEST(Describe, AWorkerShowsWhatItAsksOfStorageIfItDoes) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "worker", "node1"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("1.0 MiB of 1.0 GiB, 75.0 % hits"));
  EXPECT_THAT(shell.out, HasSubstr("\nStorage\n"));
  EXPECT_THAT(shell.out, HasSubstr("Requests    5000\n"));
  EXPECT_THAT(shell.out, HasSubstr("Retries     12\n"));
  EXPECT_THAT(shell.out, HasSubstr("Hedges      3\n"));
  EXPECT_THAT(shell.out, HasSubstr("Disk cache  2.0 MiB, 90.0 % hits\n"));
  EXPECT_THAT(shell.out, HasSubstr("Read ahead  64 rows, 6.2 MiB\n"));
  ASSERT_EQ(shell.Run({"describe", "worker", "node2"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("Storage")));
}

TEST(Describe, AWorkerShowsWhatItKeepsOfEachDataset) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "worker", "node1"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("\nCached in memory\n"));
  EXPECT_THAT(shell.out, ::testing::ContainsRegex(
                             "train +1.0 MiB, 10 entries, 75.0 % hits\n"));
  EXPECT_THAT(
      shell.out,
      ::testing::ContainsRegex(
          "train, coefficients +512.0 KiB, 5 entries, 40 decodes, 123 ms "
          "saved\n"));
  EXPECT_THAT(shell.out,
              ::testing::ContainsRegex("\nDecoded forms\n"
                                       "Decoding saved +900 ms\n"
                                       "Lent +30 ms\n"
                                       "Spent on making them +800 ms\n"
                                       "Made in idle time +70, in 140 ms; 0 "
                                       "given up for rows; 6 wait\n"));
  EXPECT_THAT(shell.out, HasSubstr("\nCached on disk\n"));
  EXPECT_THAT(shell.out, ::testing::ContainsRegex(
                             "val +2.0 MiB, 20 entries, 90.0 % hits\n"));
  ASSERT_EQ(shell.Run({"describe", "worker", "node2"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("Cached")));
}

TEST(Describe, AWorkerShowsHowItDecodesAndWhichJobsItDecodesUnlike) {
  Shell shell;
  ASSERT_EQ(shell.Run({"describe", "worker", "node1"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("000102030405 (libjpeg-turbo 2.1.5)\n"));
  EXPECT_THAT(shell.out,
              HasSubstr("but 2 plans began with 3c4d (y) there; it owns "
                        "none of their shards\n"));
  EXPECT_THAT(shell.out, ::testing::ContainsRegex("Damaged streams +41\n"));
  ASSERT_EQ(shell.Run({"describe", "worker", "node2"}), 0);
  EXPECT_THAT(shell.out, Not(HasSubstr("Decodes")));
  EXPECT_THAT(shell.out, Not(HasSubstr("began with")));
  ASSERT_EQ(shell.Run({"get", "workers", "-o", "wide"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("exact (unlike some jobs)"));
}

TEST(Suggestions, FindsMisspeltNamesAndUniqueBeginnings) {
  const std::vector<std::string> names = {"resnet50", "resnet101", "vit"};
  EXPECT_THAT(Suggestions("mane", {"mine", "mine"}), ElementsAre("mine"));
  EXPECT_THAT(Suggestions("restne50", names), ElementsAre("resnet50"));
  EXPECT_THAT(Suggestions("zzzzzz", names), IsEmpty());
  EXPECT_THAT(Suggestions("", names), IsEmpty());
  EXPECT_EQ(*FindName("job", "v", names), 2u);
  EXPECT_EQ(FindName("job", "res", names).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FindName("job", "x", {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Text, MeasuresAndCuts) {
  EXPECT_EQ(DisplayWidth("Zürich"), 6u);
  EXPECT_EQ(DisplayWidth("東京"), 4u);
  EXPECT_EQ(Clip("Zürich", 4), "Zür…");
  EXPECT_EQ(Clip("東京都", 4), "東…");
  EXPECT_THAT(Wrap("one two three", 7), ElementsAre("one two", "three"));
}

TEST(Text, NumbersHaveSensibleUnits) {
  EXPECT_EQ(Age(absl::Seconds(-3)), "0s");
  EXPECT_EQ(Age(absl::Seconds(119)), "119s");
  EXPECT_EQ(Age(absl::Minutes(75)), "75m");
  EXPECT_EQ(Age(absl::Hours(5) + absl::Minutes(7)), "5h7m");
  EXPECT_EQ(Age(absl::Hours(100)), "4d4h");
  EXPECT_EQ(AgeSince("yesterday", absl::Now()), "-");
  EXPECT_EQ(TimeText("2026-11-21T02:00:00.123456789Z"), "2026-11-21T02:00:00Z");
  EXPECT_EQ(TimeText("2026-11-21T02:00:00.5+01:00"),
            "2026-11-21T02:00:00+01:00");
  for (const char* same : {"", "yesterday", "2026-11-21T02:00:00Z", "a.b"})
    EXPECT_EQ(TimeText(same), same);
  EXPECT_EQ(Size(1023), "1023 B");
  EXPECT_EQ(Size((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(Size(~uint64_t{0}), "16.0 EiB");
  EXPECT_EQ(Percent(0.0449), "4.5");
  EXPECT_EQ(Percent(7), "100.0");
}

}  // namespace
}  // namespace leat::cli
