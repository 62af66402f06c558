// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/stream_groups.h"

#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/scheduler/fake_rows.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class NoMemory : public SharedMemory {
 public:
  std::byte* base() const override { return nullptr; }
  int device() const override { return -1; }
  uint32_t rows() const override { return 100; }
  std::span<const uint64_t> field_offsets() const override { return {}; }
};

class StreamGroupsTest : public ::testing::Test {
 protected:
  absl::Status Add(RowRequest request) {
    clock_.Advance(std::chrono::seconds(1));
    return groups_.Add(std::move(request), next_arrival_++, clock_.Now());
  }
  // Adds a request for the rows 0, 1, 2 …, of the samples 100, 101, 102 …
  void Add(uint64_t id, uint64_t epoch, uint64_t step, uint32_t rows = 1) {
    ASSERT_TRUE(Add(MakeRequest(id, epoch, step, 100, rows)).ok());
  }
  std::shared_ptr<Group> Plan(size_t most = 100) {
    const auto it =
        groups_.Plan(std::make_shared<Group>(clock_, counters_, wake_), most);
    EXPECT_EQ(it->second->position, it->first.first);
    EXPECT_EQ(it->second->group_id, it->first.second);
    return it->second;
  }
  // Returns the requests of the groups, in their order.
  std::vector<uint64_t> RequestIds() const {
    std::vector<uint64_t> ids;
    for (const auto& [place, group] : groups_) ids.push_back(group->request_id);
    return ids;
  }
  bool InUse(uint64_t id) const {
    StreamGroups copy = groups_;
    return !copy.Add(MakeRequest(id, 0, 0, 0, 1), next_arrival_, {}).ok();
  }

  FakeClock clock_;
  const std::shared_ptr<SharedCounters> counters_ =
      std::make_shared<SharedCounters>();
  const std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  StreamGroups groups_;
  uint64_t next_arrival_ = 1;
};

TEST_F(StreamGroupsTest, GroupsAreCutFromTheFrontOfAnAsk) {
  EXPECT_EQ(groups_.first_request(), nullptr);
  Add(7, 2, 3, 5);
  const MonotonicTime asked_at = clock_.Now();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(groups_.first_request()->left(), 5u);
  const auto a = Plan(2), b = Plan(2);
  EXPECT_EQ(groups_.first_request()->left(), 1u);
  const auto c = Plan(2);
  EXPECT_EQ(groups_.first_request(), nullptr);
  EXPECT_THAT(a->rows, ElementsAre(0, 1));
  EXPECT_THAT(b->rows, ElementsAre(2, 3));
  EXPECT_THAT(c->rows, ElementsAre(4));
  EXPECT_THAT(c->samples, ElementsAre(104));
  for (const auto& group : {a, b, c}) {
    EXPECT_EQ(group->request_id, 7u);
    EXPECT_EQ(group->epoch, 2u);
    EXPECT_EQ(group->step, 3u);
    EXPECT_EQ(group->asked_at, asked_at);
    EXPECT_FALSE(group->room.placed);
    EXPECT_THAT(group->slots, IsEmpty());
    EXPECT_THAT(group->supplied, IsEmpty());
  }
  EXPECT_LT(a->group_id, b->group_id);
  EXPECT_LT(b->group_id, c->group_id);
}

TEST_F(StreamGroupsTest, WhatIsParallelToTheRowsIsCutWithThem) {
  RowRequest request = MakeRequest(1, 0, 0, 100, 3);
  request.rows = {9, 4, 6};
  request.memory = std::make_shared<NoMemory>();
  request.slots = {30, 10, 20};
  request.absent = {1, 2, 3, 4};
  request.lease = std::make_shared<int>(0);
  for (size_t i = 0; i < 3; ++i) request.supplied.push_back({.form_bytes = i});
  const RowRequest want = request;
  ASSERT_TRUE(Add(std::move(request)).ok());
  const auto a = Plan(1), b = Plan(2);
  EXPECT_THAT(a->rows, ElementsAre(9));
  EXPECT_THAT(b->rows, ElementsAre(4, 6));
  EXPECT_THAT(a->samples, ElementsAre(100));
  EXPECT_THAT(b->samples, ElementsAre(101, 102));
  EXPECT_THAT(a->slots, ElementsAre(30));
  EXPECT_THAT(b->slots, ElementsAre(10, 20));
  ASSERT_THAT(a->supplied, SizeIs(1));
  ASSERT_THAT(b->supplied, SizeIs(2));
  EXPECT_EQ(a->supplied[0].bytes(), 0u);
  EXPECT_EQ(b->supplied[0].bytes(), 1u);
  EXPECT_EQ(b->supplied[1].bytes(), 2u);
  for (const auto& group : {a, b}) {
    EXPECT_TRUE(group->room.placed);
    EXPECT_EQ(group->memory, want.memory);
    EXPECT_EQ(group->lease, want.lease);
    EXPECT_EQ(group->absent, want.absent) << "whole";
  }
}

