// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/selection_messages.h"

#include <memory>
#include <string>

#include "core/plan/job.h"
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
  const std::vector<Group> groups = {{"cat", 30, 512}, {"none", 0}, {"", 5}};
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

TEST(SelectionMessages, ArrangementsSurviveTheWire) {
  for (const Arrangement& arrangement :
       {Arrangement{.samples = {.list = {500, 3, kMaxSamples - 1, 0}}},
        Arrangement{.samples = {.begin = 1, .end = 100, .step = 7}},
        Arrangement{.samples = {.uri = "s3://b/n.npy"}, .where = "a == 1"},
        Arrangement{.weights = {.list = {0.5, 0, 3}}},
        Arrangement{.where = "a == 1", .weights = {.uri = "/w.npy"}},
        Arrangement()}) {
    EXPECT_EQ(*ArrangementFrom(ToProto(arrangement)), arrangement);
    const Selection selection = {.arrangement = arrangement};
    EXPECT_EQ(*FromProto(ToProto(selection)), selection);
  }
}

// The shares do not change what is listed.
TEST(SelectionMessages, ChosenSamplesWithSharesAreInGroups) {
  const auto arrangement = [](Selection selection) {
    return FromProto(ToProto(selection))->arrangement;
  };
  const Arrangement chosen{.where = "a == 1"};
  const Arrangement by_class = arrangement({chosen, true, {}});
  EXPECT_TRUE(by_class.by_class);
  EXPECT_EQ(arrangement({chosen, false, {{"cat", 1}}}), by_class);
  EXPECT_EQ(*ArrangementFrom(ToProto(by_class)), by_class);
  EXPECT_FALSE(IsSet(arrangement({{}, true, {}})));
  const Arrangement by_label = arrangement({{.by = "label"}, true, {}});
  EXPECT_FALSE(by_label.by_class);
  EXPECT_EQ(*ArrangementFrom(ToProto(by_label)), by_label);
}

TEST(SelectionMessages, ArrangementsAreCheckedOnTheWay) {
  v1::Selection proto;
  proto.mutable_samples()->add_gaps(-1);
  EXPECT_EQ(leat::Message(FromProto(proto).status()),
            "samples has 18446744073709551615: want numbers below "
            "281474976710656");
  proto.mutable_samples()->clear_gaps();
  for (size_t i = 0; i <= kMaxListedNumbers; ++i)
    proto.mutable_samples()->add_gaps(1);
  EXPECT_EQ(leat::Message(FromProto(proto).status()),
            "samples: a list of 100001: want at most 100000, a range, or a "
            ".npy file");
  v1::JobSpec spec;
  spec.mutable_selection()->set_where("a <");
  EXPECT_EQ(leat::Message(FromProto(spec).status()),
            "where: the end at character 4: want a column, a number or a text");
}

TEST(SelectionMessages, ADatasetHasItsBase) {
  DatasetInfo base;
  base.id = "base";
  base.shards = *ShardTable::Uniform(1000, 10);
  DatasetInfo dataset;
  dataset.id = "part";
  dataset.shards = *ShardTable::Uniform(100, 10);
  dataset.arrangement = "samples file \"https://u:secret@h/n.npy\"\n";
  dataset.base = std::make_shared<const DatasetInfo>(base);
  v1::Dataset proto = ToProto(dataset);
  EXPECT_EQ(proto.DebugString().find("secret"), std::string::npos);
  const v1::Dataset again = proto;
  *proto.mutable_base()->mutable_base() = again;  // has no meaning
  const absl::StatusOr<DatasetInfo> back = FromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_NE(back->base, nullptr);
  EXPECT_EQ(back->base->id, "base");
  EXPECT_EQ(back->base->shards.num_samples(), 1000u);
  EXPECT_EQ(back->base->base, nullptr);
  proto.mutable_base()->set_fingerprint("short");
  EXPECT_FALSE(FromProto(proto).ok());
}

TEST(SelectionMessages, APlaceOfNumbersIsShownWithoutSecrets) {
  JobSpec spec;
  spec.selection.arrangement.samples.uri = "https://u:secret@h/n.npy?key=5";
  EXPECT_TRUE(RedactPlaces(&spec.selection));
  EXPECT_EQ(spec.selection.arrangement.samples.uri, "https://h/n.npy");
  EXPECT_FALSE(RedactPlaces(&spec.selection));
}

}  // namespace
}  // namespace leat::rpc
