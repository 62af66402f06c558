// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job.h"

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/plan/checked_job.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/golden.h"
#include "tests/core/plan/golden_pipeline.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

Graph Pipeline() {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Value(std::string("/data"))}}},
      {"decode", {{0, 0}}, {}},
      {"resize", {{1, 0}}, {{"size", std::vector<int64_t>{8, 8}}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

JobSpec Spec() {
  JobSpec spec;
  spec.name = "resnet50";
  spec.pipeline = Pipeline();
  spec.seed = 7;
  spec.batch = 12;
  return spec;
}

DatasetInfo Dataset(uint64_t samples) {
  DatasetInfo dataset;
  dataset.name = "photos";
  dataset.shards = *ShardTable::Uniform(samples, 10);
  for (size_t i = 0; i < dataset.fingerprint.size(); ++i)
    dataset.fingerprint[i] = static_cast<uint8_t>(i);
  return dataset;
}

absl::Status Against(const JobSpec& spec, const DatasetInfo& dataset) {
  return CheckAgainst(spec, {&dataset, 1});
}
Digest HashOf(const JobSpec& spec, const DatasetInfo& dataset) {
  return PlanHash(spec, {&dataset, 1});
}

std::string ErrorOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(status));
}
// Returns the error of the usual spec after `change`.
std::string SpecError(const std::function<void(JobSpec*)>& change) {
  JobSpec spec = Spec();
  change(&spec);
  return ErrorOf(CheckJob(spec).status());
}

TEST(Names, AreThoseOfTheInterface) {
  EXPECT_EQ(Name(Order::kShardShuffle), "shard");
  EXPECT_EQ(Name(Order::kGlobalShuffle), "global");
  EXPECT_EQ(Name(Order::kSequential), "sequential");
  EXPECT_EQ(Name(LastBatch::kDrop), "drop");
  EXPECT_EQ(Name(LastBatch::kFill), "fill");
  EXPECT_EQ(Name(LastBatch::kPad), "pad");
  EXPECT_EQ(Name(LastBatch::kPartial), "partial");
  EXPECT_EQ(Name(DecoderClass::kExact), "exact");
  EXPECT_EQ(Name(DecoderClass::kNvjpeg), "nvjpeg");
  EXPECT_EQ(Name(BadSamplePolicy::kFail), "fail");
  EXPECT_EQ(Name(BadSamplePolicy::kReplace), "replace");
  EXPECT_EQ(Name(BadSamplePolicy::kZero), "zero");
  EXPECT_EQ(Name(Order{9}), "unknown");
}

TEST(CheckJob, ReturnsTheNormalisedPipeline) {
  const auto checked = CheckJob(Spec());
  ASSERT_TRUE(checked.ok()) << checked.status();
  ASSERT_EQ(checked->schema.fields.size(), 2u);
  EXPECT_EQ(checked->schema.fields[0].shape, (Shape{8, 8, 3}));
}

