// SPDX-License-Identifier: Apache-2.0
#include "client/batch/feed.h"

#include <thread>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<ValueType> kTypes = {
    {ValueType::Kind::kEncoded, DType::kUint8, {}},
    {ValueType::Kind::kTensor, DType::kInt32, {-1, 2}}};

Supplied::Fields Fields(std::string image, int64_t rows = 1) {
  return {{.bytes = std::move(image), .shape = {}},
          {.bytes = std::string(static_cast<size_t>(rows) * 8, 'x'),
           .shape = {rows, 2}}};
}

class FeedTest : public testing::Test {
 protected:
  FeedTest() {
    feed_.SetOnReady([this] { ++ready_; });
  }
  std::optional<Feed::Result> Take(std::vector<uint64_t> samples) {
    return feed_.Take(4, samples);
  }
  absl::StatusOr<std::optional<Feed::Want>> Next() {
    return feed_.Next(MonotonicTime{});
  }
  Feed feed_{kTypes, "s"};
  int ready_ = 0;
};

TEST_F(FeedTest, WantsEachSampleOfAStepOnceInOrder) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Next().status()));
  EXPECT_FALSE(Take({9, 3, 9, 5}).has_value());
  EXPECT_TRUE(feed_.waiting());
  const auto want = Next();
  ASSERT_TRUE(want.ok() && want->has_value());
  EXPECT_EQ((*want)->epoch, 4u);
  EXPECT_THAT((*want)->samples, ElementsAre(3, 5, 9));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Next().status()));  // returned already
  EXPECT_TRUE(feed_.Supply(9, Fields("nine")).ok());
  EXPECT_TRUE(feed_.Supply(3, Fields("three", 0)).ok());
  EXPECT_FALSE(Take({9, 3, 9, 5}).has_value());
  EXPECT_EQ(ready_, 0);
  EXPECT_TRUE(feed_.Supply(5, Fields("five")).ok());
  EXPECT_EQ(ready_, 1);
  EXPECT_FALSE(feed_.waiting());
  const auto supplied = Take({9, 3, 9, 5});
  ASSERT_TRUE(supplied.has_value() && supplied->ok());
  EXPECT_EQ((**supplied)->Of(3)[0].bytes, "three");
  EXPECT_EQ((**supplied)->Of(9)[0].bytes, "nine");
  EXPECT_EQ((**supplied)->bytes(), 13u + 2 * 8);
  EXPECT_FALSE(feed_.waiting());
}

TEST_F(FeedTest, AStepWithoutSamplesWaitsForNobody) {
  const auto supplied = Take({});
  ASSERT_TRUE(supplied.has_value() && supplied->ok());
  EXPECT_TRUE((**supplied)->samples().empty());
}

TEST_F(FeedTest, RefusesWhatNobodyWantsAndWhatCameBefore) {
  EXPECT_TRUE(absl::IsInvalidArgument(feed_.Supply(1, Fields("a"))));
  Take({1, 2});
  EXPECT_TRUE(feed_.Supply(1, Fields("a")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(feed_.Supply(1, Fields("a"))));
  EXPECT_TRUE(absl::IsInvalidArgument(feed_.Supply(3, Fields("a"))));
  EXPECT_TRUE(feed_.waiting());
}

TEST_F(FeedTest, AFieldOfAnotherTypeFailsForGood) {
  const struct {
    Supplied::Fields fields;
    const char* text;
  } kWrong[] = {
      {{{.bytes = "a", .shape = {}}}, "1 fields, want 2"},
      {Fields(""), "field 0: 0 bytes"},
      {{{.bytes = "a", .shape = {}}, {.bytes = "12345678", .shape = {}}},
       "field 1: 8 bytes"},
      {{{.bytes = "a", .shape = {}}, {.bytes = "1234567", .shape = {1, 2}}},
       "field 1: 7 bytes of shape (1, 2)"},
      {{{.bytes = "a", .shape = {}}, {.bytes = "12345678", .shape = {2, 1}}},
       "of shape (2, 1)"},
      {{{.bytes = "a", .shape = {}}, {.bytes = "", .shape = {-1, 2}}},
       "of shape (-1, 2)"},
      {{{.bytes = "a", .shape = {}},
        {.bytes = "12345678", .shape = {int64_t{1} << 62, 2}}},
       "of shape (4611686018427387904, 2)"}};
  for (const auto& wrong : kWrong) {
    Feed feed(kTypes, "s");
    const std::vector<uint64_t> samples = {7, 8};
    feed.Take(0, samples);
    EXPECT_TRUE(absl::IsInvalidArgument(feed.Supply(7, wrong.fields)));
    const auto failed = feed.Take(0, samples);
    ASSERT_TRUE(failed.has_value());
    EXPECT_THAT(Message(failed->status()), HasSubstr("source \"s\" sample 7"));
    EXPECT_THAT(Message(failed->status()), HasSubstr(wrong.text));
    EXPECT_TRUE(absl::IsCancelled(feed.Supply(8, Fields("a"))));
  }
}

TEST_F(FeedTest, AFailedSampleFailsWhatIsWantedAndAllAfterIt) {
  Take({1});
  feed_.Fail(1, MakeStatus(absl::StatusCode::kUnknown, "KeyError: 1"));
  EXPECT_EQ(ready_, 1);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Message((*Take({1})).status()),
              "source \"s\" sample 1: KeyError: 1");
}

