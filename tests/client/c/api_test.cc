// SPDX-License-Identifier: Apache-2.0
//
// The C interface of libleat.so, also under misuse.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/leat.h"
#include "leat/pipeline.h"
#include "nlohmann/json.hpp"

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the message and frees the status; "" for success.
std::string Text(leat_status* status, int code = 3) {
  if (status == nullptr) return "";
  EXPECT_EQ(leat_status_code(status), code) << leat_status_message(status);
  std::string text = leat_status_message(status);
  leat_status_free(status);
  return text;
}

std::string Take(char* string) {
  EXPECT_NE(string, nullptr);
  std::string copy = string == nullptr ? "" : string;
  leat_string_free(string);
  return copy;
}

leat::PipelineBuilder SmallPipeline(const char* resize = "resize") {
  leat::PipelineBuilder p;
  const auto [encoded, label] = p.ImageFolder("/data");
  auto image = p.Op("decode", {encoded});
  image = p.Op(resize, {image}, {{"size", std::vector<int64_t>{32, 48}}});
  image = p.Op("flip", {image}, {{"horizontal", p.Op("coin_flip", {})}});
  p.Output("image", image).Output("label", label);
  return p;
}

TEST(CApi, VersionsAreSaid) {
  EXPECT_EQ(leat_abi_version(), LEAT_ABI_VERSION);
  EXPECT_STREQ(leat_version(), "0.2.0");
}

TEST(CApi, OperatorsAreListedWithTheirArguments) {
  const auto operators = nlohmann::json::parse(Take(leat_operators_json()));
  ASSERT_TRUE(operators.is_array());
  bool found = false;
  for (const auto& op : operators) {
    if (op["name"] != "random_resized_crop") continue;
    found = true;
    EXPECT_EQ(op["random"], true);
    EXPECT_EQ(op["inputs"], 1);
    for (const auto& arg : op["args"]) {
      if (arg["name"] == "size") {
        EXPECT_EQ(arg["type"], "ints");
        EXPECT_EQ(arg["required"], true);
        EXPECT_TRUE(arg["default"].is_null());
      }
      if (arg["name"] == "attempts") {
        EXPECT_EQ(arg["default"], 10);
      }
    }
  }
  EXPECT_TRUE(found);
}

TEST(CApi, NothingIsLeftToDoWithoutAnIterator) {
  const leat_epilogue epilogue = leat_batches_epilogue(nullptr, 0);
  EXPECT_EQ(epilogue.dtype, nullptr);
  EXPECT_EQ(epilogue.table, nullptr);
  EXPECT_EQ(epilogue.perm, nullptr);
  EXPECT_EQ(epilogue.channels, 1u);
}

TEST(CApi, PipelinesAreCheckedWithoutAService) {
  char* schema = nullptr;
  const std::string graph = SmallPipeline().GraphJson();
  EXPECT_EQ(Text(leat_pipeline_check(graph.c_str(), &schema)), "");
  const auto fields = nlohmann::json::parse(Take(schema));
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0]["name"], "image");
  EXPECT_EQ(fields[0]["dtype"], "uint8");
  EXPECT_EQ(fields[0]["shape"], nlohmann::json({32, 48, 3}));
  EXPECT_EQ(fields[1]["shape"], nlohmann::json::array());
}

TEST(CApi, WrongPipelinesAreRefusedAndNothingIsWritten) {
  char* schema = nullptr;
  const std::string graph = SmallPipeline("resise").GraphJson();
  EXPECT_THAT(Text(leat_pipeline_check(graph.c_str(), &schema)),
              HasSubstr("resize"));
  EXPECT_NE(Text(leat_pipeline_check("", &schema)), "");
  EXPECT_NE(Text(leat_pipeline_check("[1", &schema)), "");
  EXPECT_NE(Text(leat_pipeline_check("{\"nodez\": []}", &schema)), "");
  EXPECT_EQ(schema, nullptr);
}

