// SPDX-License-Identifier: Apache-2.0
//
// Jobs of several sources.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/cluster/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/job/mixed_job.h"
#include "worker/job/job_runtime.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using MixedRuntime = MixtureTest;

TEST_F(MixedRuntime, ASourceHasTheRowsOfAJobOfItsOwn) {
  const JobSpec spec = Spec();
  const auto mixture = Open(spec);
  ASSERT_NE(mixture, nullptr);
  std::map<uint32_t, std::multiset<Drawn>> rows;
  for (uint64_t step = 0; step < 24; ++step)
    for (uint32_t row = 0; row < spec.batch; ++row) {
      const RowOf at = RowAt(*mixture, step, row);
      const Drawn drawn = DrawnAt(*mixture, at);
      EXPECT_EQ(std::get<3>(drawn), kMixedSamples[at.sample]);
      rows[mixture->plan().SourceOf(at.sample)].insert(drawn);
    }
  for (uint32_t i = 0; i < 3; ++i) {
    JobSpec own = spec;
    own.pipeline = spec.sources[i].pipeline;
    own.sources.clear();
    own.shares.clear();
    own.seed = SourceSeed(spec.seed, i);
    own.batch = 1;
    const auto alone = Open(own);
    ASSERT_NE(alone, nullptr);
    std::multiset<Drawn> want;
    for (uint64_t step = 0; step < rows[i].size(); ++step)
      want.insert(DrawnAt(*alone, RowAt(*alone, step, 0)));
    EXPECT_EQ(rows[i], want) << spec.sources[i].name;
  }
}

TEST_F(MixedRuntime, FieldsSayTheSourceAndWhetherTheRowIsValid) {
  Write("books", 'B', "!");
  JobSpec spec = Spec();
  spec.source_field = "from";
  spec.on_bad_sample = BadSamplePolicy::kZero;
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  EXPECT_THAT(job->field_bytes(), ElementsAre(48, 4, 4, 1));
  for (uint64_t sample = 0; sample < 13; ++sample) {
    const auto fields = Fields(*job, {.sample = sample});
    ASSERT_TRUE(fields.ok()) << fields.status();
    int32_t from = -1;
    std::memcpy(&from, (*fields)[2].data(), sizeof(from));
    EXPECT_EQ(from, sample < 6 ? 0 : sample < 10 ? 1 : 2) << sample;
    const bool bad = sample == 7;
    EXPECT_EQ((*fields)[3][0], std::byte{!bad}) << sample;
    EXPECT_EQ(std::get<3>(DrawnOf((*fields)[0])),
              bad ? 0 : kMixedSamples[sample]);
  }
}

TEST_F(MixedRuntime, WithoutTheFieldsRowsHaveThePipelinesOnly) {
  const auto job = Open(Spec());
  ASSERT_NE(job, nullptr);
  EXPECT_THAT(job->field_bytes(), ElementsAre(48, 4));
  EXPECT_TRUE(Fields(*job, {.sample = 12}).ok());
}

TEST_F(MixedRuntime, ABadSampleIsReplacedByOneOfItsSourceAndNamedByItsFile) {
  Write("books", 'B', "!");
  Write("code", '0', "!");
  JobSpec spec = Spec();
  spec.on_bad_sample = BadSamplePolicy::kReplace;
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  std::set<char> books, code;
  for (uint32_t row = 0; row < 8; ++row)
    for (uint64_t step = 0; step < 4; ++step) {
      const RowOf at{.step = step, .row = row, .sample = 7};
      books.insert(std::get<3>(DrawnAt(*job, at)));
      code.insert(
          std::get<3>(DrawnAt(*job, {.step = step, .row = row, .sample = 10})));
    }
  for (const char c : books) EXPECT_THAT("ACD", HasSubstr(std::string(1, c)));
  for (const char c : code) EXPECT_THAT("12", HasSubstr(std::string(1, c)));
  const BadSamples::Report report = bad_.Take();
  ASSERT_TRUE(report.contains("mix"));
  EXPECT_THAT(report.at("mix"), SizeIs(2));
  EXPECT_THAT(report.at("mix").at(7).record, HasSubstr("books/k/B.jpg"));
  EXPECT_THAT(report.at("mix").at(10).record, HasSubstr("code/k/0.jpg"));
  EXPECT_THAT(bad_.TakeCounted(10).at(job->job().plan_hash),
              ElementsAre(7, 10));
  // A substitute has the draws of its own number in its dataset.
  const Drawn drawn = DrawnAt(*job, {.sample = 7});
  EXPECT_EQ(std::get<0>(drawn), SourceSeed(7, 1));
  EXPECT_EQ(std::get<3>(drawn), kMixedSamples[6 + std::get<2>(drawn)]);
}

