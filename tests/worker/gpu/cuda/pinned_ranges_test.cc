// SPDX-License-Identifier: Apache-2.0
//
// Copies of memory that is not page-locked: each holds up the thread of a slot,
// so there is none on a row's way, and where there are any they are counted.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/gpu/device_bytes.h"
#include "tests/worker/gpu/fixture.h"
#include "tests/worker/gpu/groups/compare.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

class GpuPageableTest : public GpuTest {
 protected:
  GpuPageableTest() {
    for (uint32_t i = 0; i < 6; ++i)
      files_.push_back(MakeJpeg(
          {.width = 200 + 3 * static_cast<int>(i), .height = 150, .seed = i}));
  }
  uint64_t Copies() const {
    return gpus_->stats()[0].pageable_copies_total - before_;
  }
  void Forget() {
    before_ = gpus_->stats()[0].pageable_copies_total;
    fake_->Forget();
  }
  // Writes the files' rows to `base`, field after field.
  void Run(GpuPipeline& pipeline, std::byte* base, int device) {
    std::vector<uint64_t> offsets;
    std::vector<size_t> bytes;
    uint64_t at = 0;
    for (const Field& field : pipeline.schema().fields) {
      offsets.push_back(at);
      bytes.push_back(field.row_bytes);
      at += files_.size() * field.row_bytes;
    }
    ASSERT_LE(at, kBytes);
    const auto group = pipeline.kernel().BeginGroup({.rows = files_.size(),
                                                     .base = base,
                                                     .device = device,
                                                     .offsets = offsets,
                                                     .field_bytes = bytes});
    for (size_t row = 0; row < files_.size(); ++row)
      ASSERT_TRUE(pipeline.Prepare(*group, row, files_[row]).ok());
    for (const absl::Status& status : pipeline.Finish(*group, files_))
      EXPECT_TRUE(status.ok()) << status;
  }

  static constexpr size_t kBytes = 100'000;
  std::vector<std::string> files_;
  uint64_t before_ = 0;  // of the decoder's trial
};

TEST_F(GpuPageableTest, NoneIsOnARowsWay) {
  fake_->Set("refuse_pinned", 0);
  Open();
  const DeviceBytes shared(kBytes);
  const auto pinned = gpus_->buffer_memory();
  std::byte* const own = pinned->Allocate(kBytes);
  ASSERT_NE(own, nullptr);
  const std::pair<Graph, DecoderClass> cases[] = {
      {CropGraph(32), DecoderClass::kExact},
      {CropGraph(32), DecoderClass::kNvjpeg},
      {CropGraph(32), DecoderClass::kNvjpegShared},
      {StagedGraph(), DecoderClass::kExact},
      // The CPU computes the rows, which a host's memory needs no GPU for.
      {UnfusedGraph(), DecoderClass::kExact}};
  for (const auto& [graph, decoder] : cases) {
    GpuPipeline pipeline(graph, *gpus_, decoder);
    Forget();
    if (pipeline.kernel().staged(false)) Run(pipeline, own, -1);
    Run(pipeline, shared.data(), 0);
    EXPECT_EQ(fake_->Count("pageable_copies"), 0);
    EXPECT_EQ(fake_->Count("pageable_files"), 0);
    EXPECT_EQ(Copies(), 0u);
  }
  pinned->Free(own, kBytes);
}

TEST_F(GpuPageableTest, AreCountedAsTheDriverSeesThem) {
  for (const uint64_t refused : {0, 1}) {
    fake_->Set("refuse_pinned", refused);
    Open();
    GpuPipeline pipeline(CropGraph(32), *gpus_);
    Forget();
    ExpectExact(pipeline, files_);  // into ordinary memory
    EXPECT_GT(Copies(), 0u);
    EXPECT_EQ(Copies(), static_cast<uint64_t>(fake_->Count("pageable_copies")));
    Close();
  }
}

}  // namespace
}  // namespace leat::worker