TEST_F(FeedTest, WithoutAFeederWhatIsWantedFails) {
  Take({1});
  feed_.Abandon();
  EXPECT_TRUE(absl::IsFailedPrecondition((*Take({1})).status()));
  Feed late(kTypes, "s");
  late.Abandon();
  const std::vector<uint64_t> samples = {1};
  EXPECT_TRUE(absl::IsFailedPrecondition((*late.Take(0, samples)).status()));
}

TEST_F(FeedTest, ClosingEndsAWaitingFeeder) {
  std::thread feeder([&] {
    const auto want = feed_.Next(MonotonicTime::max());
    EXPECT_TRUE(want.ok() && !want->has_value());
  });
  feed_.Close();
  feeder.join();
  EXPECT_TRUE(absl::IsCancelled(feed_.Supply(1, Fields("a"))));
}

class SuppliedRowsTest : public FetcherTest {
 protected:
  // Adds a step whose samples have this many bytes each.
  void AddSupplied(const std::vector<uint64_t>& samples, size_t bytes) {
    const auto rows = static_cast<uint32_t>(samples.size());
    auto layout = std::make_shared<BatchLayout>(schema_, rows);
    pool_ = BatchPool::Create(layout->bytes, 4);
    auto supplied = std::make_shared<Supplied>(samples);
    for (const uint64_t sample : samples)
      supplied->Set(sample, {{.bytes = std::string(bytes, 'x'), .shape = {}}});
    auto step =
        std::make_shared<Step>(0, next_step_++, *RowMap::Create({}, rows),
                               samples, layout, *pool_->Take());
    step->supplied = supplied;
    fetcher_->AddStep(std::move(step), clock_.Now());
  }
};

TEST_F(SuppliedRowsTest, RequestsAreCutByTheBytesThatTheySupply) {
  config_.max_request_bytes = 100;
  Begin(1);
  AddSupplied({0, 1, 2, 3, 4}, 40);
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 3u);
  for (const Action& action : actions) {
    ASSERT_NE(action.supplied, nullptr);
    EXPECT_LE(action.rows.size(), 2u);
    EXPECT_TRUE(Answer(action).ok());
  }
  ExpectHeadIsRight();
}

TEST_F(SuppliedRowsTest, ASampleOverTheBoundGoesByItself) {
  config_.max_request_bytes = 100;
  Begin(1);
  AddSupplied({0, 1}, 400);
  const auto actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  for (const Action& action : actions) EXPECT_TRUE(Answer(action).ok());
  ExpectHeadIsRight();
}

TEST_F(SuppliedRowsTest, AStreamGetsNoMoreBytesThanItsBoundUntilItAnswers) {
  config_.max_request_bytes = 100;
  config_.max_stream_bytes = 200;
  Begin(1);
  AddSupplied({0, 1, 2, 3, 4, 5}, 100);
  EXPECT_EQ(fetcher_->supplied_bytes(), 600u);
  auto actions = Decide();
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_TRUE(Decide().empty());
  EXPECT_TRUE(Answer(actions[0]).ok());
  EXPECT_TRUE(fetcher_->TakeDirty());
  const auto third = Decide();
  ASSERT_EQ(third.size(), 1u);
  // A stream that has ended has nothing outstanding.
  fetcher_->Closed(*third[0].stream, Unavailable("gone"), clock_.Now());
  clock_.Advance(seconds(10));
  size_t answered = 1;
  for (actions = Decide(); !actions.empty(); actions = Decide())
    for (const Action& action : actions) {
      EXPECT_TRUE(Answer(action).ok());
      answered += action.rows.size();
    }
  EXPECT_EQ(answered, 6u);
  ExpectHeadIsRight();
}

}  // namespace
}  // namespace leat::client