TEST_F(MixedRuntime, UnderFailTheErrorNamesTheSampleAndItsFile) {
  Write("code", '1', "!");
  const auto job = Open(Spec());
  ASSERT_NE(job, nullptr);
  const absl::Status status = Fields(*job, {.sample = 11}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(FaultOf(status), Fault::kSample);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("sample 11"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("code/k/1.jpg"));
}

TEST_F(MixedRuntime, SourcesThatDifferOnlyInTheirReaderShareAKernel) {
  const auto same = Open(Spec());
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(compiled_, 1);
  EXPECT_TRUE(same->groups().staged(false))
      << "groups take rows of all sources";
  for (const auto& source : same->sources())
    EXPECT_EQ(&source->kernel(), &same->sources()[0]->kernel());

  JobSpec spec = Spec();
  spec.sources[1].pipeline.nodes[2].args["interpolation"] = "nearest";
  const auto other = Open(spec);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(compiled_, 3);
  EXPECT_FALSE(other->groups().staged(false));
  EXPECT_EQ(&other->sources()[2]->kernel(), &other->sources()[0]->kernel());
  EXPECT_NE(&other->sources()[1]->kernel(), &other->sources()[0]->kernel());

  spec = Spec();
  spec.source_field = "from";
  const auto numbered = Open(spec);
  ASSERT_NE(numbered, nullptr);
  EXPECT_EQ(compiled_, 4);
  EXPECT_FALSE(numbered->groups().staged(false))
      << "no group writes the number";
}

TEST_F(MixedRuntime, AGroupHasRowsOfAllSources) {
  Write("books", 'B', "!");
  JobSpec spec = Spec();
  spec.on_bad_sample = BadSamplePolicy::kReplace;
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  const std::vector<RowOf> rows = {
      {.sample = 12}, {.row = 1, .sample = 0}, {.row = 2, .sample = 7}};
  std::vector<std::byte> memory(rows.size() * (48 + 4));
  const std::vector<uint64_t> offsets = {0, rows.size() * 48};
  const auto stage = job->BeginGroup({.rows = rows.size(),
                                      .base = memory.data(),
                                      .offsets = offsets,
                                      .field_bytes = job->field_bytes()});
  ASSERT_NE(stage, nullptr);
  for (size_t i = 0; i < rows.size(); ++i)
    ASSERT_TRUE(stage->Prepare(i, rows[i], nullptr).ok()) << i;
  bool done = false;
  stage->Finish([&](const std::vector<absl::Status>& statuses) {
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok());
    done = true;
  });
  EXPECT_TRUE(done);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(DrawnOf(std::span(memory).subspan(i * 48, 48)),
              DrawnAt(*job, rows[i]))
        << i;
}

// Equal fields may come from other heads: floats are a normalised image, or
// already floats.
TEST_F(MixedRuntime, SourcesOfOtherHeadsAreRefusedWhereTheDeviceFinishesRows) {
  JobSpec spec = Spec();
  for (MixedSource& source : spec.sources) {
    source.pipeline.nodes.push_back(
        {.op = "normalize",
         .inputs = {{2, 0}},
         .args = {{"mean", std::vector<double>{1}},
                  {"std", std::vector<double>{2}}}});
    source.pipeline.outputs[0].second = {3, 0};
  }
  const auto heads = Open(spec, Epilogue::kDevice);
  ASSERT_NE(heads, nullptr);
  EXPECT_THAT(heads->field_bytes(), ElementsAre(48, 4));
  spec.sources[1].pipeline.nodes[3] = {.op = "standardize", .inputs = {{2, 0}}};
  const MixedJob job = Job(spec);
  ASSERT_TRUE(JobRuntime::Create(job.info, SourcesOf(job), &context_).ok());
  const absl::Status status =
      JobRuntime::Create(job.info, SourcesOf(job), &context_, Epilogue::kDevice)
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("job mix: epilogue device: its sources end with "
                        "different operators"));
}

