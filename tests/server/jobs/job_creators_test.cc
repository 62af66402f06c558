// SPDX-License-Identifier: Apache-2.0
//
// The creators of jobs, and how many jobs one trainer may create.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class JobCreatorsTest : public ::testing::Test {
 protected:
  JobCreatorsTest() : world_(Config()) { worker_ = world_.Join("w"); }
  static CoordinatorConfig Config() {
    CoordinatorConfig config;
    config.jobs.all = 5;
    config.jobs.of_one = 2;
    return config;
  }
  absl::Status Create(const std::string& name, const JobCreator& by,
                      uint32_t batch = 16) {
    absl::Status result = Internal("not answered");
    world_->CreateJob(
        SpecOf(name, "/d", batch), world_.now().mono + seconds(60),
        world_.now(),
        [&](absl::StatusOr<CreatedJob> created) { result = created.status(); },
        by);
    world_.Write();
    if (std::optional<IndexDirective> asked = world_.Asked(worker_)) {
      EXPECT_TRUE(
          world_.Upload(HeaderFor(*asked, "index", 1000, 10), "index").ok());
    }
    return result;
  }
  std::string CreatorOf(const std::string& name) {
    for (const JobView& view : world_->Jobs())
      if (view.info->spec.name == name) return view.created_by;
    return "no such job";
  }

  const JobCreator vision_{"trainer/vision", true}, text_{"trainer/text", true},
      operator_{"operator/me", false};
  World world_;
  SessionId worker_;
};

TEST_F(JobCreatorsTest, ATrainerLeavesRoomForOthers) {
  ASSERT_TRUE(Create("a", vision_).ok());
  ASSERT_TRUE(Create("b", vision_).ok());
  const absl::Status third = Create("c", vision_);
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(third)),
              AllOf(HasSubstr("trainer/vision has created 2 jobs"),
                    HasSubstr("leat delete job")));
  // It may use its jobs, and others continue.
  EXPECT_TRUE(Create("a", vision_).ok());
  EXPECT_TRUE(Create("c", text_).ok());
  EXPECT_TRUE(Create("d", operator_).ok());
  EXPECT_TRUE(Create("e", operator_).ok());
  EXPECT_THAT(std::string(Message(Create("f", operator_))),
              HasSubstr("5 jobs exist"));
  // Deleting a job makes room for another.
  ASSERT_TRUE(world_.DeleteJob("a").ok());
  EXPECT_TRUE(Create("f", vision_).ok());
}

TEST_F(JobCreatorsTest, AreOfferedOfAJobThatDiffersWhatTheyMayDo) {
  ASSERT_TRUE(Create("a", vision_).ok());
  const std::string trainer(Message(Create("a", vision_, 32)));
  EXPECT_THAT(trainer, AllOf(HasSubstr("exists with another spec: batch"),
                             HasSubstr("deleted by an operator")));
  EXPECT_THAT(trainer, Not(HasSubstr("replace=True")));
  EXPECT_THAT(std::string(Message(Create("a", operator_, 32))),
              HasSubstr("replace=True, or delete it"));
}

TEST_F(JobCreatorsTest, AreRememberedThroughARestart) {
  ASSERT_TRUE(Create("a", vision_).ok());
  ASSERT_TRUE(Create("b", vision_).ok());
  ASSERT_TRUE(Create("b", text_).ok());  // attaches
  EXPECT_EQ(CreatorOf("b"), "trainer/vision");
  world_.Restart();
  worker_ = world_.Join("w");
  EXPECT_EQ(CreatorOf("b"), "trainer/vision");
  EXPECT_EQ(Create("c", vision_).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Create("c", text_).ok());
}

}  // namespace
}  // namespace leat::server