TEST(CheckJob, ABudgetOfBadSamplesIsAShareOfTheDataset) {
  JobSpec spec = Spec();
  spec.on_bad_sample = BadSamplePolicy::kZero;
  for (const double share : {0.0, 0.01, 1.0}) {
    spec.max_bad = share;
    EXPECT_TRUE(CheckJob(spec).ok()) << share;
  }
  const auto allowed = [&spec](double share, uint64_t samples) {
    spec.max_bad = share;
    return AllowedBadSamples(spec, samples);
  };
  EXPECT_EQ(allowed(0, 1'000'000'000), 0u);
  EXPECT_EQ(allowed(1, 1'000'000'007), 1'000'000'007u);
  EXPECT_EQ(allowed(0.01, 99), 0u);
  EXPECT_EQ(allowed(0.01, 100), 1u);
  for (uint64_t percent = 0; percent <= 100; ++percent)
    EXPECT_EQ(allowed(static_cast<double>(percent) / 100, 100), percent);
}

TEST(CheckJob, TakesEveryLegalName) {
  for (std::string name : {"a", "A.b_c-9", "..."}) {
    JobSpec spec = Spec();
    spec.name = name;
    EXPECT_TRUE(CheckJob(spec).ok());
  }
  JobSpec spec = Spec();
  spec.name = std::string(128, 'x');
  EXPECT_TRUE(CheckJob(spec).ok());
}

TEST(CheckJob, ErrorsNameTheFieldTheValueAndWhatIsWanted) {
  EXPECT_EQ(SpecError([](JobSpec* s) { s->name = ""; }),
            "job name \"\": want 1 to 128 of A-Z a-z 0-9 . _ -");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->name = "a b"; }),
            "job name \"a b\" has character 32 at 1: want only A-Z a-z 0-9 . _ "
            "-");
  EXPECT_THAT(SpecError([](JobSpec* s) { s->name = "caf\xc3\xa9"; }),
              HasSubstr("character 195 at 3"));
  EXPECT_THAT(SpecError([](JobSpec* s) { s->name = std::string(129, 'x'); }),
              HasSubstr("of 129 characters: want at most 128"));
  EXPECT_EQ(SpecError([](JobSpec* s) { s->batch = 0; }),
            "batch 0: want 1 to 1048576");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->batch = kMaxBatch + 1; }),
            "batch 1048577: want 1 to 1048576");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->num_parts = 5; }),
            "num_parts 5: want a divisor of the batch, which is 12");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->num_parts = 24; }),
            "num_parts 24: want a divisor of the batch, which is 12");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->order = Order{0}; }),
            "order 0: want one of sequential, global, shard");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->last_batch = LastBatch{7}; }),
            "last_batch 7: want one of drop, fill, pad, partial, stream, mask");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->rotate_parts = true; }),
            "rotate_parts: want num_parts with it");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->mix_parts = true; }),
            "mix_parts: want num_parts with it");
  EXPECT_EQ(SpecError([](JobSpec* s) {
              s->num_parts = 3;
              s->order = Order::kSequential;
              s->mix_parts = true;
            }),
            "mix_parts: want order global or shard with it");
  EXPECT_EQ(SpecError([](JobSpec* s) { s->decoder_class = DecoderClass{5}; }),
            "decoder_class 5: want one of exact, nvjpeg, auto, nvjpeg_shared");
  EXPECT_EQ(
      SpecError([](JobSpec* s) { s->on_bad_sample = BadSamplePolicy{0}; }),
      "on_bad_sample 0: want one of fail, replace, zero");
  for (const double share : {-0.1, 1.1, std::nan("")})
    EXPECT_THAT(SpecError([share](JobSpec* s) {
                  s->on_bad_sample = BadSamplePolicy::kReplace;
                  s->max_bad = share;
                }),
                HasSubstr(": want 0 to 1, a share of the dataset's samples"));
  EXPECT_EQ(SpecError([](JobSpec* s) { s->max_bad = 0.5; }),
            "max_bad 0.5: on_bad_sample fail ends at the first bad sample; "
            "want replace or zero with max_bad");
  const auto window = [](uint32_t size) {
    return [size](JobSpec* s) {
      s->order = Order::kShardShuffle;
      s->shuffle_window = size;
    };
  };
  EXPECT_EQ(SpecError(window(0)), "shuffle_window 0: want 1 to 65536 shards");
  EXPECT_EQ(SpecError(window(65537)),
            "shuffle_window 65537: want 1 to 65536 shards");
}

TEST(CheckJob, RefusesAnOutputNamedValidWhereZeroAddsOne) {
  const auto rename = [](JobSpec* s) {
    s->on_bad_sample = BadSamplePolicy::kZero;
    s->pipeline.outputs[0].first = "valid";
  };
  EXPECT_EQ(SpecError(rename),
            "output \"valid\": want another name, as on_bad_sample \"zero\" "
            "adds a field of this name");
  const auto mask = [](JobSpec* s) {
    s->last_batch = LastBatch::kMask;
    s->pipeline.outputs[0].first = "valid";
  };
  EXPECT_EQ(SpecError(mask),
            "output \"valid\": want another name, as last_batch \"mask\" adds "
            "a field of this name");
  JobSpec spec = Spec();
  spec.pipeline.outputs[0].first = "valid";
  EXPECT_TRUE(CheckJob(spec).ok());
}

