// SPDX-License-Identifier: Apache-2.0
//
// Mixtures: their checks, their hashes, and the plan that deals their rows out.
// Jobs of one pipeline are checked in job_test.cc.
#include "core/plan/checked_job.h"

#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/share_layout.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

Graph Photos(const std::string& path, int64_t side = 8) {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", Value(path)}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize",
                  {{1, 0}},
                  {{"size", Value(std::vector<int64_t>{side, side})}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

JobSpec Mixture() {
  JobSpec spec;
  spec.name = "mix";
  spec.batch = 64;
  spec.seed = 7;
  spec.last_batch = LastBatch::kStream;
  spec.sources = {{"web", Photos("/web")},
                  {"books", Photos("/books")},
                  {"code", Photos("/code")}};
  spec.shares = {{0, {7, 2, 1}}};
  return spec;
}

std::vector<DatasetInfo> Datasets(std::vector<uint64_t> samples) {
  std::vector<DatasetInfo> datasets;
  for (const uint64_t count : samples) {
    DatasetInfo& dataset = datasets.emplace_back();
    dataset.name = "d" + std::to_string(datasets.size());
    dataset.shards = *ShardTable::Uniform(count, 10);
    dataset.fingerprint.fill(static_cast<uint8_t>(datasets.size()));
    dataset.content.fill(static_cast<uint8_t>(100 + datasets.size()));
  }
  return datasets;
}

TEST(Mixture, HasThePipelinesOutputsAndTheSourcesNumber) {
  JobSpec spec = Mixture();
  spec.source_field = "from";
  spec.on_bad_sample = BadSamplePolicy::kZero;
  const auto checked = CheckJob(spec);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->sources.size(), 3u);
  ASSERT_EQ(checked->schema.fields.size(), 4u);
  EXPECT_EQ(checked->schema.fields[2].name, "from");
  EXPECT_EQ(checked->schema.fields[2].dtype, DType::kInt32);
  EXPECT_EQ(checked->schema.fields[3].name, kValidField);
}

TEST(Mixture, ErrorsNameTheSourceTheValueAndWhatIsWanted) {
  const std::tuple<const char*, std::function<void(JobSpec&)>> cases[] = {
      {"1 source: want 2 to 1000",
       [](JobSpec& spec) { spec.sources.resize(1); }},
      {"1001 sources: want 2 to 1000",
       [](JobSpec& spec) { spec.sources.resize(1001); }},
      {"pipeline: want none beside 3 sources",
       [](JobSpec& spec) { spec.pipeline = Photos("/d"); }},
      {"source name \"web\" is there twice",
       [](JobSpec& spec) { spec.sources[2].name = "web"; }},
      {"source name \"a b\" has character 32 at 1",
       [](JobSpec& spec) { spec.sources[2].name = "a b"; }},
      {"last_batch drop: want stream in a mixture whose mix_end is stream",
       [](JobSpec& spec) { spec.last_batch = LastBatch::kDrop; }},
      {"num_parts 2: want 0 in a mixture",
       [](JobSpec& spec) { spec.num_parts = 2; }},
      {"source \"books\": output \"image\" is uint8 (9, 9, 3), that of "
       "\"web\" uint8 (8, 8, 3)",
       [](JobSpec& spec) { spec.sources[1].pipeline = Photos("/b", 9); }},
      {"source \"code\" has 1 outputs, \"web\" 2",
       [](JobSpec& spec) { spec.sources[2].pipeline.outputs.pop_back(); }},
      {"source \"books\": ",
       [](JobSpec& spec) { spec.sources[1].pipeline.nodes[1].op = "decod"; }},
      {"output \"label\": want another name, as source_field adds",
       [](JobSpec& spec) { spec.source_field = "label"; }},
      {"weights[\"books\"] = nan",
       [](JobSpec& spec) {
         spec.shares[0].weights[1] = std::numeric_limits<double>::quiet_NaN();
       }},
      {"weights", [](JobSpec& spec) { spec.shares[0].weights.pop_back(); }},
      {"weights[1] begins at step 0",
       [](JobSpec& spec) { spec.shares.push_back(spec.shares[0]); }},
  };
  for (const auto& [want, change] : cases) {
    JobSpec spec = Mixture();
    change(spec);
    const absl::Status status = CheckJob(spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << want;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(want));
  }
}

// A worker would find no kernel that computes such rows in a group.
TEST(Mixture, OfClassNvjpegHasOneKernelAndNoSourceField) {
  JobSpec spec = Mixture();
  spec.decoder_class = DecoderClass::kNvjpeg;
  EXPECT_TRUE(CheckJob(spec).ok()) << CheckJob(spec).status();
  JobSpec numbered = spec;
  numbered.source_field = "from";
  EXPECT_THAT(std::string(Message(CheckJob(numbered).status())),
              HasSubstr("decoder_class nvjpeg: GPUs do not write the number of "
                        "a row's source (source_field); want exact"));
  JobSpec unlike = spec;
  Graph& pipeline = unlike.sources[1].pipeline;
  pipeline.nodes.push_back({"flip", {pipeline.outputs[0].second}, {}});
  pipeline.outputs[0].second = {
      static_cast<uint32_t>(pipeline.nodes.size() - 1), 0};
  EXPECT_THAT(std::string(Message(CheckJob(unlike).status())),
              HasSubstr("decoder_class nvjpeg: sources \"web\" and \"books\" "
                        "have different operators"));
  for (JobSpec* exact : {&numbered, &unlike}) {
    exact->decoder_class = DecoderClass::kExact;
    EXPECT_TRUE(CheckJob(*exact).ok()) << CheckJob(*exact).status();
  }
}

TEST(Mixture, APlainJobHasNoShares) {
  JobSpec spec = Mixture();
  spec.pipeline = Photos("/d");
  spec.sources.clear();
  EXPECT_THAT(std::string(Message(CheckJob(spec).status())),
              HasSubstr("shares: want them in a mixture only"));
  spec.shares.clear();
  EXPECT_TRUE(CheckJob(spec).ok());
}

TEST(Mixture, EveryDatasetNeedsSamples) {
  const JobSpec spec = Mixture();
  EXPECT_TRUE(CheckAgainst(spec, Datasets({70, 40, 9})).ok());
  EXPECT_THAT(std::string(Message(CheckAgainst(spec, Datasets({70, 0, 9})))),
              HasSubstr("books"));
}

TEST(Mixture, ThePlanHashCoversAllThatRowsDependOn) {
  const auto datasets = Datasets({70, 40, 9});
  const JobSpec spec = Mixture();
  const Digest hash = PlanHash(spec, datasets);
  JobSpec renamed = spec;
  renamed.sources[0].name = "www";
  renamed.shares[0].weights = {14, 4, 2};
  EXPECT_EQ(PlanHash(renamed, datasets), hash) << "equal rows";
  const std::function<void(JobSpec&)> changes[] = {
      [](JobSpec& other) { other.shares[0].weights[2] = 2; },
      [](JobSpec& other) {
        other.shares.push_back({100, {1, 1, 1}});
      },
      [](JobSpec& other) { other.seed = 8; },
      [](JobSpec& other) { other.batch = 128; },
      [](JobSpec& other) { other.source_field = "from"; },
      [](JobSpec& other) { std::swap(other.sources[0], other.sources[1]); },
  };
  for (const auto& change : changes) {
    JobSpec other = spec;
    change(other);
    EXPECT_NE(PlanHash(other, datasets), hash);
  }
  auto moved = datasets;
  moved[2].fingerprint.fill(9);
  EXPECT_NE(PlanHash(spec, moved), hash);
}

TEST(Mixture, APositionFitsJobsThatAppendLater) {
  JobInfo before{.spec = Mixture(), .datasets = Datasets({70, 40, 9})};
  JobInfo after = before;
  after.spec.shares.push_back({100, {1, 1, 1, 7}});
  after.spec.shares[0].weights.push_back(0);
  after.spec.sources.push_back({"talk", Photos("/talk")});
  after.datasets = Datasets({70, 40, 9, 33});
  for (const uint64_t step : {0, 1, 99, 100})
    EXPECT_EQ(PositionHash(before, step), PositionHash(after, step)) << step;
  EXPECT_NE(PositionHash(before, 101), PositionHash(after, 101));
  after.datasets[0].content.fill(77);
  EXPECT_NE(PositionHash(before, 0), PositionHash(after, 0));
}

// Row j of a source is row j of a stream of its own with the seed SourceSeed.
TEST(Mixture, ASourceHasTheRowsOfAJobOfItsOwn) {
  for (const Order order : {Order::kGlobalShuffle, Order::kShardShuffle}) {
    JobSpec spec = Mixture();
    spec.order = order;
    const auto datasets = Datasets({70, 40, 9});
    const Plan plan(spec, datasets);
    const std::vector<uint64_t> first = FirstSamples(datasets);
    std::vector<std::vector<std::pair<uint64_t, uint64_t>>> rows(3);
    for (uint64_t step = 0; step < 12; ++step)
      for (uint32_t row = 0; row < spec.batch; ++row) {
        uint64_t sample = 0;
        plan.Samples(0, step, std::span(&row, 1), std::span(&sample, 1));
        const uint32_t source = plan.SourceOf(sample);
        rows[source].emplace_back(plan.PassOf(0, step, row),
                                  sample - first[source]);
      }
    for (uint32_t source = 0; source < 3; ++source) {
      JobSpec own;
      own.seed = SourceSeed(spec.seed, source);
      own.batch = 1;
      own.order = order;
      own.last_batch = LastBatch::kStream;
      const Plan alone(own, datasets[source].shards);
      std::vector<std::pair<uint64_t, uint64_t>> want;
      for (uint64_t step = 0; step < rows[source].size(); ++step) {
        const uint32_t row = 0;
        uint64_t sample = 0;
        alone.Samples(0, step, std::span(&row, 1), std::span(&sample, 1));
        want.emplace_back(alone.PassOf(0, step, 0), sample);
      }
      // Rows of a run of 64 may stand in any order.
      std::ranges::sort(rows[source]);
      std::ranges::sort(want);
      EXPECT_EQ(rows[source], want) << source;
    }
  }
}

TEST(Mixture, SubstitutesAreOfTheSameSource) {
  const auto datasets = Datasets({70, 40, 9});
  const Plan plan(Mixture(), datasets);
  for (const uint64_t sample : {0, 69, 70, 109, 110, 118})
    for (uint32_t attempt = 0; attempt < kMaxSubstitutes; ++attempt) {
      const uint64_t other = plan.Substitute(3, sample, attempt);
      EXPECT_NE(other, sample);
      EXPECT_EQ(plan.SourceOf(other), plan.SourceOf(sample)) << sample;
    }
}

TEST(Mixture, APositionIsThePlansWhereAContentIsNotKnown) {
  JobInfo job{.spec = Mixture(), .datasets = Datasets({70, 40, 9})};
  job.plan_hash = PlanHash(job.spec, job.datasets);
  for (const uint64_t step : {0, 50})
    EXPECT_NE(PositionHash(job, step), job.plan_hash);
  job.datasets[2].content = {};
  for (const uint64_t step : {0, 50})
    EXPECT_EQ(PositionHash(job, step), job.plan_hash);
}

TEST(Mixture, APositionFitsWhereAnyDatasetHasMoved) {
  JobInfo job{.spec = Mixture(), .datasets = Datasets({70, 40, 9})};
  const Digest hash = PositionHash(job, 50);
  for (size_t i = 0; i < 3; ++i) {
    JobInfo moved = job;
    moved.datasets[i].fingerprint.fill(99);
    moved.spec.sources[i].pipeline.nodes[0].args["path"] = Value("/elsewhere");
    EXPECT_EQ(PositionHash(moved, 50), hash) << i;
    moved.datasets[i].content.fill(99);
    EXPECT_NE(PositionHash(moved, 50), hash) << i;
  }
}

TEST(MixtureDifference, IsEmptyWhereRowsAndNamesAreEqual) {
  JobSpec other = Mixture();
  EXPECT_EQ(Difference(Mixture(), other), "");
  other.shares[0].weights = {14, 4, 2};
  EXPECT_EQ(Difference(Mixture(), other), "");
}

TEST(MixtureDifference, NamesWhatDiffers) {
  const std::tuple<const char*, std::function<void(JobSpec&)>> cases[] = {
      {"last_batch stream != drop; mix_end stream != first",
       [](JobSpec& spec) {
         spec.last_batch = LastBatch::kDrop;
         spec.mix_end = MixEnd::kFirst;
       }},
      {"source_field \"\" != \"from\"",
       [](JobSpec& spec) { spec.source_field = "from"; }},
      {"source 1 \"books\" != \"novels\"",
       [](JobSpec& spec) { spec.sources[1].name = "novels"; }},
      {"source \"books\": pipeline \"0 readers.image_folder "
       "path=\"/books\"\" != \"0 readers.image_folder "
       "path=\"/b\"\"",
       [](JobSpec& spec) { spec.sources[1].pipeline = Photos("/b"); }},
      {"a mixture of 3 sources (web, books, code) != a mixture of 2 sources "
       "(web, books); weights at step 0 \"from step 0: web=7 books=2 code=1\" "
       "!= \"from step 0: web=7 books=2\"",
       [](JobSpec& spec) {
         spec.sources.pop_back();
         spec.shares[0].weights.pop_back();
       }},
      {"weights at step 0 \"from step 0: web=7 books=2 code=1\" != \"from step "
       "0: web=7 books=3 code=1\"",
       [](JobSpec& spec) { spec.shares[0].weights[1] = 3; }},
      {"weights at step 90 \"from step 0: web=7 books=2 code=1\" != \"from "
       "step "
       "90: web=1 books=0.5 code=0\"",
       [](JobSpec& spec) {
         spec.shares.push_back({90, {1, 0.5, 0}});
       }},
      {"a mixture of 3 sources (web, books, code) != one pipeline",
       [](JobSpec& spec) {
         spec.pipeline = Photos("/web");
         spec.sources.clear();
         spec.shares.clear();
       }},
  };
  for (const auto& [want, change] : cases) {
    JobSpec other = Mixture();
    change(other);
    EXPECT_EQ(Difference(Mixture(), other), want);
    EXPECT_NE(Difference(other, Mixture()), "") << want;
  }
}

// Users may write segments that repeat the weights before them.
TEST(MixtureDifference, ShowsTheWeightsInForceAfterSegmentsThatChangeNothing) {
  JobSpec existing = Mixture();
  existing.shares = {{0, {7, 2, 1}}, {10, {14, 4, 2}}, {90, {1, 1, 1}}};
  JobSpec wanted = existing;
  wanted.shares[2].weights = {1, 1, 0};
  EXPECT_EQ(Difference(existing, wanted),
            "weights at step 90 \"from step 90: web=1 books=1 code=1\" != "
            "\"from step 90: web=1 books=1 code=0\"");
}

// A caller sees the first few of a thousand.
TEST(MixtureDifference, IsShortHoweverManySourcesDiffer) {
  JobSpec many = Mixture(), other = Mixture();
  many.sources.clear();
  many.shares[0].weights.assign(kMaxSources, 1);
  for (size_t i = 0; i < kMaxSources; ++i)
    many.sources.push_back({"s" + std::to_string(i), Photos("/d")});
  other = many;
  for (MixedSource& source : other.sources) source.name += "x";
  other.shares[0].weights[700] = 2;
  const std::string text = Difference(many, other);
  EXPECT_LT(text.size(), 500u);
  EXPECT_THAT(text, HasSubstr("source 3 \"s3\" != \"s3x\"; 996 more; "));
  EXPECT_THAT(text, HasSubstr("s700=1 s701=1 s702=1 s703=1 296 more\""));
  EXPECT_THAT(text, HasSubstr("s700x=2 s701x=1 "));
}

}  // namespace
}  // namespace leat
