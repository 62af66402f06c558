// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/open_file_budget.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <random>
#include <thread>

#include "core/status.h"
#include "tests/worker/source/storage/base/open_descriptors.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

// A file that has its own number as text, and a share.
class Numbered {
 public:
  Numbered(const TempDir& dir, std::shared_ptr<OpenFileBudget> budget, int n)
      : text_(std::to_string(1000 + n)),
        path_(dir.Write(text_, text_)),
        share_(std::move(budget)) {}

  absl::StatusOr<OpenFileShare::Use> Get() {
    return share_.Get([this]() -> absl::StatusOr<int> {
      ++openings_;
      return open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    });
  }
  // Returns whether its text is there.
  bool Read() {
    const auto use = Get();
    std::string text(4, ' ');
    return use.ok() && pread(use->fd(), text.data(), 4, 0) == 4 &&
           text == text_;
  }
  // Reads it, and returns whether it was closed.
  bool WasClosed() {
    const int before = openings_;
    EXPECT_TRUE(Read());
    return openings_ > before;
  }
  OpenFileShare& share() { return share_; }

 private:
  const std::string text_, path_;
  std::atomic<int> openings_{0};
  OpenFileShare share_;
};

class OpenFileBudgetTest : public ::testing::Test {
 protected:
  void Make(size_t most, int files) {
    budget_ = std::make_shared<OpenFileBudget>(most);
    for (int i = 0; i < files; ++i) files_.emplace_back(dir_, budget_, i);
  }
  size_t Descriptors() const { return OpenDescriptors(dir_.path()); }

  const TempDir dir_;
  std::shared_ptr<OpenFileBudget> budget_;
  std::deque<Numbered> files_;
};

TEST_F(OpenFileBudgetTest, TheFileThatWasUsedLeastRecentlyIsClosed) {
  Make(3, 5);
  for (int i : {0, 1, 2}) EXPECT_TRUE(files_[i].Read());
  EXPECT_EQ(Descriptors(), 3u);
  EXPECT_FALSE(files_[0].WasClosed());
  EXPECT_TRUE(files_[3].Read());  // in the place of 1
  EXPECT_EQ(Descriptors(), 3u);
  EXPECT_FALSE(files_[0].WasClosed());
  EXPECT_FALSE(files_[3].WasClosed());
  EXPECT_TRUE(files_[4].Read());  // in the place of 2
  EXPECT_FALSE(files_[0].WasClosed());
  EXPECT_FALSE(files_[3].WasClosed());
  EXPECT_TRUE(files_[1].WasClosed());  // and is opened in the place of 4
  EXPECT_TRUE(files_[4].WasClosed());
  EXPECT_EQ(budget_->open(), 3u);
}

// The place to which an entry goes in the order may be where it was.
TEST_F(OpenFileBudgetTest, AFileThatWasUsedLongAgoIsTheNextOne) {
  Make(3, 5);
  EXPECT_TRUE(files_[0].Read());
  EXPECT_TRUE(files_[1].Read());
  EXPECT_TRUE(files_[0].Read());
  EXPECT_TRUE(files_[2].Read());
  EXPECT_TRUE(files_[3].Read());  // in the place of 1, opened before 0 was read
  EXPECT_TRUE(files_[1].WasClosed());  // in the place of 0
  EXPECT_FALSE(files_[2].WasClosed());
  EXPECT_TRUE(files_[0].WasClosed());
}

TEST_F(OpenFileBudgetTest, AFileInUseIsNotClosedAndTheRestMakesRoom) {
  Make(1, 3);
  {
    const auto first = files_[0].Get();
    const auto again = files_[0].Get();
    EXPECT_EQ(first->fd(), again->fd());
    EXPECT_TRUE(files_[1].Read());
    EXPECT_TRUE(files_[2].Read());
    // The end of a use above the budget closes what is not in use.
    EXPECT_EQ(Descriptors(), 1u);
    EXPECT_EQ(budget_->open(), 1u);
    std::string text(4, ' ');
    EXPECT_EQ(pread(first->fd(), text.data(), 4, 0), 4);
    EXPECT_EQ(text, "1000");
    const auto second = files_[1].Get();
    EXPECT_EQ(Descriptors(), 2u) << "a burst: one for each use";
  }
  EXPECT_EQ(Descriptors(), 1u);
  EXPECT_EQ(budget_->open(), 1u);
}

