// SPDX-License-Identifier: Apache-2.0
//
// Five documents of 3, 2, 0, 6 and 1 tokens, packed as pipelines and jobs say.
#include "worker/index_command/packing_report.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/source/tokens/megatron_maker.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const Json kNode0 = {{"node", 0}};

class PackingReportTest : public ::testing::Test {
 protected:
  PackingReportTest() {
    MegatronIndex index;
    for (const int length : {3, 2, 0, 6, 1})
      index.Add(std::vector<int32_t>{length});
    dir_.Write("web.bin", TokensFrom<uint16_t>(1, 12));
    dir_.Write("web.idx", index.Bytes());
  }

  // Returns a pipeline that packs, with more arguments of `pack`.
  Json Pipeline(Json args) const {
    Json reader = {{"op", "readers.tokens"}};
    reader["args"]["files"]["strings_value"]["values"] =
        Json::array({dir_.path() + "/web.bin"});
    Json pack = {{"op", "pack"}, {"inputs", Json::array({kNode0})}};
    for (const auto& [name, value] : args.items())
      pack["args"][name][value.is_string() ? "string_value" : "int_value"] =
          value;
    const Json output = {{"name", "tokens"}, {"ref", {{"node", 1}}}};
    return {{"nodes", {reader, pack}}, {"outputs", Json::array({output})}};
  }
  static absl::StatusOr<Json> Try(const Json& json,
                                  const std::string& source = "") {
    ASSIGN_OR_RETURN(const JobSpec job, ReadPipeline(json.dump(), source));
    ReportProgress progress;
    ASSIGN_OR_RETURN(const std::string report,
                     ReportPacking(job, {}, &progress));
    return Json::parse(report);
  }
  static Json Report(const Json& json, const std::string& source = "") {
    const auto report = Try(json, source);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : Json::object();
  }
  static std::string ErrorOf(const Json& json, const std::string& source = "") {
    return std::string(Message(Try(json, source).status()));
  }

  TempDir dir_;
};

TEST_F(PackingReportTest, RowsAreThoseOfThePipeline) {
  const Json fit = Report(Pipeline({{"length", 4}, {"how", "fit"}}));
  EXPECT_EQ(fit["format"], "tokens");
  EXPECT_EQ(fit["records"], 5);
  EXPECT_EQ(fit["sequences"]["documents"], 5);
  EXPECT_EQ(fit["sequences"]["empty"], 1);
  EXPECT_EQ(fit["sequences"]["most"], 6);
  EXPECT_EQ(fit["sequences"]["packed"],
            Json::parse(R"([{"how": "fit", "length": 4, "rows": 3,
                             "fill": 1.0}])"))
      << "4, 3 + 1 and 2 + 2";
  const Json dropped =
      Report(Pipeline({{"length", 4}, {"how", "fit"}, {"longer", "drop"}}));
  EXPECT_EQ(dropped["sequences"]["packed"][0]["rows"], 2);
  EXPECT_DOUBLE_EQ(dropped["sequences"]["packed"][0]["fill"], 6.0 / 8);
  const Json cut = Report(Pipeline({{"length", 5}, {"overlap", 1}}));
  EXPECT_EQ(cut["sequences"]["packed"],
            Json::parse(R"([{"how": "cut", "length": 5, "rows": 2,
                             "fill": 1}])"));
}

TEST_F(PackingReportTest, TheExampleIsTheFirstRow) {
  const Json report = Report(Pipeline({{"length", 4}, {"how", "fit"}}));
  EXPECT_EQ(report["example"]["first"], Json({1, 2, 3, 12}));
  EXPECT_EQ(report["example"]["documents"]["count"], 2);
  const Json& second = report["example"]["documents"]["listed"][1];
  EXPECT_EQ(second["index"], 4);
  EXPECT_EQ(second["row_begin"], 3);
  EXPECT_EQ(second["elements"], 1);
  EXPECT_THAT(second["path"].get<std::string>(), HasSubstr("web.bin"));
}

TEST_F(PackingReportTest, FieldsHaveTheNamesThatThePipelineGivesThem) {
  const auto names = [](const Json& report) {
    std::vector<std::string> all;
    for (const Json& field : report["fields"]) all.push_back(field["name"]);
    return all;
  };
  Json pipeline = Pipeline({{"length", 4}});
  pipeline["nodes"].push_back(
      {{"op", "cast"},
       {"inputs", Json::array({{{"node", 1}}})},
       {"args", {{"dtype", {{"string_value", "int32"}}}}}});
  pipeline["outputs"][0] = {{"name", "ids"}, {"ref", {{"node", 2}}}};
  EXPECT_THAT(names(Report(pipeline)),
              ElementsAre("ids", "segment_ids", "positions"));
  pipeline["outputs"][0] = {{"name", "mask"},
                            {"ref", {{"node", 1}, {"output", 1}}}};
  EXPECT_THAT(names(Report(pipeline)),
              ElementsAre("value 0", "mask", "positions"));
}

TEST_F(PackingReportTest, AJobPacksWhatItSelects) {
  const Json job = {{"name", "llm"},
                    {"batch", 1},
                    {"pipeline", Pipeline({{"length", 4}, {"how", "fit"}})},
                    {"selection", {{"where", "length < 3"}}}};
  const Json report = Report(job);
  EXPECT_EQ(report["sequences"]["documents"], 3);
  EXPECT_EQ(report["sequences"]["packed"][0]["rows"], 1);
  EXPECT_DOUBLE_EQ(report["sequences"]["packed"][0]["fill"], 0.75);
  EXPECT_EQ(Report({{"job", {{"spec", job}}}}), report);
}

TEST_F(PackingReportTest, ASourceOfAMixtureIsNamed) {
  const Json mixture = {
      {"name", "mix"},
      {"batch", 1},
      {"sources",
       {{{"name", "web"}, {"pipeline", Pipeline({{"length", 4}})}},
        {{"name", "code"}, {"pipeline", Pipeline({{"length", 3}})}}}}};
  EXPECT_EQ(Report(mixture, "code")["sequences"]["packed"][0]["rows"], 4);
  EXPECT_THAT(ErrorOf(mixture), HasSubstr("one of the mixture's: web, code"));
  EXPECT_THAT(ErrorOf(Pipeline({{"length", 4}}), "web"),
              HasSubstr("no mixture"));
}

TEST_F(PackingReportTest, DeepJsonIsRefused) {
  // Deep enough to overflow a stack when it is copied.
  constexpr size_t kLevels = 1'000'000;
  const std::string deep = "{\"nodes\":" + std::string(kLevels, '[') +
                           std::string(kLevels, ']') + "}";
  const absl::Status status = ReadPipeline(deep, "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status), "it is nested over 100 levels");
}

TEST_F(PackingReportTest, WhatPacksNothingIsAnError) {
  Json plain = Pipeline({{"length", 4}});
  plain["nodes"].erase(1);
  plain["outputs"][0]["ref"]["node"] = 0;
  plain["nodes"].push_back(
      {{"op", "length"}, {"inputs", Json::array({kNode0})}});
  plain["outputs"][0]["ref"]["node"] = 1;
  EXPECT_THAT(ErrorOf(plain), HasSubstr("packs no rows"));
  EXPECT_THAT(ErrorOf(Pipeline({{"length", 100}})),
              HasSubstr("pack makes no row of 5 documents"));
  EXPECT_THAT(ErrorOf(Json::array()), HasSubstr("JSON of a pipeline"));
  EXPECT_THAT(ErrorOf({{"nodes", 7}}), HasSubstr("nodes"));
}

}  // namespace
}  // namespace leat::worker