TEST_F(MixedRuntime, MixturesOfOtherSharesShareRows) {
  JobSpec spec = Spec();
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  spec.name = "other";
  spec.batch = 16;
  spec.shares = {{0, {1, 1, 1}}, {10, {0, 0, 1}}};
  const auto other = Open(spec);
  ASSERT_NE(other, nullptr);
  ASSERT_NE(job->job().plan_hash, other->job().plan_hash);
  EXPECT_EQ(*job->sharing_key(), *other->sharing_key());
  // Rows of one pass over one sample have one key, and equal bytes.
  std::map<std::pair<uint64_t, uint64_t>, RowOf> rows;
  for (uint64_t step = 0; step < 8; ++step)
    for (uint32_t row = 0; row < 8; ++row) {
      const RowOf at = RowAt(*job, step, row);
      rows[{job->KeyOf(at).epoch, at.sample}] = at;
    }
  int shared = 0;
  for (uint64_t step = 0; step < 4; ++step)
    for (uint32_t row = 0; row < 16; ++row) {
      const RowOf at = RowAt(*other, step, row);
      const auto same = rows.find({other->KeyOf(at).epoch, at.sample});
      if (same == rows.end()) continue;
      ++shared;
      EXPECT_EQ(job->KeyOf(same->second), other->KeyOf(at));
      EXPECT_EQ(DrawnAt(*job, same->second), DrawnAt(*other, at));
    }
  EXPECT_GT(shared, 20);
}

// A lone row may hold any sample, and two epochs may be in one pass.
TEST_F(MixedRuntime, RowsWithDrawsForStepsAreNotSharedBetweenEpochs) {
  JobSpec spec = Spec();
  spec.last_batch = LastBatch::kDrop;
  spec.mix_end = MixEnd::kFirst;
  for (MixedSource& source : spec.sources) {
    source.pipeline.nodes.push_back(
        {"beta", {}, {{"per", std::string("batch")}}});
    source.pipeline.outputs.push_back({"mixed", {3, 0}});
  }
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  int in_one_pass = 0;
  for (uint32_t row = 0; row < spec.batch; ++row) {
    const RowOf first{.epoch = 0, .row = row}, second{.epoch = 1, .row = row};
    in_one_pass += job->PassOf(first) == job->PassOf(second);
    EXPECT_NE(job->KeyOf(first), job->KeyOf(second)) << row;
  }
  EXPECT_GT(in_one_pass, 0);
}

TEST_F(MixedRuntime, TheSeedOfTheOrderIsInNoRow) {
  JobSpec spec = Spec();
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  spec.augment_seed = spec.seed;
  spec.seed = 8;
  const auto other = Open(spec);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(*job->sharing_key(), *other->sharing_key());
  int moved = 0;
  for (uint32_t row = 0; row < 8; ++row)
    moved += RowAt(*job, 0, row).sample != RowAt(*other, 0, row).sample;
  EXPECT_GT(moved, 0);
}