TEST(CheckJob, PassesThePipelinesErrorsOn) {
  EXPECT_THAT(SpecError([](JobSpec* s) { s->pipeline.nodes[1].op = "decod"; }),
              HasSubstr("decode"));
}

TEST(CheckAgainst, TakesABatchAsLargeAsTheDataset) {
  EXPECT_TRUE(Against(Spec(), Dataset(12)).ok());
}

TEST(CheckAgainst, ErrorsNameTheValueAndWhatIsWanted) {
  JobSpec spec = Spec();
  EXPECT_EQ(ErrorOf(Against(spec, Dataset(0))),
            "dataset \"photos\" has 0 samples: want at least 1");
  EXPECT_EQ(
      ErrorOf(Against(spec, Dataset(11))),
      "batch 12: want at most 11, the samples of dataset \"photos\", or a "
      "last_batch other than \"drop\"");
  spec.num_parts = 3;
  EXPECT_EQ(ErrorOf(Against(spec, Dataset(11))),
            "batch 12 in 3 parts takes 4 rows a part: want at most 3, the "
            "samples of the smallest part of dataset \"photos\", or a "
            "last_batch other than \"drop\"");
  spec.num_parts = 12;
  for (LastBatch last_batch :
       {LastBatch::kFill, LastBatch::kPad, LastBatch::kMask}) {
    spec.last_batch = last_batch;
    EXPECT_EQ(ErrorOf(Against(spec, Dataset(11))),
              "num_parts 12: want at most 11, the samples of dataset "
              "\"photos\", or last_batch \"partial\"");
  }
}

TEST(CheckAgainst, TakesALargerBatchUnderOtherPolicies) {
  JobSpec spec = Spec();
  for (LastBatch last_batch : {LastBatch::kFill, LastBatch::kPad,
                               LastBatch::kMask, LastBatch::kPartial}) {
    spec.last_batch = last_batch;
    EXPECT_TRUE(Against(spec, Dataset(1)).ok());
  }
  spec.num_parts = 12;
  EXPECT_TRUE(Against(spec, Dataset(1)).ok());  // partial
}

// Every change that affects bytes, by the field's name.
std::map<std::string, std::function<void(JobSpec*)>> Changes() {
  return {
      {"batch", [](JobSpec* s) { s->batch = 24; }},
      {"seed", [](JobSpec* s) { s->seed = 8; }},
      {"order", [](JobSpec* s) { s->order = Order::kSequential; }},
      {"last_batch", [](JobSpec* s) { s->last_batch = LastBatch::kPad; }},
      {"num_parts", [](JobSpec* s) { s->num_parts = 4; }},
      {"decoder_class",
       [](JobSpec* s) { s->decoder_class = DecoderClass::kNvjpeg; }},
      {"on_bad_sample",
       [](JobSpec* s) { s->on_bad_sample = BadSamplePolicy::kZero; }},
      {"pipeline",
       [](JobSpec* s) {
         s->pipeline.nodes[2].args["size"] = std::vector<int64_t>{8, 9};
       }},
  };
}

TEST(PlanHash, SeesEverythingThatChangesBytes) {
  std::set<Digest> hashes = {HashOf(Spec(), Dataset(50))};
  for (const auto& [field, change] : Changes()) {
    JobSpec spec = Spec();
    change(&spec);
    EXPECT_TRUE(hashes.insert(HashOf(spec, Dataset(50))).second) << field;
  }
  JobSpec rotating = Spec();
  Changes().at("num_parts")(&rotating);
  rotating.rotate_parts = true;
  EXPECT_TRUE(hashes.insert(HashOf(rotating, Dataset(50))).second);
  rotating.mix_parts = true;
  EXPECT_TRUE(hashes.insert(HashOf(rotating, Dataset(50))).second);
  DatasetInfo other = Dataset(50);
  other.fingerprint[31] ^= 1;
  EXPECT_TRUE(hashes.insert(HashOf(Spec(), other)).second);
}