TEST(CApi, AMessageDoesNotEndAtAZeroByteInIt) {
  char* schema = nullptr;
  std::string graph = SmallPipeline().GraphJson();
  graph.replace(graph.find("resize"), 6, "re\\u0000size");
  EXPECT_THAT(Text(leat_pipeline_check(graph.c_str(), &schema)),
              HasSubstr("re\\0size"));
}

TEST(CApi, SpecsOfTheBuilderAreJobSpecs) {
  const auto spec = nlohmann::json::parse(SmallPipeline().SpecJson(
      {.name = "train", .batch = 256, .seed = 7, .order = "shard"}));
  EXPECT_EQ(spec["order"], "ORDER_SHARD_SHUFFLE");
  EXPECT_EQ(spec["last_batch"], "LAST_BATCH_DROP");
  EXPECT_EQ(spec["batch"], 256);
  EXPECT_FALSE(spec.contains("selection") || spec.contains("augment_seed"));
}

TEST(CApi, TheBuilderThrowsNothingForAPathOfAnotherEncoding) {
  leat::PipelineBuilder p;
  p.Output("image", p.ImageFolder("/data/caf\xe9").first);
  EXPECT_THAT(p.GraphJson(), HasSubstr("/data/caf\xef\xbf\xbd\""));
  EXPECT_THAT(p.SpecJson({.batch = 8}), HasSubstr("/data/caf\xef\xbf\xbd\""));
}

TEST(CApi, SpecsOfTheBuilderHaveSharesOfClasses) {
  const auto balanced = nlohmann::json::parse(SmallPipeline().SpecJson(
      {.batch = 8, .augment_seed = 9, .balanced = true}));
  EXPECT_EQ(balanced["selection"],
            nlohmann::json::parse(R"({"balanced": true})"));
  EXPECT_EQ(balanced["augment_seed"], 9);
  const auto shares = nlohmann::json::parse(SmallPipeline().SpecJson(
      {.batch = 8, .class_weights = {{"cat", 0.5}, {"*", 2}}}));
  EXPECT_EQ(shares["selection"],
            nlohmann::json::parse(R"({"shares": [{"name": "*", "share": 2.0},
                {"name": "cat", "share": 0.5}]})"));
}

TEST(CApi, NullArgumentsAreErrorsThatNameThem) {
  leat_service* service = nullptr;
  leat_job* job = nullptr;
  leat_batches* batches = nullptr;
  leat_batch* batch = nullptr;
  char* json = nullptr;
  EXPECT_THAT(Text(leat_connect(nullptr, nullptr)), HasSubstr("out is NULL"));
  EXPECT_THAT(Text(leat_job_create(nullptr, "{}", nullptr, 1, &job)),
              HasSubstr("leat_job_create: service is NULL"));
  EXPECT_THAT(Text(leat_job_get(nullptr, "x", &job)), HasSubstr("service"));
  EXPECT_THAT(Text(leat_job_sample(nullptr, 0, 1, &batch)), HasSubstr("job"));
  EXPECT_THAT(
      Text(leat_batches_open(nullptr, "", nullptr, 0, nullptr, 0, &batches)),
      HasSubstr("job"));
  EXPECT_THAT(Text(leat_batches_next(nullptr, 1, &batch)),
              HasSubstr("batches"));
  EXPECT_THAT(Text(leat_job_samples(nullptr, 0, 0, nullptr, 0, nullptr)),
              HasSubstr("job"));
  EXPECT_THAT(Text(leat_job_record(nullptr, 0, 0, 1, &json)), HasSubstr("job"));
  EXPECT_THAT(Text(leat_job_explain(nullptr, 0, 0, nullptr, 0, 0, 1, &json)),
              HasSubstr("leat_job_explain: job is NULL"));
  EXPECT_THAT(Text(leat_service_get(nullptr, "status", nullptr, &json)),
              HasSubstr("service"));
  EXPECT_THAT(Text(leat_service_do(nullptr, "drain", "x")),
              HasSubstr("service"));
  EXPECT_THAT(Text(leat_pipeline_check(nullptr, &json)), HasSubstr("graph"));
  EXPECT_EQ(service, nullptr);
}