TEST_F(MixedRuntime, MixturesOfOtherRowsDoNotShareThem) {
  const JobSpec spec = Spec();
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  const std::function<void(JobSpec&)> changes[] = {
      [](JobSpec& other) { other.seed = 8; },
      [](JobSpec& other) { other.augment_seed = 9; },
      [](JobSpec& other) { std::swap(other.sources[0], other.sources[1]); },
      [](JobSpec& other) { other.source_field = "from"; },
      [](JobSpec& other) { other.on_bad_sample = BadSamplePolicy::kZero; },
      [](JobSpec& other) {
        other.sources.pop_back();
        other.shares[0].weights.pop_back();
      },
      [&](JobSpec& other) {
        other.sources[2].pipeline = other.sources[0].pipeline;
      },
  };
  std::set<Digest> keys = {*job->sharing_key()};
  for (const auto& change : changes) {
    JobSpec other = spec;
    change(other);
    const auto opened = Open(other);
    ASSERT_NE(opened, nullptr);
    EXPECT_TRUE(keys.insert(*opened->sharing_key()).second);
  }
}

TEST_F(MixedRuntime, AnIndexOfAnotherSourceIsRefused) {
  const MixedJob job = Job(Spec());
  auto sources = SourcesOf(job);
  std::swap(sources[0], sources[1]);
  const absl::Status status =
      JobRuntime::Create(job.info, std::move(sources), &context_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("has 4 samples"));
}

TEST_F(MixedRuntime, ARequestIsCheckedAgainstThePlan) {
  const auto job = Open(Spec());
  ASSERT_NE(job, nullptr);
  RowRequest request{.step = 3, .rows = {0, 1, 2}};
  for (const uint32_t row : request.rows)
    request.samples.push_back(RowAt(*job, 3, row).sample);
  EXPECT_TRUE(job->CheckRequest(request).ok()) << job->CheckRequest(request);
  request.samples[1] = (request.samples[1] + 1) % 13;
  EXPECT_THAT(std::string(Message(job->CheckRequest(request))),
              HasSubstr("the plan says"));
  request.samples[1] = 13;
  EXPECT_THAT(std::string(Message(job->CheckRequest(request))),
              HasSubstr("sample 13: want less than 13"));
}

// A row's partner may be of another source: its draws are keyed by the seed and
// the number that it has there.
class PairKernel final : public RowKernel {
 public:
  absl::Status Run(
      const RowInput& input, ThreadState*,
      std::span<const std::span<std::byte>> outputs) const override {
    return input.partner->With([&](const RowInput& other) {
      const uint64_t numbers[] = {
          other.seed, other.epoch, other.sample,
          static_cast<uint64_t>(other.fields[0].bytes[0])};
      std::memcpy(outputs[0].data(), numbers, sizeof(numbers));
      return absl::OkStatus();
    });
  }
};

TEST_F(MixedRuntime, PartnersAreOfAnySource) {
  context_.kernels.compile =
      [](const CheckedGraph&,
         DecoderClass) -> absl::StatusOr<std::unique_ptr<RowKernel>> {
    return std::make_unique<PairKernel>();
  };
  JobSpec spec = Spec();
  for (MixedSource& source : spec.sources) {
    source.pipeline.nodes.push_back({.op = "partner", .inputs = {{2, 0}}});
    source.pipeline.outputs[0].second = {3, 0};
  }
  const auto job = Open(spec);
  ASSERT_NE(job, nullptr);
  const std::vector<uint64_t> first = FirstSamples(job->job().datasets);
  int across = 0;
  for (uint64_t step = 0; step < 4; ++step)
    for (uint32_t row = 0; row < spec.batch; ++row) {
      const RowOf own = RowAt(*job, step, row);
      const RowOf other =
          RowAt(*job, step, job->plan().PartnerOf(0, step, row));
      const uint32_t source = job->plan().SourceOf(other.sample);
      across += source != job->plan().SourceOf(own.sample);
      EXPECT_EQ(
          DrawnAt(*job, own),
          Drawn(SourceSeed(spec.seed, source), job->PassOf(other),
                other.sample - first[source], kMixedSamples[other.sample]));
    }
  EXPECT_GT(across, 4);
  EXPECT_EQ(job->CountTogether(std::vector<uint64_t>{0, 1, 2}), 1u);
  // Rows depend on their steps then: other shares have other rows.
  spec.shares = {{0, {1, 1, 1}}};
  EXPECT_NE(*job->sharing_key(), *Open(spec)->sharing_key());
}

}  // namespace
}  // namespace leat::worker