TEST_F(StreamGroupsTest, AsksGoByEpochThenStepThenArrival) {
  Add(1, 1, 0);
  Add(2, 0, 9);
  Add(3, 0, 2);
  Add(4, 0, 2);
  for (const uint64_t id : {3, 4, 2, 1}) {
    EXPECT_EQ(groups_.first_request()->request.request_id, id);
    EXPECT_EQ(Plan()->request_id, id);
  }
}

TEST_F(StreamGroupsTest, GroupsGoInTheOrderOfTheirAsks) {
  Add(1, 0, 5, 3);
  Plan(1);
  Add(2, 0, 4, 2);
  Plan(1);
  Add(3, 0, 5);
  Plan();
  Plan(1);
  Plan();
  Plan();
  EXPECT_EQ(groups_.first_request(), nullptr);
  EXPECT_THAT(RequestIds(), ElementsAre(2, 2, 1, 1, 1, 3));
  uint32_t row = 0;
  for (const auto& [place, group] : groups_)
    if (group->request_id == 1) {
      EXPECT_EQ(group->rows.front(), row);
      row += static_cast<uint32_t>(group->rows.size());
    }
}

TEST_F(StreamGroupsTest, SaysWhatIsNeededFirst) {
  EXPECT_FALSE(groups_.RequestIsBefore(groups_.end()));
  EXPECT_EQ(groups_.Earliest(groups_.end()), nullptr);
  Add(1, 0, 5, 3);
  EXPECT_TRUE(groups_.RequestIsBefore(groups_.end()));
  EXPECT_EQ(StepOf(*groups_.Earliest(groups_.begin())), std::pair(0ul, 5ul));
  Plan(1);
  EXPECT_FALSE(groups_.RequestIsBefore(groups_.begin()))
      << "of the same request";
  EXPECT_TRUE(groups_.RequestIsBefore(groups_.end()))
      << "if that group may not";
  Add(2, 0, 4);
  EXPECT_TRUE(groups_.RequestIsBefore(groups_.begin()));
  EXPECT_EQ(StepOf(*groups_.Earliest(groups_.begin())), std::pair(0ul, 4ul));
  Plan();
  Plan();
  EXPECT_FALSE(groups_.RequestIsBefore(groups_.begin()))
      << "there is no request";
  EXPECT_FALSE(groups_.RequestIsBefore(groups_.end()));
  EXPECT_EQ(StepOf(*groups_.Earliest(groups_.begin())), std::pair(0ul, 4ul));
  EXPECT_EQ(groups_.Earliest(groups_.end()), nullptr);
}

TEST_F(StreamGroupsTest, FindsTheFirstGroupWithRowsToRead) {
  ReadAhead ahead(8, 1 << 30);
  ReadAhead::Stream stream;
  ahead.Open(&stream, "job");
  const auto plan = [&](size_t most) {
    auto group = Plan(most);
    group->reads =
        std::make_shared<ReadAhead::GroupReads>(&stream, group->rows.size());
    return group;
  };
  EXPECT_EQ(groups_.FirstUnread(), groups_.end());
  Add(1, 0, 5, 3);
  const auto a = plan(2), b = plan(1);
  EXPECT_EQ(groups_.FirstUnread()->second, a);
  ahead.Begin(a->reads, 1);
  EXPECT_EQ(groups_.FirstUnread()->second, a) << "half of it is being read";
  ahead.Begin(a->reads, 1);
  EXPECT_EQ(groups_.FirstUnread()->second, b);
  Add(2, 0, 4);
  EXPECT_EQ(groups_.FirstUnread()->second, b) << "there is no group of it";
  const auto c = plan(1);
  EXPECT_EQ(groups_.FirstUnread()->second, c) << "it is needed earlier";
  ahead.Begin(c->reads, 1);
  ahead.Begin(b->reads, 1);
  EXPECT_EQ(groups_.FirstUnread(), groups_.end());
}

