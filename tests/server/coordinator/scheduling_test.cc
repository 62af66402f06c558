// SPDX-License-Identifier: Apache-2.0
//
// Shares of the owners, and the decoder class that a job gets: workers with and
// without a GPU.
#include <map>

#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

const std::vector<DecoderClass> kBoth = {DecoderClass::kExact,
                                         DecoderClass::kNvjpeg};
constexpr double kCpuRate = 800, kGpuRate = 20 * kCpuRate;

JobSpec SpecWith(const std::string& name, DecoderClass decoder_class) {
  JobSpec spec = SpecOf(name, "/d");
  spec.decoder_class = decoder_class;
  return spec;
}

std::map<std::string, uint64_t> Owned(World& world) {
  std::map<std::string, uint64_t> owned;
  for (const WorkerView& view : world->Workers())
    owned[view.registration->name] = view.shards_owned;
  return owned;
}

// All report for a while, each at its rate; the table follows.
void Report(World& world, const std::map<SessionId, double>& rates,
            int times = 5) {
  for (int i = 0; i < times; ++i) {
    for (const auto& [session, rate] : rates)
      ASSERT_TRUE(world.Beat(session, rate).ok());
    world.Advance(seconds(1));
  }
  world.Advance(milliseconds(60));
}

TEST(Scheduling, AWorkerOfTwentyTimesTheRateOwnsTwentyTimesTheShards) {
  World world;
  const SessionId a = world.Join(WorkerOf("a", 8)),
                  b = world.Join(WorkerOf("b", 8)),
                  gpu = world.Join(WorkerOf("gpu", 8, kBoth));
  world.MakeJob(SpecOf("j", "/d"), a, 44'000, 10);
  Report(world, {{a, kCpuRate}, {b, kCpuRate}, {gpu, kGpuRate}});
  std::map<std::string, uint64_t> owned = Owned(world);
  EXPECT_EQ(owned["a"] + owned["b"] + owned["gpu"], 4400u);
  for (const char* cpu : {"a", "b"}) {
    const double times =
        static_cast<double>(owned["gpu"]) / static_cast<double>(owned[cpu]);
    EXPECT_NEAR(times, 20, 4) << cpu << " owns " << owned[cpu];
  }
}

TEST(Scheduling, AGpuThatIsLostLeavesItsShardsToTheOthersAndTakesThemBack) {
  World world;
  const SessionId a = world.Join(WorkerOf("a", 8)),
                  b = world.Join(WorkerOf("b", 8));
  SessionId gpu = world.Join(WorkerOf("gpu", 8, kBoth));
  world.MakeJob(SpecOf("j", "/d"), a, 44'000, 10);
  Report(world, {{a, kCpuRate}, {b, kCpuRate}, {gpu, kGpuRate}});
  const std::map<std::string, uint64_t> before = Owned(world);
  ASSERT_GT(before.at("gpu"), 3800u);

  world->CloseWorker(gpu, /*left=*/false, world.now());
  Report(world, {{a, kCpuRate}, {b, kCpuRate}});
  std::map<std::string, uint64_t> owned = Owned(world);
  EXPECT_EQ(owned["gpu"], 0u);
  EXPECT_EQ(owned["a"] + owned["b"], 4400u);
  EXPECT_NEAR(static_cast<double>(owned["a"]), 2200, 120);

  // Another process on the same machine: its capacity is known.
  WorkerRegistration again = WorkerOf("gpu", 8, kBoth);
  again.pid = 2;
  gpu = world.Join(again);
  world.Advance(milliseconds(60));
  EXPECT_EQ(Owned(world)["gpu"], before.at("gpu"));
  Report(world, {{a, kCpuRate}, {b, kCpuRate}, {gpu, kGpuRate}});
  EXPECT_EQ(Owned(world), before);
}

TEST(Scheduling, ANewGpuStartsWithWhatItsLikesAreWorth) {
  World world;
  const SessionId cpu = world.Join(WorkerOf("cpu", 8)),
                  gpu = world.Join(WorkerOf("gpu", 8, kBoth));
  world.MakeJob(SpecOf("j", "/d"), cpu, 44'000, 10);
  Report(world, {{cpu, kCpuRate}, {gpu, kGpuRate}});
  world.Join(WorkerOf("gpu2", 8, kBoth));
  world.Join(WorkerOf("cpu2", 8));
  world.Advance(milliseconds(60));
  std::map<std::string, uint64_t> owned = Owned(world);
  const auto near = [](uint64_t a, uint64_t b) {
    EXPECT_NEAR(static_cast<double>(a) / static_cast<double>(b), 1, 0.2);
  };
  near(owned["gpu2"], owned["gpu"]);
  near(owned["cpu2"], owned["cpu"]);
}

TEST(Scheduling, AMachineThatComesBackAsAnotherKindStartsAnew) {
  World world;
  const SessionId cpu = world.Join(WorkerOf("cpu", 8)),
                  gpu = world.Join(WorkerOf("x", 8, kBoth));
  world.MakeJob(SpecOf("j", "/d"), cpu, 44'000, 10);
  Report(world, {{cpu, kCpuRate}, {gpu, kGpuRate}});
  world.Join(WorkerOf("x", 8));  // its GPU is gone
  world.Advance(milliseconds(60));
  std::map<std::string, uint64_t> owned = Owned(world);
  EXPECT_NEAR(static_cast<double>(owned["x"]), 2200, 120);
}

TEST(Scheduling, AJobOfAClassThatNoReadyWorkerHasIsRefused) {
  World world;
  const SessionId cpu = world.Join("cpu");
  const JobSpec spec = SpecWith("j", DecoderClass::kNvjpeg);
  World::Box box = world.Create(spec);
  ASSERT_TRUE(box->has_value()) << "told at once, not after a listing";
  EXPECT_EQ((*box)->status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorOf(box),
            "job j wants decoder class nvjpeg, which none of 1 ready worker "
            "has: start a leat-worker on a machine with an NVIDIA GPU and "
            "nvJPEG, or ask for class auto");
  EXPECT_FALSE(world.Asked(cpu)) << "and nothing was listed for it";
  EXPECT_FALSE(world.Found("NO_DECODER"));

  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  ASSERT_TRUE(world.Drain("gpu").ok());
  EXPECT_TRUE(world.Create(spec)->has_value())
      << "a drained one does not count";
  ASSERT_TRUE(world.Drain("gpu", false).ok());
  const auto job = world.MakeJob(spec, cpu);
  ASSERT_NE(job, nullptr);
  const auto table =
      world->AssignmentOf(job->datasets[0].id, DecoderClass::kNvjpeg);
  ASSERT_EQ(table->workers.size(), 1u);
  EXPECT_EQ(table->workers[0].name, "gpu");

  // The job stays when its only worker is lost, and reports what it lacks.
  world->CloseWorker(gpu, true, world.now());
  ASSERT_TRUE(world.Beat(cpu).ok());
  world.Advance(milliseconds(60));
  for (const Finding& finding : world->Findings(world.now()))
    if (finding.code == "NO_DECODER") {
      EXPECT_EQ(finding.summary,
                "job j wants decoder class nvjpeg, which none of 1 ready "
                "worker has");
      EXPECT_NE(finding.remedy.find("NVIDIA GPU"), std::string::npos);
    }
  EXPECT_TRUE(world.Found("NO_DECODER"));
  EXPECT_TRUE(world.Create(spec)->value().value().attached);
  EXPECT_EQ(world->AssignmentOf(job->datasets[0].id, DecoderClass::kNvjpeg),
            table)
      << "consumers keep asking whom they know";
}

// A worker of an older release has nvJPEG and does not know the class.
TEST(Scheduling, AJobOfASharedClassIsOfWorkersThatShare) {
  World world;
  world.Join(WorkerOf("older", 2, kBoth));
  const JobSpec spec = SpecWith("j", DecoderClass::kNvjpegShared);
  EXPECT_EQ(ErrorOf(world.Create(spec)),
            "job j wants decoder class nvjpeg_shared, which none of 1 ready "
            "worker has: start a leat-worker on a machine with an NVIDIA GPU "
            "and nvJPEG, or ask for class auto");
  const SessionId newer =
      world.Join(WorkerOf("newer", 2,
                          {DecoderClass::kExact, DecoderClass::kNvjpeg,
                           DecoderClass::kNvjpegShared}));
  const auto job = world.MakeJob(spec, newer);
  ASSERT_NE(job, nullptr);
  EXPECT_NE(job->plan_hash,
            PlanHash(SpecWith("j", DecoderClass::kNvjpeg), job->datasets));
  const auto table =
      world->AssignmentOf(job->datasets[0].id, DecoderClass::kNvjpegShared);
  ASSERT_EQ(table->workers.size(), 1u);
  EXPECT_EQ(table->workers[0].name, "newer");
}

TEST(Scheduling, AJobIsTakenForAClassBeforeAnyWorkerIsThere) {
  World world;
  World::Box box = world.Create(SpecWith("j", DecoderClass::kNvjpeg));
  EXPECT_FALSE(box->has_value()) << "it waits for the listing";
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  const auto asked = world.Asked(gpu);
  ASSERT_TRUE(asked.has_value());
  ASSERT_TRUE(world.Upload(HeaderFor(*asked, "index"), "index").ok());
  ASSERT_TRUE(box->has_value() && (*box)->ok());
}

TEST(Scheduling, AutoIsResolvedOnceWhenTheJobIsMade) {
  World world;
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  const auto nvjpeg = world.MakeJob(SpecWith("a", DecoderClass::kAuto), gpu);
  EXPECT_EQ(nvjpeg->spec.decoder_class, DecoderClass::kNvjpeg);
  JobSpec spec = nvjpeg->spec;
  EXPECT_EQ(nvjpeg->plan_hash, PlanHash(spec, nvjpeg->datasets))
      << "the hash is of the class that was resolved";
  spec.decoder_class = DecoderClass::kExact;
  EXPECT_NE(nvjpeg->plan_hash, PlanHash(spec, nvjpeg->datasets));

  world.Join("cpu");
  const auto exact = world.MakeJob(SpecWith("b", DecoderClass::kAuto), gpu);
  EXPECT_EQ(exact->spec.decoder_class, DecoderClass::kExact)
      << "not every ready worker has nvJPEG";

  // The same call attaches, however the cluster has changed.
  for (const char* name : {"a", "b"}) {
    World::Box box = world.Create(SpecWith(name, DecoderClass::kAuto));
    ASSERT_TRUE(box->has_value() && (*box)->ok());
    EXPECT_TRUE((*box)->value().attached);
    EXPECT_EQ((*box)->value().info->plan_hash,
              std::string(name) == "a" ? nvjpeg->plan_hash : exact->plan_hash);
  }
  World::Box box = world.Create(SpecWith("a", DecoderClass::kExact));
  ASSERT_TRUE(box->has_value());
  EXPECT_EQ((*box)->status().code(), StatusCode::kAlreadyExists);
  EXPECT_NE(ErrorOf(box).find("decoder_class nvjpeg != exact"),
            std::string::npos)
      << ErrorOf(box);
}

TEST(Scheduling, AutoIsExactForAPipelineThatNoGpuComputes) {
  World world;
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  JobSpec spec = SpecWith("twice", DecoderClass::kAuto);
  spec.pipeline.nodes.push_back(
      {"resize", {{2, 0}}, {{"size", std::vector<int64_t>{9, 9}}}});
  spec.pipeline.outputs[0].second.node = 3;
  EXPECT_EQ(world.MakeJob(spec, gpu)->spec.decoder_class,
            DecoderClass::kNvjpeg);
  EXPECT_EQ(world->Jobs()[0].not_on_gpu, "");
  spec.name = "other";
  spec.pipeline.nodes[3] = {"jpeg_compression_distortion", {{2, 0}}, {}};
  EXPECT_EQ(world.MakeJob(spec, gpu)->spec.decoder_class, DecoderClass::kExact);
  EXPECT_EQ(world->Jobs()[0].not_on_gpu,
            "node 3 (jpeg_compression_distortion) has no device form");
  spec.name = "another";
  spec.decoder_class = DecoderClass::kNvjpeg;
  World::Box box = world.Create(spec);
  ASSERT_TRUE(box->has_value());
  EXPECT_EQ(ErrorOf(box),
            "decoder_class nvjpeg: no GPU can compute this pipeline: node 3 "
            "(jpeg_compression_distortion) has no device form; want exact");
}

TEST(Scheduling, AutoIsExactWhereAWorkerHasNvjpegWithoutEngines) {
  World world;
  WorkerRegistration slow = WorkerOf("slow", 2, kBoth);
  slow.devices.emplace_back().set_nvjpeg_version("13.0.4");  // a second GPU
  const SessionId gpu = world.Join(slow);
  const auto exact = world.MakeJob(SpecWith("a", DecoderClass::kAuto), gpu);
  EXPECT_EQ(exact->spec.decoder_class, DecoderClass::kExact);
  const auto asked = world.MakeJob(SpecWith("b", DecoderClass::kNvjpeg), gpu);
  EXPECT_EQ(asked->spec.decoder_class, DecoderClass::kNvjpeg)
      << "who asks for it has it";
  slow.devices.pop_back();
  world.Join(slow);
  const auto fast = world.MakeJob(SpecWith("c", DecoderClass::kAuto), gpu);
  EXPECT_EQ(fast->spec.decoder_class, DecoderClass::kNvjpeg);
}

// GPUs compute it, from images that the workers' cores decode.
TEST(Scheduling, AutoIsExactForRowsThatLookAtTheirPartners) {
  World world;
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  JobSpec spec = SpecWith("mixed", DecoderClass::kAuto);
  spec.pipeline.nodes.push_back({"partner", {{2, 0}}, {}});
  spec.pipeline.outputs[0].second.node = 3;
  EXPECT_EQ(world.MakeJob(spec, gpu)->spec.decoder_class, DecoderClass::kExact);
  EXPECT_EQ(world->Jobs()[0].not_on_gpu, "");
  spec.name = "another";
  spec.decoder_class = DecoderClass::kNvjpeg;
  World::Box box = world.Create(spec);
  ASSERT_TRUE(box->has_value());
  EXPECT_EQ(ErrorOf(box),
            "decoder_class nvjpeg: node 3 (partner) gives another row's value, "
            "and the GPU's decoder makes one image a row; want exact");
}

// GPUs compute it. The workers' flags determine which samples fit there, so the
// host decodes all.
TEST(Scheduling, AutoIsExactForValuesWhoseSizeDiffers) {
  World world;
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  JobSpec spec = SpecWith("sized", DecoderClass::kAuto);
  spec.pipeline.nodes.insert(spec.pipeline.nodes.begin() + 2,
                             {"invert", {{1, 0}}, {}});
  spec.pipeline.nodes[3].inputs = {{2, 0}};
  spec.pipeline.outputs[0].second.node = 3;
  EXPECT_EQ(world.MakeJob(spec, gpu)->spec.decoder_class, DecoderClass::kExact);
  EXPECT_EQ(world->Jobs()[0].not_on_gpu, "");
  spec.name = "another";
  spec.decoder_class = DecoderClass::kNvjpeg;
  World::Box box = world.Create(spec);
  ASSERT_TRUE(box->has_value());
  EXPECT_EQ(ErrorOf(box),
            "decoder_class nvjpeg: node 2 (invert) has values whose size "
            "differs from sample to sample, and a sample whose values find no "
            "room on a GPU is decoded by the host; want exact");
}

TEST(Scheduling, AutoLooksAtReadyWorkersOnly) {
  World world;
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  world.Join("cpu");
  ASSERT_TRUE(world.Drain("cpu").ok());
  const auto job = world.MakeJob(SpecWith("a", DecoderClass::kAuto), gpu);
  EXPECT_EQ(job->spec.decoder_class, DecoderClass::kNvjpeg);
  ASSERT_TRUE(world.DeleteJob("a").ok());
  ASSERT_TRUE(world.Drain("gpu").ok());
  World::Box box = world.Create(SpecWith("a", DecoderClass::kAuto));
  ASSERT_TRUE(box->has_value() && (*box)->ok()) << ErrorOf(box);
  EXPECT_EQ((*box)->value().info->spec.decoder_class, DecoderClass::kExact)
      << "nobody is ready: what every worker has";
}

TEST(Scheduling, AResolvedClassSurvivesARestart) {
  World world;
  const SessionId gpu = world.Join(WorkerOf("gpu", 2, kBoth));
  const auto job = world.MakeJob(SpecWith("a", DecoderClass::kAuto), gpu);
  world.Restart();
  world.Join("cpu");
  World::Box box = world.Create(SpecWith("a", DecoderClass::kAuto));
  ASSERT_TRUE(box->has_value() && (*box)->ok());
  EXPECT_TRUE((*box)->value().attached);
  EXPECT_EQ((*box)->value().info->plan_hash, job->plan_hash);
}

TEST(Scheduling, AStoredJobWithoutAClassIsRefused) {
  State state;
  DatasetIndexed indexed;
  indexed.dataset.id = "d";
  indexed.dataset.shards = *ShardTable::Uniform(100, 10);
  ASSERT_TRUE(state.Apply({{}, indexed}).ok());
  const JobSpec spec = SpecWith("a", DecoderClass::kAuto);
  EXPECT_EQ(
      state
          .Apply({{},
                  JobCreated{
                      spec, {"d"}, {}, PlanHash(spec, {&indexed.dataset, 1})}})
          .code(),
      StatusCode::kDataLoss);
}

}  // namespace
}  // namespace leat::server
