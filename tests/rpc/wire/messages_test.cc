// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/messages.h"

#include <limits>
#include <string>

#include "core/pipeline/long_list.h"
#include "core/status.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

JobSpec SpecWithEveryKindOfValue() {
  JobSpec spec{.name = "job-1",
               .seed = ~uint64_t{0},
               .batch = 64,
               .order = Order::kShardShuffle};
  spec.last_batch = LastBatch::kStream;
  spec.num_parts = 4;
  spec.rotate_parts = true;
  spec.mix_parts = true;
  spec.shuffle_window = 7;
  spec.on_bad_sample = BadSamplePolicy::kZero;
  spec.max_bad = 0.01;
  Node reader{.op = "readers.image_folder",
              .args = {{"path", std::string("/p\xc3\xa9")},
                       {"repeat", int64_t{1} << 40}}};
  Node op{.op = "x", .inputs = {{0, 0}, {0, 1}}};
  op.args = {
      {"b", true},
      {"f", 0.1},
      {"is", std::vector<int64_t>{-1, std::numeric_limits<int64_t>::min()}},
      {"fs", std::vector<double>{1e-300, -0.0}},
      {"r", NodeRef{0, 1}}};
  spec.pipeline.nodes = {reader, op};
  spec.pipeline.outputs = {{"image", {1, 0}}, {"label", {0, 1}}};
  return spec;
}

TEST(Convert, SpecsSurviveTheWireAndJson) {
  const JobSpec spec = SpecWithEveryKindOfValue();
  absl::StatusOr<JobSpec> wire = FromProto(ToProto(spec));
  ASSERT_TRUE(wire.ok()) << wire.status();
  EXPECT_EQ(*wire, spec);
  absl::StatusOr<JobSpec> json = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(*json, spec);
}

TEST(Convert, ArgumentsNamesAreTextOnTheWire) {
  JobSpec spec = SpecWithEveryKindOfValue();
  spec.pipeline.nodes[1].args["caf\xe9"] = true;
  v1::JobSpec read;
  ASSERT_TRUE(read.ParseFromString(ToProto(spec).SerializeAsString()));
  EXPECT_TRUE(read.pipeline().nodes(1).args().contains("caf\\xe9"));
}

