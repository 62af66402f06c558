// SPDX-License-Identifier: Apache-2.0
//
// ReadAhead compared with an exhaustive search.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/scheduler/read_ahead_fixture.h"

namespace leat::worker {
namespace {

// Whatever happens, the choice and the sums equal those of an exhaustive
// search.
class ReadAheadStormTest : public ReadAheadRulesTest {
 protected:
  static constexpr int kThreads = 6;
  static constexpr uint64_t kRecords = 20;

  struct Member : Reader {
    std::string job;
    int number = 0;
    ReadAhead::Step first;
    std::vector<Reads> groups;
  };
  struct Sums {
    int threads = 0;
    uint64_t records = 0;
  };
  // Sums over rows that are being read, or were read and are not taken.
  Sums SumsOf(const std::string* job) const {
    Sums sums;
    for (const auto& [read, of] : reading_)
      if (job == nullptr || of == *job) {
        ++sums.threads;
        sums.records += read.rows;
      }
    for (const auto& each : members_)
      if (job == nullptr || each->job == *job)
        sums.records += each->rows_ready();
    return sums;
  }
  Reader* ByRules() const {
    const Sums all = SumsOf(nullptr);
    Reader* chosen = nullptr;
    std::tuple<int, size_t, ReadAhead::Step, int> best;
    for (const auto& each : members_) {
      const Sums sums = SumsOf(&each->job);
      if (!each->may || sums.threads >= kThreads - all.threads) continue;
      if (sums.records > 0 && sums.records + 1 + all.records > kRecords)
        continue;
      const std::tuple rank(sums.threads, each->rows_ahead(), each->first,
                            each->number);
      if (chosen != nullptr && rank >= best) continue;
      chosen = each.get();
      best = rank;
    }
    return chosen;
  }
  void Change() {
    const auto any = [this](size_t of) { return random_() % of; };
    if (members_.empty() || (any(8) == 0 && members_.size() < 12)) {
      auto member = std::make_unique<Member>();
      member->job = std::string(1, static_cast<char>('a' + any(4)));
      member->number = next_++;
      Open(member.get(), member->job);
      members_.push_back(std::move(member));
    }
    Member& member = *members_[any(members_.size())];
    member.may = any(4) != 0;
    member.first = {any(2), any(3)};
    if (!reading_.empty() && any(2) == 0) {
      const size_t which = any(reading_.size());
      End(reading_[which].first);
      reading_.erase(reading_.begin() + static_cast<ptrdiff_t>(which));
    }
    if (!member.groups.empty()) {
      const size_t which = any(member.groups.size());
      ReadAhead::GroupReads& group = *member.groups[which];
      while (group.ready() > 0 && any(3) != 0) ahead_->Take(group);
      if (any(4) == 0) {
        ahead_->Drop(group);
        member.groups.erase(member.groups.begin() +
                            static_cast<ptrdiff_t>(which));
      }
    }
    ahead_->Put(&member, member.first);
    if (any(30) != 0) return;
    for (const Reads& group : member.groups) ahead_->Drop(*group);
    ahead_->Close(&member);
    // Reads in progress for its job belong to no job.
    const bool last =
        std::none_of(members_.begin(), members_.end(), [&](const auto& each) {
          return each.get() != &member && each->job == member.job;
        });
    for (auto& [read, job] : reading_)
      if (last && job == member.job) job.clear();
    std::erase_if(members_,
                  [&](const auto& each) { return each.get() == &member; });
  }

  std::mt19937 random_{7};
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::pair<ReadAhead::Read, std::string>> reading_;  // for a job
  int next_ = 0;
};

TEST_F(ReadAheadStormTest, ChoosesAsALookAtAllOfThemDoes) {
  Limit(kThreads, kRecords);
  int chosen = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    Change();
    auto* const stream = static_cast<Member*>(Choose());
    ASSERT_EQ(stream, ByRules()) << turn;
    if (stream != nullptr) {
      ++chosen;
      stream->groups.push_back(GroupOf(stream, 1 + random_() % 3));
      reading_.emplace_back(ahead_->Begin(stream->groups.back(), 3),
                            stream->job);
      ahead_->Put(stream, stream->first);
    }
    const Sums all = SumsOf(nullptr);
    ASSERT_EQ(ahead_->threads_reading(), all.threads) << turn;
    ASSERT_EQ(ahead_->bytes_ahead(), all.records * kMeanRecord) << turn;
  }
  EXPECT_GT(chosen, 2000);
  for (const auto& [read, job] : reading_) End(read);
  for (const auto& member : members_) {
    for (const Reads& group : member->groups) ahead_->Drop(*group);
    EXPECT_EQ(member->rows_ahead(), 0u);
    ahead_->Close(member.get());
  }
  EXPECT_EQ(ahead_->bytes_ahead(), 0u);
  EXPECT_EQ(ahead_->threads_reading(), 0);
  EXPECT_EQ(ahead_->streams(), 0u);
}

}  // namespace
}  // namespace leat::worker
