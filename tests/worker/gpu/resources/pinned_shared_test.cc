// SPDX-License-Identifier: Apache-2.0
//
// Host memory that consumers share, page-locked for the GPUs.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/fixture.h"
#include "worker/shared_memory/device_importer.h"

namespace leat::worker {
namespace {

// Counts uses and drops by this thread; other threads wait while it is held.
class PlainMemory final : public SharedMemory {
 public:
  PlainMemory(size_t bytes, std::atomic<int>* mine)
      : bytes_(bytes), mine_(mine) {}
  ~PlainMemory() override { Count(); }
  std::byte* base() const override {
    Count();
    held.wait(true);
    return bytes_.data();
  }
  int device() const override { return -1; }
  uint32_t rows() const override { return 7; }
  std::span<const uint64_t> field_offsets() const override { return offsets_; }
  void Release() {
    held = false;
    held.notify_all();
  }
  std::atomic<bool> held{false};

 private:
  void Count() const {
    if (std::this_thread::get_id() == thread_) ++*mine_;
  }
  const std::thread::id thread_ = std::this_thread::get_id();
  mutable std::vector<std::byte> bytes_;
  std::atomic<int>* const mine_;
  const std::vector<uint64_t> offsets_ = {0, 64};
};

class PinnedSharedTest : public GpuTest {
 protected:
  // The fake refuses no memory in these tests, unless a test says so.
  void SetUp() override {
    GpuTest::SetUp();
    if (fake_ != nullptr) fake_->Set("refuse_pinned", 0);
  }
  std::shared_ptr<PlainMemory> Plain() {
    return std::make_shared<PlainMemory>(4096, &mine_);
  }
  std::shared_ptr<const SharedMemory> Pin(std::shared_ptr<PlainMemory> memory) {
    return gpus_->importer()->Pin(std::move(memory), 4096);
  }
  void WaitLive(int64_t count) {
    while (fake_->Live() != count) std::this_thread::yield();
  }
  std::atomic<int> mine_{0};  // uses of memories by this thread
};

TEST_F(PinnedSharedTest, IsRegisteredUntilItIsDroppedByAThreadOfItsOwn) {
  Open();
  ASSERT_NE(gpus_->importer(), nullptr);
  const int64_t before = fake_->Live();
  auto pinned = Pin(Plain());
  WaitLive(before + 1);
  EXPECT_EQ(pinned->device(), -1);
  EXPECT_EQ(pinned->rows(), 7u);
  EXPECT_EQ(pinned->field_offsets().size(), 2u);
  pinned.reset();
  WaitLive(before);
  gpus_.reset();
  EXPECT_EQ(mine_, 0);
  EXPECT_THAT(fake_->Violations(), ::testing::IsEmpty());
}

TEST_F(PinnedSharedTest, OthersDoNotWaitForIt) {
  Open();
  const int64_t before = fake_->Live();
  const auto slow = Plain(), other = Plain();
  slow->held = true;
  const auto first = Pin(slow);
  auto second = Pin(other);
  // Both can be used, and dropped, meanwhile.
  EXPECT_EQ(second->base(), other->base());
  second.reset();
  EXPECT_EQ(fake_->Live(), before);
  slow->Release();
  WaitLive(before + 1);
  EXPECT_EQ(first->base(), slow->base());
}

TEST_F(PinnedSharedTest, IsUsedAsItIsWhereTheDriverRefuses) {
  Open();
  fake_->Fail("cuMemHostRegister_v2", 1, false, 2);
  const int64_t before = fake_->Live();
  const auto refused = Plain();
  auto as_it_is = Pin(refused);
  const auto pinned = Pin(Plain());
  WaitLive(before + 1);
  EXPECT_EQ(as_it_is->base(), refused->base());
  as_it_is.reset();
  gpus_.reset();
  EXPECT_EQ(fake_->Calls("cuMemHostUnregister"), 0u);
}

TEST_F(PinnedSharedTest, MayOutliveTheGpus) {
  Open();
  const int64_t before = fake_->Live();
  auto pinned = Pin(Plain());
  WaitLive(before + 1);
  gpus_.reset();
  pinned.reset();
  EXPECT_EQ(fake_->Live(), 0);
}

}  // namespace
}  // namespace leat::worker
