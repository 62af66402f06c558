// SPDX-License-Identifier: Apache-2.0
//
// Host memory that consumers lend, page-locked for the GPUs.
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/gpu_test.h"
#include "worker/plane/device_importer.h"

namespace leat::worker {
namespace {

class PlainMemory final : public LentMemory {
 public:
  explicit PlainMemory(size_t bytes) : bytes_(bytes) {}
  std::byte* base() const override { return bytes_.data(); }
  int device() const override { return -1; }
  uint32_t rows() const override { return 7; }
  std::span<const uint64_t> field_offsets() const override { return offsets_; }

 private:
  mutable std::vector<std::byte> bytes_;
  const std::vector<uint64_t> offsets_ = {0, 64};
};

using PinnedLentTest = GpuTest;

TEST_F(PinnedLentTest, IsRegisteredUntilItIsDropped) {
  Open();
  ASSERT_NE(gpus_->importer(), nullptr);
  const auto plain = std::make_shared<PlainMemory>(4096);
  const int64_t before = fake_->Live();
  auto pinned = gpus_->importer()->Pin(plain, 4096);
  EXPECT_EQ(fake_->Live(), before + 1);
  EXPECT_EQ(pinned->base(), plain->base());
  EXPECT_EQ(pinned->device(), -1);
  EXPECT_EQ(pinned->rows(), 7u);
  EXPECT_EQ(pinned->field_offsets().size(), 2u);
  pinned.reset();
  EXPECT_EQ(fake_->Live(), before);
  EXPECT_THAT(fake_->Violations(), ::testing::IsEmpty());
}

TEST_F(PinnedLentTest, IsUsedAsItIsWhereTheDriverRefuses) {
  Open();
  const auto plain = std::make_shared<PlainMemory>(4096);
  fake_->Fail("cuMemHostRegister_v2", 1, false, 2);
  EXPECT_EQ(gpus_->importer()->Pin(plain, 4096), plain);
}

TEST_F(PinnedLentTest, MayOutliveTheGpus) {
  Open();
  auto pinned =
      gpus_->importer()->Pin(std::make_shared<PlainMemory>(4096), 4096);
  gpus_.reset();
  pinned.reset();
  EXPECT_EQ(fake_->Live(), 0);
}

}  // namespace
}  // namespace leat::worker