TEST(PlanHash, DoesNotSeeNamesNorAWindowWithoutEffect) {
  JobSpec spec = Spec();
  const Digest hash = HashOf(spec, Dataset(50));
  spec.name = "other";
  spec.shuffle_window = 3;
  spec.max_bad = 0.5;  // it ends a job, but affects no batch
  DatasetInfo dataset = Dataset(50);
  dataset.name = "elsewhere";
  EXPECT_EQ(HashOf(spec, dataset), hash);
}

TEST(PlanHash, SeesTheWindowOfAShardShuffle) {
  JobSpec spec = Spec();
  spec.order = Order::kShardShuffle;
  const Digest hash = HashOf(spec, Dataset(50));
  spec.shuffle_window = 3;
  EXPECT_NE(HashOf(spec, Dataset(50)), hash);
}

JobInfo InfoOf(JobSpec spec, DatasetInfo dataset) {
  JobInfo job{.spec = std::move(spec), .datasets = {std::move(dataset)}};
  job.plan_hash = PlanHash(job.spec, job.datasets);
  return job;
}

TEST(PositionHash, IsThePlanHashWhereTheContentIsNotKnown) {
  const JobInfo job = InfoOf(Spec(), Dataset(50));
  EXPECT_EQ(PositionHash(job, 0), job.plan_hash);
}

TEST(PositionHash, SeesWhatTheRecordsAreAndNotWhereTheyLie) {
  DatasetInfo dataset = Dataset(50);
  dataset.content.fill(3);
  JobSpec spec = Spec();
  const Digest hash = PositionHash(InfoOf(spec, dataset), 0);
  EXPECT_NE(hash, HashOf(spec, dataset));
  dataset.fingerprint[31] ^= 1;
  spec.pipeline.nodes[0].args["path"] = std::string("/elsewhere");
  EXPECT_EQ(PositionHash(InfoOf(spec, dataset), 0), hash);
  spec.pipeline.nodes[0].args["repeat"] = int64_t{2};
  EXPECT_NE(PositionHash(InfoOf(spec, dataset), 0), hash);
  dataset.content[0] ^= 1;
  EXPECT_NE(PositionHash(InfoOf(Spec(), dataset), 0), hash);
}

TEST(PositionHash, SeesEverythingElseThatChangesBytes) {
  DatasetInfo dataset = Dataset(50);
  dataset.content.fill(3);
  std::set<Digest> hashes = {PositionHash(InfoOf(Spec(), dataset), 0)};
  for (const auto& [field, change] : Changes()) {
    JobSpec spec = Spec();
    change(&spec);
    EXPECT_TRUE(hashes.insert(PositionHash(InfoOf(spec, dataset), 0)).second)
        << field;
  }
}

// Uses the specs of tests/golden/generate.py.
TEST(PlanHash, IsGolden) {
  JobSpec spec;
  spec.pipeline = GoldenPipeline();
  std::map<std::string, JobSpec> specs;
  spec.seed = 7;
  spec.batch = 1024;
  specs["usual"] = spec;
  spec.seed = 0;
  spec.batch = 1;
  spec.order = Order::kSequential;
  spec.last_batch = LastBatch::kPartial;
  spec.on_bad_sample = BadSamplePolicy::kReplace;
  specs["sequential"] = spec;
  spec.seed = ~uint64_t{0};
  spec.batch = kMaxBatch;
  spec.order = Order::kShardShuffle;
  spec.last_batch = LastBatch::kFill;
  spec.num_parts = 8;
  spec.decoder_class = DecoderClass::kNvjpeg;
  spec.on_bad_sample = BadSamplePolicy::kZero;
  specs["shard"] = spec;
  JobSpec stream = specs["usual"];
  stream.last_batch = LastBatch::kStream;
  specs["stream"] = stream;
  stream.pipeline.nodes.push_back(
      {"beta",
       {},
       {{"alpha", 1.0}, {"beta", 1.0}, {"per", std::string("batch")}}});
  stream.pipeline.outputs.push_back({"lam", {2, 0}});
  specs["stream_with_a_draw_for_steps"] = stream;
  JobSpec reduced = specs["usual"];
  reduced.pipeline.nodes[1].args["reduce"] = Value(std::string("none"));
  EXPECT_EQ(HashOf(reduced, Dataset(50)), HashOf(specs["usual"], Dataset(50)));
  reduced.pipeline.nodes[1].args["reduce"] = Value(std::string("auto"));
  specs["reduced"] = reduced;
  const auto lines = GoldenLines("plan_hash.txt");
  EXPECT_EQ(lines.size(), specs.size());
  for (const auto& line : lines) {
    ASSERT_EQ(line.size(), 2u);
    EXPECT_EQ(ToHex(HashOf(specs.at(line[0]), Dataset(50))), line[1])
        << line[0];
  }
}

