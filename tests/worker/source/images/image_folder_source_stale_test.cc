// SPDX-License-Identifier: Apache-2.0
//
// Images whose descriptors their file server has forgotten (ESTALE).
#include <string>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/source/images/image_folder_fixture.h"
#include "tests/worker/source/storage/local/stale_reads.h"

namespace leat::worker {
namespace {

class StaleImage : public ImageFolderTest {
 protected:
  StaleImage() {
    limits_.listing_threads = 1;
    dir_.Write("a/1.jpg", "x");
    source_ = Open(Index());
  }
  ~StaleImage() override { stale_reads = 0; }

  std::unique_ptr<Source> source_;
};

TEST_F(StaleImage, IsOpenedAgainOnce) {
  stale_reads = 1;
  const auto sample = source_->Read(0);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(Text(*sample), "x");
}

// If it were the file's, two workers with the mount's trouble would agree that
// the sample is gone, and the job's policy would change its batches.
TEST_F(StaleImage, ThatStaysStaleIsTheWorkersFault) {
  stale_reads = 2;
  const absl::Status status = source_->Read(0).status();
  EXPECT_EQ(FaultOf(status), Fault::kWorker) << status;
  EXPECT_TRUE(source_->Read(0).ok());
}

}  // namespace
}  // namespace leat::worker