TEST_F(StreamGroupsTest, AnIdIsInUseUntilTheLastRowHasBegun) {
  Add(1, 0, 0, 3);
  const absl::Status again = Add(MakeRequest(1, 0, 1, 0, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(again)) << again;
  EXPECT_EQ(groups_.first_request()->left(), 3u) << "it is as it was";
  groups_.Remove(*Plan(1));
  EXPECT_TRUE(groups_.empty());
  EXPECT_TRUE(InUse(1)) << "rows are in no group";
  const auto a = Plan(1), b = Plan(1);
  groups_.Remove(*b);
  EXPECT_TRUE(InUse(1)) << "a group has not begun";
  EXPECT_THAT(RequestIds(), ElementsAre(1));
  Add(2, 0, 0, 1);
  const auto other = Plan();
  groups_.Remove(*a);
  EXPECT_FALSE(InUse(1));
  EXPECT_TRUE(InUse(2)) << "of the same step";
  groups_.Remove(*other);
  EXPECT_FALSE(InUse(2));
}

TEST_F(StreamGroupsTest, AWithdrawnAskTakesItsGroupsAlong) {
  Add(1, 0, 3);
  Plan();
  Add(3, 0, 4, 2);
  Plan(1);
  RowRequest request = MakeRequest(2, 0, 3, 0, 5);
  const auto lease = std::make_shared<int>(0);
  request.lease = lease;
  ASSERT_TRUE(Add(std::move(request)).ok());
  groups_.Remove(*Plan(1));
  const auto a = Plan(1), b = Plan(2);
  auto withdrawn = groups_.Withdraw(2);
  ASSERT_TRUE(withdrawn.has_value());
  EXPECT_THAT(withdrawn->groups, ElementsAre(a, b));
  ASSERT_TRUE(withdrawn->request.has_value());
  EXPECT_EQ(withdrawn->request->left(), 1u);
  EXPECT_EQ(lease.use_count(), 4) << "here, the request's and the groups'";
  EXPECT_THAT(RequestIds(), ElementsAre(1, 3));
  EXPECT_EQ(groups_.first_request()->request.request_id, 3u);
  EXPECT_FALSE(InUse(2));
  EXPECT_TRUE(InUse(1));
  EXPECT_TRUE(InUse(3));
  EXPECT_FALSE(groups_.Withdraw(2).has_value());
  EXPECT_FALSE(groups_.Withdraw(17).has_value());
}

TEST_F(StreamGroupsTest, AnAskIsWithdrawnWithNothingInGroupsOrEverything) {
  Add(1, 0, 0, 2);
  Add(2, 0, 1, 2);
  Plan();
  const auto all = groups_.Withdraw(1), none = groups_.Withdraw(2);
  ASSERT_TRUE(all.has_value() && none.has_value());
  EXPECT_THAT(all->groups, SizeIs(1));
  EXPECT_FALSE(all->request.has_value());
  EXPECT_THAT(none->groups, IsEmpty());
  EXPECT_EQ(none->request->left(), 2u);
  EXPECT_TRUE(groups_.empty());
  EXPECT_EQ(groups_.first_request(), nullptr);
}

// Whatever the order and the cuts, each row is in one group, in its order.
TEST_F(StreamGroupsTest, EveryRowIsInOneGroup) {
  std::mt19937 random(5);
  std::map<uint64_t, uint32_t> asked, planned;  // rows by request
  for (uint64_t id = 0; id < 2000; ++id) {
    const uint32_t rows = 1 + random() % 9;
    Add(id, random() % 2, random() % 50, rows);
    asked[id] = rows;
    while (groups_.first_request() != nullptr && random() % 2 == 0) {
      const PendingRequest before = *groups_.first_request();
      const size_t most = 1 + random() % 5;
      const auto group = Plan(most);
      ASSERT_EQ(group->request_id, before.request.request_id);
      ASSERT_EQ(group->rows.size(), std::min(most, before.left()));
      ASSERT_EQ(group->samples.size(), group->rows.size());
      for (size_t i = 0; i < group->rows.size(); ++i) {
        ASSERT_EQ(group->rows[i], planned[group->request_id]++);
        ASSERT_EQ(group->samples[i], 100 + group->rows[i]);
      }
    }
  }
  while (groups_.first_request() != nullptr) {
    const auto group = Plan();
    planned[group->request_id] += static_cast<uint32_t>(group->rows.size());
  }
  EXPECT_EQ(planned, asked);
  while (!groups_.empty())
    groups_.Remove(*std::shared_ptr<Group>(groups_.begin()->second));
  for (const auto& [id, rows] : asked) {
    if (id % 100 == 0) {
      EXPECT_FALSE(InUse(id));
    }
  }
}

}  // namespace
}  // namespace leat::worker