TEST(Difference, IsEmptyBetweenEqualSpecs) {
  JobSpec other = Spec();
  other.shuffle_window = 3;  // without effect
  EXPECT_EQ(Difference(Spec(), other), "");
}

TEST(Difference, NamesEachFieldThatDiffers) {
  for (const auto& [field, change] : Changes()) {
    JobSpec other = Spec();
    change(&other);
    EXPECT_TRUE(Difference(Spec(), other).starts_with(field + " ")) << field;
  }
}

TEST(Difference, ShowsBothValues) {
  JobSpec other = Spec();
  other.batch = 24;
  other.seed = 1;
  other.order = Order::kSequential;
  EXPECT_EQ(Difference(Spec(), other),
            "batch 12 != 24; seed 7 != 1; order global != sequential");
  JobSpec shard = Spec();
  shard.order = Order::kShardShuffle;
  other = shard;
  other.shuffle_window = 2;
  EXPECT_EQ(Difference(shard, other), "shuffle_window 16 != 2");
  other = shard;
  other.max_bad = 0.01;
  EXPECT_EQ(Difference(shard, other), "max_bad none != 0.01");
}

TEST(Difference, AWantedAutoIsSatisfiedByAnyClass) {
  JobSpec other = Spec();
  other.decoder_class = DecoderClass::kAuto;
  EXPECT_EQ(Difference(Spec(), other), "");
  JobSpec existing = Spec();
  existing.decoder_class = DecoderClass::kNvjpeg;
  EXPECT_EQ(Difference(existing, other), "");
  EXPECT_EQ(Difference(existing, Spec()), "decoder_class nvjpeg != exact");
}

TEST(Difference, ShowsTheFirstLineOfThePipelineThatDiffers) {
  JobSpec other = Spec();
  other.pipeline.nodes[2].args["size"] = std::vector<int64_t>{8, 9};
  EXPECT_EQ(Difference(Spec(), other),
            "pipeline \"2 resize (1:0) size=ints[8,8]\" != "
            "\"2 resize (1:0) size=ints[8,9]\"");
  other = Spec();
  other.pipeline.outputs.pop_back();
  EXPECT_EQ(Difference(Spec(), other),
            "pipeline \"output \"label\" 0:1\" != \"(end)\"");
  other.pipeline = Graph();
  EXPECT_THAT(Difference(Spec(), other), HasSubstr("!= \"(end)\""));
  EXPECT_THAT(Difference(other, Spec()), HasSubstr("\"(end)\" !="));
}

TEST(CheckJob, RefusesSubstitutesForSamplesThatConsumersSupply) {
  JobSpec spec = Spec();
  EXPECT_FALSE(IsExternal(spec));
  spec.pipeline.nodes[0] = {
      std::string(kExternalReader),
      {},
      {{"num_samples", int64_t{100}},
       {"types", std::vector<std::string>{"encoded", "int32"}}}};
  EXPECT_TRUE(IsExternal(spec));
  for (const BadSamplePolicy policy :
       {BadSamplePolicy::kFail, BadSamplePolicy::kZero}) {
    spec.on_bad_sample = policy;
    EXPECT_TRUE(CheckJob(spec).ok()) << CheckJob(spec).status();
  }
  spec.on_bad_sample = BadSamplePolicy::kReplace;
  EXPECT_THAT(ErrorOf(CheckJob(spec).status()),
              HasSubstr("readers.external bring the samples of their own"));
}

}  // namespace
}  // namespace leat
