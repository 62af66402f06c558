// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/sample_groups.h"

#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "tests/worker/source/arranged/arranged_fixture.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- Of an image folder: 000.jpg to 199.jpg with 0 to 199 bytes

class GroupedFiles : public ArrangedTest {
 protected:
  GroupedFiles() { base_.groups = {{"a", 150}, {"none", 0}, {"b", 50}}; }

  std::vector<Group> GroupsOf(const Arrangement& arrangement) {
    const auto index = Made(arrangement);
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? index->groups : std::vector<Group>();
  }
};

TEST_F(GroupedFiles, ChosenSamplesStandByTheClassesOfTheBase) {
  const Arrangement chosen{.samples = {.list = {199, 3, 150, 149, 0}},
                           .by_class = true};
  EXPECT_THAT(Chosen(chosen), ElementsAre(3, 149, 0, 199, 150));
  EXPECT_THAT(GroupsOf(chosen),
              ElementsAre(Group{"a", 3}, Group{"none", 0}, Group{"b", 2}));
  const Arrangement where{.where = "bytes in [7, 151]", .by_class = true};
  EXPECT_THAT(Chosen(where), ElementsAre(7, 151));
}

TEST_F(GroupedFiles, AClassOfWhichNothingIsChosenIsThereWithoutSamples) {
  EXPECT_THAT(GroupsOf({.where = "bytes < 5", .by_class = true}),
              ElementsAre(Group{"a", 5}, Group{"none", 0}, Group{"b", 0}));
}

TEST_F(GroupedFiles, ABaseWithoutClassesIsAnError) {
  base_.groups.clear();
  EXPECT_THAT(ErrorOf({.where = "bytes < 5", .by_class = true}),
              HasSubstr("are not in runs by label, so it has no classes to "
                        "weigh; want by, as in select(by=\"label\""));
}

TEST_F(GroupedFiles, AColumnOfTheIndexMakesGroups) {
  const Arrangement by_bytes{.samples = {.list = {9, 3, 12}}, .by = "bytes"};
  EXPECT_THAT(Chosen(by_bytes), ElementsAre(3, 9, 12));
  EXPECT_THAT(GroupsOf(by_bytes),
              ElementsAre(Group{"3", 1}, Group{"9", 1}, Group{"12", 1}));
  EXPECT_THAT(GroupsOf({.by = "label"}), ElementsAre(Group{"0", 200}));
  EXPECT_THAT(GroupsOf({.where = "bytes < 2", .by = "name"}),
              ElementsAre(Group{"k/000.jpg", 1}, Group{"k/001.jpg", 1}));
  EXPECT_EQ(ErrorOf({.by = "lable"}),
            "by: unknown column lable, did you mean label?; the columns of "
            "readers.image_folder are name, bytes, encoded, length(encoded), "
            "label");
}

TEST_F(GroupedFiles, SamplesOfOneWeightAreAGroup) {
  std::vector<double> list(kFiles, 0.0);
  list[5] = 2;
  list[7] = 0.5;
  list[9] = 2.0001;
  const Arrangement weighed{.weights = {.list = list}};
  EXPECT_THAT(Chosen(weighed), ElementsAre(7, 5, 9));
  EXPECT_THAT(GroupsOf(weighed),
              ElementsAre(Group{"0.5", 1, 512}, Group{"2", 2, 2048}));
  const auto index = Made(weighed);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->bytes, base_.bytes * 3 / 200);
  EXPECT_THAT(index->passed_over, IsEmpty());
  // Weights are of the samples of the whole.
  EXPECT_THAT(Chosen({.where = "bytes > 5", .weights = {.list = list}}),
              ElementsAre(7, 9));
}

TEST_F(GroupedFiles, WeightsThatLeaveNothingOrSpreadTooFarAreAnError) {
  std::vector<double> list(kFiles, 0.0);
  EXPECT_EQ(ErrorOf({.weights = {.list = list}}),
            "weights: none of 200 samples has a weight over 0");
  list[0] = 1e-6;
  list[1] = 2;
  EXPECT_THAT(ErrorOf({.weights = {.list = list}}),
              HasSubstr("weights are from 1e-06 to 2; want 0, or at least"));
  list.pop_back();
  EXPECT_EQ(ErrorOf({.weights = {.list = list}}),
            fmt::format("weights has 199 numbers; want 200, one for each "
                        "sample of dataset \"{}\"",
                        base_.name));
}

}  // namespace
}  // namespace leat::worker