TEST(CApi, NullHandlesAreHarmlessElsewhere) {
  leat_status_free(nullptr);
  leat_string_free(nullptr);
  leat_service_free(nullptr);
  leat_job_free(nullptr);
  leat_batches_free(nullptr);
  leat_batch_free(nullptr);
  leat_batches_cancel(nullptr);
  leat_batches_begin_wait(nullptr);
  leat_batches_end_wait(nullptr, 1);
  EXPECT_EQ(leat_status_code(nullptr), 0);
  EXPECT_STREQ(leat_status_message(nullptr), "");
  EXPECT_STREQ(leat_service_address(nullptr), "");
  EXPECT_EQ(leat_job_json(nullptr), nullptr);
  EXPECT_EQ(leat_batches_stats_json(nullptr), nullptr);
  EXPECT_EQ(leat_batches_position(nullptr, nullptr, 0), 0u);
  EXPECT_EQ(leat_batches_position_at(nullptr, 0, 0, nullptr, 0), 0u);
  EXPECT_EQ(leat_batch_num_tensors(nullptr), 0u);
  EXPECT_EQ(leat_batch_tensor(nullptr, 3).data, nullptr);
  EXPECT_EQ(leat_batch_rows(nullptr), 0u);
}

TEST(CApi, WrongOptionsNameKeyValueAndWhatWasExpected) {
  leat_service* service = nullptr;
  const auto connect = [&service](const char* options) {
    return Text(leat_connect(options, &service));
  };
  EXPECT_THAT(connect("{\"adress\": \"x\"}"),
              HasSubstr("unknown key \"adress\"; known: access_token, "
                        "access_token_file, address"));
  EXPECT_THAT(connect("{\"address\": 5}"),
              HasSubstr("address is 5; want a string"));
  EXPECT_THAT(connect("{\"timeout_s\": -1}"), HasSubstr("timeout_s is -1"));
  EXPECT_THAT(connect("{\"embedded_workers\": 1.5}"),
              HasSubstr("whole number"));
  EXPECT_THAT(connect("{\"embedded_workers\": -1}"), HasSubstr("whole"));
  EXPECT_THAT(connect("{\"embedded_workers\": 99999999999}"),
              HasSubstr("whole"));
  EXPECT_THAT(connect("{"), HasSubstr("not JSON"));
  EXPECT_THAT(connect("[]"), HasSubstr("array; want a JSON object"));
  EXPECT_EQ(service, nullptr);
}

TEST(CApi, NobodyAtTheAddressIsUnavailable) {
  leat_service* service = nullptr;
  // Long enough for one attempt on a busy machine.
  EXPECT_THAT(
      Text(leat_connect("{\"address\": \"127.0.0.1:1\", \"timeout_s\": 1}",
                        &service),
           14),
      StartsWith("no coordinator at 127.0.0.1:1"));
}

TEST(CApi, DaemonsThatAreNotThereAreNotFound) {
  leat_service* service = nullptr;
  EXPECT_THAT(
      Text(leat_connect("{\"daemon_dir\": \"/nonexistent\"}", &service), 5),
      HasSubstr("leat-private, which is not in /nonexistent"));
}

TEST(CApi, LibraryShowsNothingOfItsInsides) {
  void* library = dlopen("libleat.so.0", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  Dl_info info;
  ASSERT_NE(dladdr(dlsym(library, "leat_connect"), &info), 0);
  const std::string own = info.dli_fname;
  // leat::client::UsableCores(), which is inside.
  void* inside = dlsym(library, "_ZN4leat6client11UsableCoresEv");
  EXPECT_EQ(inside, nullptr);
  dlclose(library);
}

}  // namespace
