// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/messages.h"

#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "core/pipeline/long_list.h"
#include "core/plan/checked_job.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;

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

// A mixture of two sources, whose second one is appended at step 100.
JobInfo MixedJob() {
  JobInfo job{.spec = SpecWithEveryKindOfValue()};
  JobSpec& spec = job.spec;
  spec.num_parts = 0;
  spec.rotate_parts = spec.mix_parts = false;
  spec.sources = {{"web", std::exchange(spec.pipeline, {})}};
  spec.sources.push_back({"books", spec.sources[0].pipeline});
  spec.sources[1].pipeline.nodes[0].args["path"] = std::string("/books");
  spec.shares = {{0, {0.1, 0}}, {100, {7, 1e-3}}};
  spec.mix_end = MixEnd::kAll;
  spec.source_field = "from";
  for (const uint8_t number : {1, 2}) {
    DatasetInfo& dataset = job.datasets.emplace_back();
    dataset = {.id = fmt::format("d{}", number),
               .name = fmt::format("n{}", number),
               .reader = "r",
               .shards = ShardTable::Uniform(100 * number, 10).value()};
    dataset.fingerprint.fill(number);
    dataset.content.fill(number);
  }
  job.plan_hash = PlanHash(spec, job.datasets);
  return job;
}

TEST(ConvertMixture, SpecsSurviveTheWireAndJson) {
  const JobSpec spec = MixedJob().spec;
  const v1::JobSpec proto = ToProto(spec);
  EXPECT_FALSE(proto.has_pipeline());
  absl::StatusOr<JobSpec> wire = FromProto(proto);
  ASSERT_TRUE(wire.ok()) << wire.status();
  EXPECT_EQ(*wire, spec);
  absl::StatusOr<JobSpec> json = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(*json, spec);
  v1::JobSpec unset = proto;
  unset.clear_mix_end();
  EXPECT_EQ(FromProto(unset)->mix_end, MixEnd::kStream);
}

TEST(ConvertMixture, JobsSurviveTheWire) {
  const JobInfo job = MixedJob();
  const v1::Job proto = ToProto(job);
  EXPECT_FALSE(proto.has_dataset());
  absl::StatusOr<JobInfo> back = FromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->spec, job.spec);
  ASSERT_EQ(back->datasets.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back->datasets[i].id, job.datasets[i].id);
    EXPECT_EQ(back->datasets[i].fingerprint, job.datasets[i].fingerprint);
    EXPECT_EQ(back->datasets[i].shards.num_samples(), 100 * (i + 1));
  }
  EXPECT_EQ(PositionHash(*back, 50), PositionHash(job, 50));
}

TEST(ConvertMixture, AJobThatIsShownHidesTheSecretsOfEachSource) {
  for (size_t i = 0; i < 2; ++i) {
    JobInfo job = MixedJob();
    job.spec.sources[i].pipeline.nodes[0].args["path"] =
        std::string("s3://key:secret@bucket/x");
    job.datasets[i].reader = "path=\"https://u:secret@h/x\"";
    job.plan_hash = PlanHash(job.spec, job.datasets);
    EXPECT_THAT(ToProto(job).spec().ShortDebugString(), HasSubstr("secret"));
    const v1::Job shown = ShownToProto(job);
    EXPECT_EQ(shown.ShortDebugString().find("secret"), std::string::npos) << i;
    EXPECT_TRUE(shown.redacted()) << i;
    EXPECT_TRUE(FromProto(shown).ok()) << FromProto(shown).status();
  }
  EXPECT_FALSE(ShownToProto(MixedJob()).redacted());
}

// Each of these once was the mixture above. The hash of one without a schedule
// cannot be computed.
TEST(ConvertMixture, HostileJobsAreRefused) {
  const std::tuple<const char*, std::function<void(v1::Job&)>> cases[] = {
      {"1001 sources and 2 segments",
       [](v1::Job& job) {
         while (job.spec().sources_size() < 1001)
           *job.mutable_spec()->add_sources() = job.spec().sources(0);
       }},
      {"2 sources and 2000 segments",
       [](v1::Job& job) {
         for (uint64_t step = 101; job.spec().shares_size() < 2000; ++step) {
           *job.mutable_spec()->add_shares() = job.spec().shares(0);
           job.mutable_spec()->mutable_shares()->rbegin()->set_from_step(step);
         }
       }},
      {"1001 weights",
       [](v1::Job& job) {
         job.mutable_spec()->mutable_shares(1)->mutable_weights()->Resize(1001,
                                                                          1);
       }},
      {"weights[1][\"books\"] = nan",
       [](v1::Job& job) {
         job.mutable_spec()->mutable_shares(1)->set_weights(
             1, std::numeric_limits<double>::quiet_NaN());
       }},
      {"job job-1: weights",
       [](v1::Job& job) {
         job.mutable_spec()->mutable_shares(0)->clear_weights();
       }},
      {"job job-1: ", [](v1::Job& job) { job.mutable_spec()->clear_shares(); }},
      {"job job-1: weights[0] begins at step 3",
       [](v1::Job& job) {
         job.mutable_spec()->mutable_shares(0)->set_from_step(3);
       }},
      {"job job-1: batch 0",
       [](v1::Job& job) { job.mutable_spec()->clear_batch(); }},
      {"mix_end 4",
       [](v1::Job& job) {
         job.mutable_spec()->set_mix_end(static_cast<v1::MixEnd>(4));
       }},
      {"job job-1: 1 datasets for 2 sources",
       [](v1::Job& job) { job.mutable_datasets()->RemoveLast(); }},
      {"job job-1: 3 datasets for 2 sources",
       [](v1::Job& job) { *job.add_datasets() = job.datasets(0); }},
      {"plan hash",
       [](v1::Job& job) {
         job.mutable_spec()->mutable_shares(1)->set_weights(1, 7);
       }},
      {"plan hash",
       [](v1::Job& job) { job.mutable_datasets()->SwapElements(0, 1); }},
  };
  for (const auto& [want, change] : cases)
    for (const bool redacted : {false, true}) {
      v1::Job job = ToProto(MixedJob());
      change(job);
      job.set_redacted(redacted);
      const absl::Status status = FromProto(job).status();
      if (redacted && std::string_view(want) == "plan hash") continue;
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << want;
      EXPECT_THAT(std::string(Message(status)), HasSubstr(want));
    }
}

TEST(ConvertMixture, WhatDoesNotFitIsSeenByTheCheck) {
  v1::JobSpec proto = ToProto(MixedJob().spec);
  *proto.mutable_pipeline() = proto.sources(0).pipeline();
  const absl::StatusOr<JobSpec> spec = FromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(*FromProto(ToProto(*spec)), *spec) << "also after a second way";
  EXPECT_THAT(std::string(Message(CheckJob(*spec).status())),
              HasSubstr("pipeline: want none beside 2 sources"));
  JobSpec plain = *spec;
  plain.sources.clear();
  EXPECT_EQ(*FromProto(ToProto(plain)), plain) << "with its shares and field";
}

}  // namespace
}  // namespace leat::rpc