TEST(Convert, AListThatIsTooLongForAMessageTravelsAsItsDigest) {
  std::string labels, files;
  for (int i = 0; i < 5000; ++i) {
    labels += fmt::format("{}\"{}\"", i ? "," : "", i);
    files += fmt::format("{}\"/f{}\"", i ? "," : "", i);
  }
  const std::string json = fmt::format(
      R"({{"name": "j", "batch": 8, "pipeline": {{"nodes": [{{
          "op": "readers.files",
          "args": {{"files": {{"strings_value": {{"values": [{}]}}}},
                    "labels": {{"ints_value": {{"values": [{}]}}}}}}}}],
        "outputs": [{{"name": "label", "ref": {{"node": 0, "output": 1}}}}]}}}})",
      files, labels);
  const absl::StatusOr<JobSpec> spec = JobSpecFromJson(json);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto list = [](const JobSpec& of) {
    return std::get<LongList>(of.pipeline.nodes[0].args.at("labels"));
  };
  EXPECT_EQ(IntsOf(list(*spec)).size(), 5000);
  const v1::JobSpec wire = ToProto(*spec);
  EXPECT_LT(ToJson(*spec).size(), files.size() + 30'000);
  const absl::StatusOr<JobSpec> there = FromProto(wire);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(*there, *spec);
  EXPECT_EQ(list(*there).values, nullptr);
  // Parsing the JSON again gives the same spec.
  EXPECT_EQ(*JobSpecFromJson(ToJson(*spec)), *spec);

  // Entries of a list are not accepted from the wire.
  v1::JobSpec whole = wire;
  v1::Value& value =
      (*whole.mutable_pipeline()->mutable_nodes(0)->mutable_args())["labels"];
  value.mutable_ints_value()->mutable_values()->Resize(5000, 1);
  EXPECT_EQ(Message(FromProto(whole).status()),
            "readers.files: argument labels: 5000 numbers: at most 4096");
  v1::JobSpec torn = wire;
  (*torn.mutable_pipeline()->mutable_nodes(0)->mutable_args())["labels"]
      .mutable_list_value()
      ->set_blocks(0, "short");
  EXPECT_EQ(FromProto(torn).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Convert, WhatIsUnsetInJsonGetsItsDefault) {
  absl::StatusOr<JobSpec> spec =
      JobSpecFromJson(R"({"name": "a", "batch": 8})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->order, Order::kGlobalShuffle);
  EXPECT_EQ(spec->last_batch, LastBatch::kDrop);
  EXPECT_EQ(spec->on_bad_sample, BadSamplePolicy::kFail);
  EXPECT_EQ(spec->shuffle_window, JobSpec().shuffle_window);
  EXPECT_EQ(spec->max_bad, std::nullopt);
}

TEST(Convert, ABudgetOfNoBadSampleIsNotTheLackOfABudget) {
  JobSpec spec = SpecWithEveryKindOfValue();
  spec.max_bad = 0;
  EXPECT_EQ(FromProto(ToProto(spec))->max_bad, 0.0);
  EXPECT_EQ(JobSpecFromJson(ToJson(spec))->max_bad, 0.0);
}

TEST(Convert, WrongJsonIsRefusedWithTheParsersWords) {
  for (const char* json :
       {"", "{", "[]", R"({"batsh": 8})", R"({"batch": -1})",
        R"({"batch": 4294967296})", R"({"order": "ORDER_RANDOM"})",
        R"({"pipeline": {"nodes": [{"args": {"a": {}}}]}})"}) {
    EXPECT_EQ(JobSpecFromJson(json).status().code(),
              absl::StatusCode::kInvalidArgument)
        << json;
  }
  EXPECT_NE(Message(JobSpecFromJson(R"({"batsh": 8})").status()).find("batsh"),
            std::string_view::npos);
}

TEST(Convert, EnumeratorsOutOfRangeAreNamed) {
  v1::JobSpec proto = ToProto(SpecWithEveryKindOfValue());
  proto.set_order(static_cast<v1::Order>(99));
  const absl::Status status = FromProto(proto).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(status).find("order 99"), std::string_view::npos) << status;
}

TEST(Convert, ShardTablesSurviveAndLiesAboutTheirSumAreFound) {
  const std::vector<uint64_t> sizes = {3, 1, 5};
  const ShardTable irregular = ShardTable::FromSizes(sizes).value();
  const ShardTable back = FromProto(ToProto(irregular)).value();
  ASSERT_EQ(back.num_shards(), 3u);
  EXPECT_EQ(back.range(2), irregular.range(2));
  const ShardTable uniform =
      FromProto(ToProto(ShardTable::Uniform(1'000'000'000, 20'000).value()))
          .value();
  EXPECT_EQ(uniform.num_samples(), 1'000'000'000u);

  v1::ShardTable proto = ToProto(irregular);
  proto.set_num_samples(10);
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
  proto.Clear();
  proto.set_num_samples(10);  // without a shard size
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
}

JobInfo Job() {
  JobInfo job{.spec = SpecWithEveryKindOfValue()};
  job.datasets.resize(1);
  job.datasets[0] = {.id = "abc",
                     .name = "photos",
                     .reader = "r",
                     .shards = ShardTable::Uniform(100, 10).value()};
  job.datasets[0].classes = {"cat", "dog"};
  job.datasets[0].content.fill(5);
  job.schema.fields = {{"image", DType::kUint8, {224, 224, 3}, 150528},
                       {"label", DType::kInt32, {}, 4}};
  job.plan_hash = PlanHash(job.spec, job.datasets);
  return job;
}

TEST(Convert, JobsSurviveTheWire) {
  const JobInfo job = Job();
  absl::StatusOr<JobInfo> back = FromProto(ToProto(job));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->spec, job.spec);
  EXPECT_EQ(back->schema, job.schema);
  EXPECT_EQ(back->datasets[0].classes, job.datasets[0].classes);
  EXPECT_EQ(back->datasets[0].content, job.datasets[0].content);
}

TEST(Convert, AJobThatIsShownHidesTheSecretsOfItsPlaces) {
  const std::string place = "https://u:secret-1@h/x?secret-2";
  JobInfo job = Job();
  job.spec.pipeline.nodes[0] = {
      "readers.files",
      {},
      {{"files", *LongListOf(std::vector<std::string>(70'000, place))}}};
  EXPECT_NE(ToProto(job).ShortDebugString().find("secret-"), std::string::npos);
  v1::Job shown = ShownToProto(job);
  EXPECT_EQ(shown.ShortDebugString().find("secret-"), std::string::npos);
  EXPECT_TRUE(shown.redacted());
  EXPECT_TRUE(FromProto(shown).ok()) << FromProto(shown).status();
  for (const Value& value : {Value(place), Value(std::vector{place, place})}) {
    job.spec.pipeline.nodes[0].args["files"] = value;
    shown = ShownToProto(job);
    EXPECT_EQ(shown.ShortDebugString().find("secret-"), std::string::npos);
    EXPECT_TRUE(shown.redacted());
  }
  job.spec.pipeline.nodes[0].args["files"] = Value(std::string("/plain"));
  EXPECT_FALSE(ShownToProto(job).redacted());
}

TEST(Convert, AJobOfAReleaseThatDidNotTellTheContentIsTaken) {
  v1::Job proto = ToProto(Job());
  proto.mutable_dataset()->clear_content();
  const absl::StatusOr<JobInfo> back = FromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->datasets[0].content, Digest{});
  proto.mutable_dataset()->set_content("short");
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Convert, AJobWhosePlanHashIsAnothersIsRefused) {
  v1::Job proto = ToProto(Job());
  proto.mutable_spec()->set_seed(1);
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
  proto = ToProto(Job());
  proto.set_plan_hash("short");
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Convert, RowsThatWouldOverflowAreRefused) {
  v1::Job proto = ToProto(Job());
  proto.mutable_schema(0)->mutable_shape()->Add(int64_t{1} << 62);
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
  proto = ToProto(Job());
  proto.mutable_schema(0)->set_shape(0, 0);
  EXPECT_EQ(FromProto(proto).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat::rpc
