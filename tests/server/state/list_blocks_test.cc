// SPDX-License-Identifier: Apache-2.0
#include "server/state/list_blocks.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "rpc/wire/messages.h"
#include "server/state/records.h"
#include "server/state/state.h"

namespace leat::server {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A list of one block and a half.
LongList ListOf(int64_t first) {
  std::vector<int64_t> ints((kListBlockBytes + kListBlockBytes / 2) / 8);
  ints[0] = first;
  ints.back() = first;
  return *LongListOf(ints);
}

JobSpec SpecWith(const LongList& list) {
  JobSpec spec;
  spec.name = "j";
  spec.pipeline.nodes = {{"readers.later", {}, {{"numbers", list}}}};
  return spec;
}

std::string RecordOf(const v1::JobSpec& spec) {
  stored::v1::Event event;
  event.mutable_job_created()->set_name(spec.name());
  event.mutable_job_created()->set_dataset_id("d");
  event.mutable_job_created()->set_spec(spec.SerializeAsString());
  event.mutable_job_created()->set_plan_hash(std::string(32, 'p'));
  return event.SerializeAsString();
}

TEST(ListBlocks, AreThoseOfAllPipelines) {
  const LongList one = ListOf(1), two = ListOf(2);
  JobSpec spec = SpecWith(one);
  v1::JobSpec proto = rpc::ToProto(spec);
  *proto.add_sources()->mutable_pipeline() =
      rpc::ToProto(SpecWith(two)).pipeline();
  const auto all =
      UnorderedElementsAre(Pair(one.blocks[0], kListBlockBytes),
                           Pair(one.blocks[1], kListBlockBytes / 2),
                           Pair(two.blocks[0], kListBlockBytes),
                           Pair(two.blocks[1], kListBlockBytes / 2));
  EXPECT_THAT(BlocksOfRecord(RecordOf(proto)), all);
  ListBlocks blocks;
  AddBlocks(one, &blocks);
  AddBlocks(SpecWith(two), &blocks);
  EXPECT_THAT(blocks, all);
}

TEST(ListBlocks, OfAJobThatWasSetAsideAreInUse) {
  const LongList list = ListOf(3);
  const absl::StatusOr<Event> event =
      DecodeEvent(RecordOf(rpc::ToProto(SpecWith(list))));
  ASSERT_TRUE(event.ok()) << event.status();
  State state;
  state.Replay(*event);
  ASSERT_EQ(state.set_aside().size(), 1u);
  EXPECT_THAT(state.BlocksInUse(),
              UnorderedElementsAre(Pair(list.blocks[0], kListBlockBytes),
                                   Pair(list.blocks[1], kListBlockBytes / 2)));
  ASSERT_TRUE(state.Apply({{}, JobDeleted{"j"}, {}}).ok());
  EXPECT_THAT(state.BlocksInUse(), IsEmpty());
}

TEST(ListBlocks, OfWhatIsNoSpecThereAreNone) {
  EXPECT_THAT(BlocksOfRecord("\xff"), IsEmpty());
  EXPECT_THAT(BlocksOfRecord(""), IsEmpty());
  v1::JobSpec spec;
  v1::LongList& list =
      *(*spec.mutable_pipeline()->add_nodes()->mutable_args())["a"]
           .mutable_list_value();
  list.add_blocks("short");
  EXPECT_THAT(BlocksOfRecord(RecordOf(spec)), IsEmpty());
}

}  // namespace
}  // namespace leat::server
