// SPDX-License-Identifier: Apache-2.0
//
// The assignments that a consumer accepts, and those that it rejects.
#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

TEST(AssignmentTable, RefusesWhatDoesNotFit) {
  const auto parse = [](const v1::Assignment& assignment) {
    return AssignmentTable::FromProto(assignment, "d", 100).status();
  };
  EXPECT_TRUE(parse(MakeAssignment(3)).ok());
  v1::Assignment other = MakeAssignment(3);
  other.set_dataset_id("e");
  EXPECT_TRUE(absl::IsInvalidArgument(parse(other)));
  v1::Assignment cut = MakeAssignment(3);
  cut.mutable_owners()->pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(parse(cut)));
  v1::Assignment wild = MakeAssignment(3);
  (*wild.mutable_owners())[1] = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(parse(wild)));
  v1::Assignment many = MakeAssignment(3);
  many.set_owners_per_shard(4000000000u);
  EXPECT_TRUE(absl::IsInvalidArgument(parse(many)));
  EXPECT_TRUE(parse(MakeAssignment(0)).ok());
}

TEST(AssignmentTable, NewerVersionOrAnotherInstanceReplaces) {
  const auto make = [](uint64_t instance, uint64_t version) {
    v1::Assignment assignment = MakeAssignment(1, version);
    assignment.set_instance(instance);
    return *AssignmentTable::FromProto(assignment, "d", 100);
  };
  const auto table = make(7, 5);
  EXPECT_TRUE(table->Replaces(nullptr));
  EXPECT_TRUE(make(7, 6)->Replaces(table.get()));
  EXPECT_FALSE(make(7, 5)->Replaces(table.get()));
  EXPECT_FALSE(make(7, 4)->Replaces(table.get()));
  EXPECT_TRUE(make(8, 1)->Replaces(table.get()));
  // A table without workers never replaces one with workers.
  const auto empty = [](uint64_t instance, uint64_t version) {
    v1::Assignment assignment = MakeAssignment(0, version);
    assignment.set_instance(instance);
    return *AssignmentTable::FromProto(assignment, "d", 100);
  };
  EXPECT_FALSE(empty(7, 6)->Replaces(table.get()));
  EXPECT_FALSE(empty(8, 1)->Replaces(table.get()));
  EXPECT_TRUE(empty(7, 6)->Replaces(nullptr));
  EXPECT_TRUE(empty(7, 6)->Replaces(empty(7, 5).get()));
  EXPECT_TRUE(table->Replaces(empty(7, 4).get()));
}

}  // namespace
}  // namespace leat::client
