// SPDX-License-Identifier: Apache-2.0
#include "client/api/created_job.h"

#include <map>
#include <string>
#include <vector>

#include "core/plan/checked_job.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/wire/messages.h"

namespace leat::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Graph Photos(const std::string& path) {
  Graph graph;
  graph.nodes = {{"readers.image_folder", {}, {{"path", path}}},
                 {"decode", {{0, 0}}, {}},
                 {"resize", {{1, 0}}, {{"size", std::vector<int64_t>{8, 8}}}}};
  graph.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return graph;
}

JobSpec OnePipeline() {
  JobSpec spec;
  spec.name = "train";
  spec.pipeline = Photos("/photos");
  spec.seed = 7;
  spec.augment_seed = 9;
  spec.selection.arrangement.samples = {.begin = 0, .end = 40, .step = 1};
  spec.batch = 16;
  spec.order = Order::kShardShuffle;
  spec.last_batch = LastBatch::kMask;
  spec.num_parts = 4;
  spec.rotate_parts = spec.mix_parts = true;
  spec.shuffle_window = 3;
  spec.decoder_class = DecoderClass::kNvjpeg;
  spec.on_bad_sample = BadSamplePolicy::kZero;
  spec.max_bad = 0.5;
  return spec;
}

JobSpec Mixture() {
  JobSpec spec;
  spec.name = "mix";
  spec.sources = {{"web", Photos("/web")}, {"books", Photos("/books")}};
  spec.shares = {{0, {3, 1}}, {100, {1, 3}}};
  spec.mix_end = MixEnd::kStream;
  spec.source_field = "source";
  spec.batch = 16;
  spec.last_batch = LastBatch::kStream;
  return spec;
}

// The answer of a coordinator that knows all fields.
v1::Job Made(const JobSpec& wanted) {
  JobSpec spec = wanted;
  absl::StatusOr<CheckedJob> checked = CheckJob(spec);
  EXPECT_TRUE(checked.ok()) << checked.status();
  for (size_t i = 0; i < checked->sources.size(); ++i)
    PipelineOf(spec, i) = checked->sources[i].graph;
  v1::Job job;
  *job.mutable_spec() = rpc::ToProto(spec);
  for (size_t i = 0; i < spec.sources.size(); ++i) job.add_datasets();
  return job;
}

std::string Refusal(const JobSpec& wanted, const v1::Job& job) {
  return std::string(Message(CheckCreated(wanted, job)));
}

TEST(CreatedJob, IsTheOneThatWasAskedFor) {
  for (const JobSpec& wanted : {OnePipeline(), Mixture()})
    EXPECT_EQ(CheckCreated(wanted, Made(wanted)), absl::OkStatus());
}

TEST(CreatedJob, MayHaveTheClassThatTheCoordinatorChose) {
  JobSpec wanted = OnePipeline();
  wanted.decoder_class = DecoderClass::kAuto;
  v1::Job job = Made(wanted);
  for (const auto chosen :
       {v1::DECODER_CLASS_EXACT, v1::DECODER_CLASS_NVJPEG}) {
    job.mutable_spec()->set_decoder_class(chosen);
    EXPECT_EQ(CheckCreated(wanted, job), absl::OkStatus());
  }
}

// A coordinator of another version leaves out what it does not know. A field
// that JobSpec has and Difference does not compare fails this test.
TEST(CreatedJob, WithoutAnyOneFieldIsRefusedByItsName) {
  // Fields whose differences are told in other words.
  const std::map<std::string, std::string> words = {
      {"sources", "a mixture of 2 sources (web, books)"},
      {"shares", "weights"}};
  const google::protobuf::Descriptor& fields = *v1::JobSpec::descriptor();
  int checked = 0;
  for (int i = 0; i < fields.field_count(); ++i) {
    const std::string field(fields.field(i)->name());
    // The default of mix_end is the only value in a job that has a schedule.
    if (field == "name" || field == "mix_end") continue;
    bool found = false;
    for (const JobSpec& wanted : {OnePipeline(), Mixture()}) {
      v1::Job job = Made(wanted);
      const google::protobuf::Reflection& spec = *job.spec().GetReflection();
      const bool set = fields.field(i)->is_repeated()
                           ? spec.FieldSize(job.spec(), fields.field(i)) > 0
                           : spec.HasField(job.spec(), fields.field(i));
      if (!set) continue;
      found = true;
      spec.ClearField(job.mutable_spec(), fields.field(i));
      if (field == "sources") job.clear_datasets();
      const auto word = words.find(field);
      const absl::Status status = CheckCreated(wanted, job);
      EXPECT_FALSE(status.ok()) << field;
      EXPECT_THAT(std::string(Message(status)),
                  HasSubstr(word == words.end() ? field : word->second));
      ++checked;
      break;
    }
    EXPECT_TRUE(found) << "no spec of this test has a " << field;
  }
  EXPECT_GE(checked, 17);
}

TEST(CreatedJob, OfOtherSharesNamesTheStepAndBothWeights) {
  const JobSpec wanted = Mixture();
  v1::Job job = Made(wanted);
  job.mutable_spec()->mutable_shares()->RemoveLast();
  EXPECT_THAT(
      Refusal(wanted, job),
      AllOf(HasSubstr("job mix: the coordinator made another job"),
            HasSubstr("weights at step 100 \"from step 0: web=3 "
                      "books=1\" != \"from step 100: web=1 books=3\"")));
  JobSpec ends = wanted;
  ends.shares.pop_back();
  ends.mix_end = MixEnd::kAll;
  ends.last_batch = LastBatch::kDrop;
  v1::Job endless = Made(ends);
  endless.mutable_spec()->clear_mix_end();
  EXPECT_THAT(Refusal(ends, endless), HasSubstr("mix_end stream != all"));
}

TEST(CreatedJob, OfAnotherSourceNamesIt) {
  const JobSpec wanted = Mixture();
  JobSpec other = wanted;
  other.sources[1].pipeline.nodes[0].args["path"] = std::string("/films");
  EXPECT_THAT(Refusal(wanted, Made(other)), HasSubstr("source \"books\""));
}

}  // namespace
}  // namespace leat::client
