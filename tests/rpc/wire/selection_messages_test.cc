// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/selection_messages.h"

#include "core/status.h"
#include "gtest/gtest.h"
#include "rpc/wire/messages.h"

namespace leat::rpc {
namespace {

using Groups = google::protobuf::RepeatedPtrField<v1::Group>;

TEST(SelectionMessages, SelectionsSurviveTheWire) {
  const Selection selection = {.shares = {{"cat", 0.1}, {"*", 3}}};
  EXPECT_EQ(*FromProto(ToProto(selection)), selection);
  const Selection balanced = {.balanced = true, .shares = {}};
  EXPECT_EQ(*FromProto(ToProto(balanced)), balanced);
  EXPECT_EQ(*FromProto(v1::Selection()), Selection());
  v1::Selection many;
  for (size_t i = 0; i <= kMaxGroups; ++i) many.add_shares();
  EXPECT_EQ(leat::Message(FromProto(many).status()),
            "weights has 65537 groups: want at most 65536");
}

TEST(SelectionMessages, GroupsSurviveTheWire) {
  const std::vector<Group> groups = {{"cat", 30}, {"none", 0}, {"", 5}};
  Groups protos;
  SetGroups(groups, &protos);
  EXPECT_EQ(*GroupsFrom(protos, 35), groups);
  EXPECT_TRUE(GroupsFrom({}, 35)->empty());
}

TEST(SelectionMessages, GroupsAreAllSamplesOfTheDataset) {
  Groups protos;
  SetGroups({{"cat", 30}, {"dog", 5}}, &protos);
  EXPECT_EQ(leat::Message(GroupsFrom(protos, 36).status()),
            "groups have 35 samples, the dataset 36");
  EXPECT_EQ(leat::Message(GroupsFrom(protos, 34).status()),
            "groups have more than the dataset's 34 samples: group \"dog\" has "
            "5 behind 30");
  protos.Mutable(1)->set_samples(~uint64_t{0});  // 29 in all, if it overflowed
  EXPECT_FALSE(GroupsFrom(protos, 29).ok());
  Groups many;
  for (size_t i = 0; i <= kMaxGroups; ++i) many.Add();
  EXPECT_EQ(leat::Message(GroupsFrom(many, 0).status()),
            "65537 groups: want at most 65536");
}

TEST(SelectionMessages, ASpecHasThemInJson) {
  const absl::StatusOr<JobSpec> spec = JobSpecFromJson(
      R"({"selection": {"shares": [{"name": "cat", "share": 0.5}]},
          "augment_seed": "18446744073709551615",
          "sources": [{"name": "a", "selection": {"balanced": true}}]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->selection, (Selection{.shares = {{"cat", 0.5}}}));
  EXPECT_EQ(spec->augment_seed, ~uint64_t{0});
  EXPECT_TRUE(spec->sources[0].selection.balanced);
  const absl::StatusOr<JobSpec> back = JobSpecFromJson(ToJson(*spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, *spec);
  EXPECT_EQ(JobSpecFromJson("{}")->augment_seed, std::nullopt);
  EXPECT_EQ(ToJson(*JobSpecFromJson("{}")).find("selection"),
            std::string::npos);
}

}  // namespace
}  // namespace leat::rpc