TEST_F(OpenFileBudgetTest, ThreadsThatOpenAFileAtOnceKeepOneDescriptor) {
  Make(4, 1);
  Numbered& file = files_[0];
  int theirs = -1;
  const auto use = file.share().Get([&]() -> absl::StatusOr<int> {
    std::thread([&] { theirs = file.Get()->fd(); }).join();
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
  });
  EXPECT_EQ(use->fd(), theirs);
  EXPECT_EQ(Descriptors(), 1u);
  EXPECT_EQ(budget_->open(), 1u);
}

TEST_F(OpenFileBudgetTest, AnErrorOfOpeningIsReturnedAndTakesNothing) {
  Make(1, 1);
  const auto use = files_[0].share().Get(
      []() -> absl::StatusOr<int> { return NotFound("gone"); });
  EXPECT_TRUE(absl::IsNotFound(use.status()));
  EXPECT_EQ(budget_->open(), 0u);
  EXPECT_TRUE(files_[0].Read());
}

TEST_F(OpenFileBudgetTest, AFileThatIsDroppedGivesItsPlaceBack) {
  Make(3, 4);
  for (Numbered& file : files_) EXPECT_TRUE(file.Read());
  files_.pop_front();  // closed before
  EXPECT_EQ(budget_->open(), 3u);
  files_.pop_front();
  EXPECT_EQ(budget_->open(), 2u);
  EXPECT_EQ(Descriptors(), 2u);
  files_.clear();
  EXPECT_EQ(budget_->open(), 0u);
  EXPECT_EQ(Descriptors(), 0u);
}

TEST_F(OpenFileBudgetTest, TheDefaultLeavesMostDescriptorsToConnections) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto most_of = [&](rlim_t soft) {
    const rlimit limit = {.rlim_cur = soft, .rlim_max = before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0) << soft;
    return OpenFileBudget::MostOfThisProcess();
  };
  EXPECT_EQ(most_of(32), OpenFileBudget::kFewest);
  EXPECT_EQ(most_of(1024), 128u);
  if (before.rlim_max >= 65'536) {
    EXPECT_EQ(most_of(65'536), OpenFileBudget::kMost);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Threads use random files, and drop some, with room for none to all of them.
TEST_F(OpenFileBudgetTest, ManyThreadsReadTheirOwnFilesWithinTheBudget) {
  constexpr int kThreads = 6, kFiles = 12, kRounds = 200;
  for (const size_t most : {1, 5, 12, 100}) {
    Make(most, kFiles);
    std::atomic<size_t> highest{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        std::minstd_rand random(static_cast<uint32_t>(thread) + 1);
        std::unique_ptr<Numbered> own;
        for (int round = 0; round < kRounds; ++round) {
          // Low numbers are more frequent.
          const size_t i = random() % (random() % kFiles + 1);
          wrong += files_[i].Read() ? 0 : 1;
          const size_t open = budget_->open();
          for (size_t seen = highest; seen < open;)
            highest.compare_exchange_weak(seen, open);
          if (round % 8 == 0)
            own = std::make_unique<Numbered>(dir_, budget_, kFiles + thread);
          wrong += own->Read() ? 0 : 1;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(highest, most + kThreads);
    EXPECT_LE(budget_->open(), most);
    EXPECT_EQ(Descriptors(), budget_->open());
    files_.clear();
    EXPECT_EQ(budget_->open(), 0u);
    EXPECT_EQ(Descriptors(), 0u);
  }
}

}  // namespace
}  // namespace leat::worker
