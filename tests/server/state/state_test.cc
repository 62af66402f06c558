// SPDX-License-Identifier: Apache-2.0
#include "server/state/state.h"

#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "leat/v1/types.pb.h"
#include "rpc/wire/messages.h"
#include "server/state/job_check.h"
#include "server/state/records.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using absl::StatusCode;

DatasetIndexed Indexed(const std::string& id, const std::string& name = "n") {
  DatasetIndexed indexed;
  indexed.dataset.id = id;
  indexed.dataset.reader = id;
  indexed.dataset.name = name;
  indexed.dataset.shards = *ShardTable::Uniform(1000, 10);
  return indexed;
}

// With an operator that GPUs lack.
JobCreated Created(const std::string& name, const DatasetIndexed& dataset) {
  JobSpec spec = SpecOf(name, "/d");
  spec.pipeline.nodes.push_back({"jpeg_compression_distortion", {{2, 0}}, {}});
  spec.pipeline.outputs[0].second.node = 3;
  const PreparedJob job = *Prepare(spec);
  return {job.spec,
          {dataset.dataset.id},
          job.schema,
          PlanHash(job.spec, {&dataset.dataset, 1}),
          job.not_on_gpu};
}

TEST(State, RefusesWhatDoesNotFitAndStaysAsItWas) {
  State state;
  const DatasetIndexed dataset = Indexed("d1");
  const JobCreated job = Created("j", dataset);
  EXPECT_EQ(state.Apply({{}, job}).code(), StatusCode::kNotFound);
  EXPECT_EQ(state.Apply({{}, DatasetDeleted{"d1"}}).code(),
            StatusCode::kNotFound);
  EXPECT_EQ(state.Apply({{}, JobDeleted{"j"}}).code(), StatusCode::kNotFound);
  ASSERT_TRUE(state.Apply({{}, dataset}).ok());
  EXPECT_EQ(state.Apply({{}, dataset}).code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(state.Apply({{}, job}).ok());
  EXPECT_EQ(state.Apply({{}, job}).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(state.Apply({{}, DatasetDeleted{"d1"}}).code(),
            StatusCode::kFailedPrecondition);
  JobCreated forged = Created("k", dataset);
  forged.plan_hash[3] ^= 1;
  EXPECT_EQ(state.Apply({{}, forged}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(state.jobs().size(), 1u);
  EXPECT_EQ(state.datasets().size(), 1u);
}

TEST(State, DrainsAreIdempotent) {
  State state;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(state.Apply({{}, WorkerDrained{"a"}}).ok());
  EXPECT_EQ(state.drained().size(), 1u);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(state.Apply({{}, WorkerUndrained{"a"}}).ok());
  EXPECT_TRUE(state.drained().empty());
}

TEST(State, ItsEventsMakeTheSameStateAgain) {
  State state;
  const DatasetIndexed one = Indexed("d1"), two = Indexed("d2");
  const WallTime at{seconds(3)};
  for (const Event& event : std::vector<Event>{{at, two},
                                               {at, one},
                                               {at, Created("j", two)},
                                               {at, Created("k", one)},
                                               {at, JobDeleted{"k"}},
                                               {at, WorkerDrained{"w"}}})
    ASSERT_TRUE(state.Apply(event).ok());
  State again;
  for (const Event& event : state.Events())
    ASSERT_TRUE(again.Apply(event).ok());
  EXPECT_EQ(again.datasets().size(), 2u);
  ASSERT_NE(again.FindJob("j"), nullptr);
  EXPECT_EQ(again.FindJob("j")->created_at, at);
  EXPECT_EQ(again.FindJob("j")->not_on_gpu,
            "node 3 (jpeg_compression_distortion) has no device form");
  EXPECT_EQ(again.FindJob("j")->info->plan_hash,
            state.FindJob("j")->info->plan_hash);
  EXPECT_EQ(again.FindJob("k"), nullptr);
  EXPECT_EQ(again.drained(), state.drained());
}

TEST(State, DatasetsAreFoundByIdPrefixAndName) {
  State state;
  ASSERT_TRUE(state.Apply({{}, Indexed("aabbcc11", "cats")}).ok());
  ASSERT_TRUE(state.Apply({{}, Indexed("aabbdd22", "dogs")}).ok());
  EXPECT_EQ((*state.ResolveDataset("aabbcc11"))->info->name, "cats");
  EXPECT_EQ((*state.ResolveDataset("aabbd"))->info->name, "dogs");
  EXPECT_EQ((*state.ResolveDataset("cats"))->info->id, "aabbcc11");
  EXPECT_EQ(state.ResolveDataset("aabb").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(state.ResolveDataset("aab").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(state.ResolveDataset("").status().code(), StatusCode::kNotFound);
}

// A record from a newer version: kind 100, and its content.
std::string Foreign() {
  stored::v1::Event proto;
  proto.set_at_unix_ns(5);
  proto.GetReflection()->MutableUnknownFields(&proto)->AddLengthDelimited(
      100, "what only it knows");
  return proto.SerializeAsString();
}

// A job whose spec today's checks reject.
std::string RefusedJob(const std::string& name, const std::string& dataset) {
  v1::JobSpec spec = rpc::ToProto(SpecOf(name, "/d"));
  spec.set_batch(0);
  spec.GetReflection()->MutableUnknownFields(&spec)->AddVarint(1000, 7);
  stored::v1::Event proto;
  stored::v1::JobCreated* created = proto.mutable_job_created();
  created->set_name(name);
  created->set_dataset_id(dataset);
  created->set_spec(spec.SerializeAsString());
  created->set_plan_hash(std::string(32, 'p'));
  return proto.SerializeAsString();
}

TEST(State, AnEventOfAnUnknownKindIsKeptAsItIs) {
  const absl::StatusOr<Event> event = DecodeEvent(Foreign());
  ASSERT_TRUE(event.ok()) << event.status();
  State state;
  ASSERT_TRUE(state.Apply(*event).ok());
  ASSERT_EQ(state.set_aside().size(), 1u);
  const auto& aside = std::get<SetAside>(state.set_aside()[0].kind);
  EXPECT_EQ(aside.what, "an event of kind 100");
  // However often it is read and written.
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(state.Events().size(), 1u);
    const std::string stored = EncodeEvent(state.Events()[0]);
    EXPECT_EQ(stored, Foreign());
    State again;
    again.Replay(*DecodeEvent(stored));
    state = again;
  }
  EXPECT_EQ(DecodeEvent("").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(DecodeEvent("\xff").status().code(), StatusCode::kDataLoss);
}

TEST(State, AJobThatTodaysChecksRefuseIsKeptAndNamed) {
  const std::string record = RefusedJob("j", "d1");
  State state;
  state.Replay({{}, Indexed("d1"), {}});
  state.Replay(*DecodeEvent(record));
  EXPECT_EQ(state.FindJob("j"), nullptr);
  ASSERT_EQ(state.set_aside().size(), 1u);
  const auto& aside = std::get<SetAside>(state.set_aside()[0].kind);
  EXPECT_EQ(aside.job, "j");
  EXPECT_THAT(aside.why, testing::HasSubstr("batch"));
  EXPECT_EQ(EncodeEvent(state.Events().back()), record);
  // It keeps its name and its dataset.
  EXPECT_EQ(state.Check({{}, Created("j", Indexed("d1")), {}}).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(state.Check({{}, DatasetDeleted{"d1"}, {}}).code(),
            StatusCode::kFailedPrecondition);
  // And it can be deleted.
  ASSERT_TRUE(state.Apply({{}, JobDeleted{"j"}, {}}).ok());
  EXPECT_TRUE(state.set_aside().empty());
  EXPECT_TRUE(state.Apply({{}, Created("j", Indexed("d1")), {}}).ok());
}

TEST(State, AStoredEventThatDoesNotFitIsSetAsideAndTheRestIsRead) {
  State state;
  JobCreated job = Created("j", Indexed("d1"));
  job.plan_hash[0] ^= 1;  // by a version that hashes more
  state.Replay({{}, Indexed("d1"), {}});
  state.Replay({{}, job, "its record"});
  state.Replay({{}, JobDeleted{"renamed"}, {}});
  state.Replay({{}, WorkerDrained{"w"}, {}});
  EXPECT_EQ(state.set_aside().size(), 2u);
  EXPECT_EQ(state.drained().size(), 1u);
  bool kept = false;
  for (const Event& event : state.Events())
    kept = kept || EncodeEvent(event) == "its record";
  EXPECT_TRUE(kept);
}

TEST(State, AServiceStartsWithWhatItDoesNotUnderstandAndSaysSo) {
  auto store = std::make_shared<MemoryStore>();
  ASSERT_TRUE(store->Append({{}, Indexed("d1"), {}}).ok());
  ASSERT_TRUE(store->Append(*DecodeEvent(Foreign())).ok());
  ASSERT_TRUE(store->Append(*DecodeEvent(RefusedJob("old", "d1"))).ok());
  World world({}, store);
  std::string summaries;
  for (const Finding& finding : world->Findings(world.now()))
    if (finding.code == "STATE_SET_ASIDE") summaries += finding.summary;
  EXPECT_THAT(summaries, testing::HasSubstr("kind 100"));
  EXPECT_THAT(summaries, testing::HasSubstr("job old"));
  const SessionId a = world.Join("a");
  World::Box box = world.Create(SpecOf("old", "/d"));
  ASSERT_TRUE(world.Upload(HeaderFor(*world.Asked(a), "x"), "x").ok());
  ASSERT_TRUE(box->has_value());
  EXPECT_EQ((*box)->status().code(), StatusCode::kFailedPrecondition);
  // A restart, which compacts, keeps them until they are deleted.
  world.Restart();
  EXPECT_TRUE(world.Found("STATE_SET_ASIDE"));
  EXPECT_TRUE(world.DeleteJob("old").ok());
  EXPECT_TRUE(world.Found("STATE_SET_ASIDE"));
}

TEST(State, JobsAreFoundByTheirHashAlsoWhenOthersShareIt) {
  State state;
  const DatasetIndexed dataset = Indexed("d1");
  ASSERT_TRUE(state.Apply({{}, dataset, {}}).ok());
  const JobCreated one = Created("one", dataset), two = Created("two", dataset);
  ASSERT_TRUE(state.Apply({{}, one, {}}).ok());
  ASSERT_TRUE(state.Apply({{}, two, {}}).ok());
  ASSERT_NE(state.FindJob(two.plan_hash), nullptr);
  ASSERT_TRUE(state.Apply({{}, JobDeleted{"one"}, {}}).ok());
  ASSERT_NE(state.FindJob(two.plan_hash), nullptr);
  EXPECT_EQ(state.FindJob(two.plan_hash)->info->spec.name, "two");
  ASSERT_TRUE(state.Apply({{}, JobDeleted{"two"}, {}}).ok());
  EXPECT_EQ(state.FindJob(one.plan_hash), nullptr);
  EXPECT_FALSE(state.HasJobs("d1"));
}

TEST(State, TheLastUseOfAJobIsKept) {
  State state;
  const DatasetIndexed dataset = Indexed("d1");
  ASSERT_TRUE(state.Apply({WallTime(seconds(1)), dataset, {}}).ok());
  ASSERT_TRUE(
      state.Apply({WallTime(seconds(2)), Created("j", dataset), {}}).ok());
  EXPECT_EQ(state.FindJob("j")->last_used_at, WallTime(seconds(2)));
  const Event used{WallTime(seconds(9)), JobsUsed{{"j", "gone"}}, {}};
  ASSERT_TRUE(state.Apply(*DecodeEvent(EncodeEvent(used))).ok());
  State again;
  for (const Event& event : state.Events())
    again.Replay(*DecodeEvent(EncodeEvent(event)));
  EXPECT_TRUE(again.set_aside().empty());
  ASSERT_NE(again.FindJob("j"), nullptr);
  EXPECT_EQ(again.FindJob("j")->last_used_at, WallTime(seconds(9)));
  EXPECT_EQ(again.FindJob("j")->created_at, WallTime(seconds(2)));
}

TEST(State, AccessTokensAreKeptUntilTheyAreRevoked) {
  State state;
  AccessToken token;
  token.id = "0a1b2c3d";
  token.name = "vision";
  token.role = Role::kTrainer;
  token.sha256 = HashOf("text");
  token.expires_at = WallTime(seconds(99));
  ASSERT_TRUE(
      state.Apply({WallTime(seconds(5)), AccessCreated{token}, {}}).ok());
  EXPECT_EQ(state.Check({{}, AccessCreated{token}, {}}).code(),
            absl::StatusCode::kAlreadyExists);
  State again;
  for (const Event& event : state.Events())
    again.Replay(*DecodeEvent(EncodeEvent(event)));
  EXPECT_TRUE(again.set_aside().empty());
  const AccessToken& read = again.access().at("0a1b2c3d");
  EXPECT_EQ(read.name, "vision");
  EXPECT_EQ(read.role, Role::kTrainer);
  EXPECT_EQ(read.sha256, token.sha256);
  EXPECT_EQ(read.created_at, WallTime(seconds(5)));
  EXPECT_EQ(read.expires_at, token.expires_at);
  const Event revoked{{}, AccessRevoked{"0a1b2c3d"}, {}};
  ASSERT_TRUE(again.Apply(*DecodeEvent(EncodeEvent(revoked))).ok());
  EXPECT_TRUE(again.access().empty());
  EXPECT_TRUE(again.Events().empty());
  EXPECT_EQ(again.Check(revoked).code(), absl::StatusCode::kNotFound);
}

TEST(State, BoundsOfPoolsAreKeptUntilTheyAreForgotten) {
  State state;
  const WallTime at = WallTime(seconds(77));
  ASSERT_TRUE(state.Apply({at, PoolBounded{"cpu", {1, 8}}, {}}).ok());
  ASSERT_TRUE(state.Apply({at, PoolBounded{"gpu", {0, 2}}, {}}).ok());
  ASSERT_TRUE(state.Apply({at, PoolBounded{"gpu", {0, 0}}, {}}).ok());
  State again;
  for (const Event& event : state.Events()) {
    const absl::StatusOr<Event> read = DecodeEvent(EncodeEvent(event));
    ASSERT_TRUE(read.ok()) << read.status();
    again.Replay(*read);
  }
  ASSERT_EQ(again.pools().size(), 1u);
  EXPECT_EQ(again.pools().at("cpu").bounds, (PoolBounds{1, 8}));
  EXPECT_EQ(again.pools().at("cpu").at, at);
  EXPECT_TRUE(again.set_aside().empty());
}

TEST(State, AnAccessTokenOfALaterVersionsRoleOpensNothingAndIsKept) {
  stored::v1::Event stored;
  stored.mutable_access_created()->set_id("0a1b2c3d");
  stored.mutable_access_created()->set_role("auditor");
  stored.mutable_access_created()->set_sha256(std::string(32, 'h'));
  State state;
  state.Replay(*DecodeEvent(stored.SerializeAsString()));
  EXPECT_TRUE(state.access().empty());
  ASSERT_EQ(state.set_aside().size(), 1u);
  const auto& aside = std::get<SetAside>(state.set_aside()[0].kind);
  EXPECT_EQ(aside.what, "access token 0a1b2c3d");
  EXPECT_EQ(EncodeEvent(state.Events()[0]), stored.SerializeAsString());
}

TEST(Prepare, UnderZeroTheBatchSaysWhichRowsAreValid) {
  JobSpec spec = SpecOf("j", "/d");
  EXPECT_EQ(Prepare(spec)->schema.fields.size(), 2u);
  spec.on_bad_sample = BadSamplePolicy::kZero;
  const PreparedJob job = *Prepare(spec);
  ASSERT_EQ(job.schema.fields.size(), 3u);
  EXPECT_EQ(job.schema.fields[2].name, kValidField);
  EXPECT_EQ(job.schema.fields[2].row_bytes, 1u);
}

TEST(Prepare, TheDatasetIsItsReader) {
  const PreparedJob one = *Prepare(SpecOf("a", "/d"));
  const PreparedJob two = *Prepare(SpecOf("b", "/d", 32));
  const PreparedJob other = *Prepare(SpecOf("a", "/e"));
  EXPECT_EQ(one.sources[0].reader_id, two.sources[0].reader_id);
  EXPECT_NE(one.sources[0].reader_id, other.sources[0].reader_id);
  EXPECT_EQ(one.sources[0].reader_id.size(), 64u);
}

}  // namespace
}  // namespace leat::server
