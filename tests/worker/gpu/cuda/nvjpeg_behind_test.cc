// SPDX-License-Identifier: Apache-2.0
//
// Class nvjpeg with any operators after the decoder, and files that nvJPEG is
// not given.
#include <algorithm>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/fixture.h"

namespace leat::worker {
namespace {

using testing::MakeJpeg;

Graph ResizedTwice() {
  Graph graph = CropGraph(16);
  graph.nodes.push_back(
      {"resize", {{2, 0}}, {{"size", std::vector<int64_t>{32, 32}}}});
  graph.outputs[0].second.node = 3;
  return graph;
}

class NvjpegBehind : public GpuTest {
 protected:
  NvjpegBehind() {
    for (uint32_t i = 0; i < 8; ++i)
      files_.push_back(MakeJpeg({.width = 300 + static_cast<int>(i),
                                 .height = 200,
                                 .orientation = static_cast<int>(i),
                                 .seed = i}));
  }
  std::vector<std::string> files_;
};

// libjpeg-turbo would give other bytes.
TEST_F(NvjpegBehind, WhatNvjpegFailsOnIsNotTheCpusBehindStagesEither) {
  Open();
  GpuPipeline pipeline(ResizedTwice(), *gpus_, DecoderClass::kNvjpeg);
  fake_->Fail("nvjpegDecodeBatchedSupportedEx", 1, true, 6);
  for (const absl::Status& status : pipeline.Run(files_).prepared)
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(SlotsInUse(), 0);
}

// Their tables are computed for the whole image.
TEST_F(NvjpegBehind, ImagesForRuleDaliAreNotReduced) {
  scales_ = true;
  Open();
  Graph graph = CropGraph(24);
  graph.nodes[2].args["rule"] = std::string("dali");
  GpuPipeline dali(graph, *gpus_, DecoderClass::kNvjpeg);
  ExpectExact(dali, files_);
  EXPECT_EQ(fake_->Count("scaled_images"), 0);
  EXPECT_GT(fake_->Count("hardware_images"), 0);
}

// A parse that fails spoils nvJPEG's handle, which must not affect the next
// image. One slot, so that all images use the same handles.
TEST_F(NvjpegBehind, ADamagedFileDoesNotChooseWhoDecodesTheNext) {
  std::string damaged = files_[0];
  // A frame within the scan: the header is sound, and libjpeg-turbo finds the
  // damage when it decodes.
  damaged.replace(damaged.size() * 9 / 10, 2, "\xff\xc0");
  const std::vector<std::string> files = {damaged,   files_[1], files_[2],
                                          damaged,   damaged,   files_[3],
                                          files_[4], damaged};
  config_.slots = 1;
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    for (int round = 1; round <= 2; ++round) {
      const GroupResult result = pipeline.Run(files);
      ASSERT_EQ(result.computed.size(), files.size());
      for (size_t row = 0; row < files.size(); ++row) {
        const auto expected = pipeline.OnCpu(files[row], row);
        EXPECT_EQ(result.computed[row], expected.status()) << row;
        EXPECT_EQ(expected.ok(), files[row] != damaged);
        if (expected.ok()) {
          EXPECT_EQ(result.rows[row], *expected) << row;
        }
      }
      EXPECT_EQ(fake_->Count("hardware_images"), engines ? 4 * round : 0);
      EXPECT_EQ(fake_->Count("hybrid_images"), engines ? 0 : 4 * round);
    }
    EXPECT_EQ(gpus_->stats()[0].groups_failed_total, 0u);
    Close();
  }
}

// A handle that cannot be recreated is the worker's fault: the image is tried
// again.
TEST_F(NvjpegBehind, AHandleThatCannotBeMadeAnewFailsNoImage) {
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    fake_->Fail("nvjpegJpegStreamParse", 1, false, 8);
    fake_->Fail("nvjpegJpegStreamCreate", 1, false, 2);
    GroupResult result = pipeline.Run(files_);
    for (const auto* statuses : {&result.prepared, &result.computed})
      for (const absl::Status& status : *statuses)
        EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    ExpectExact(pipeline, files_);
    EXPECT_EQ(fake_->Count("hardware_images") > 0, engines);
    Close();
  }
}

// EXIF's orientations may swap sides, which Leat does itself.
TEST_F(NvjpegBehind, NvjpegTurnsNoImage) {
  std::vector<std::string> files;
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const auto& [width, height] :
         {std::pair(300, 200), std::pair(1201, 1000)})
      files.push_back(MakeJpeg({.width = width,
                                .height = height,
                                .orientation = orientation,
                                .exif_big_endian = orientation % 2 == 0}));
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CropGraph(24), *gpus_, DecoderClass::kNvjpeg);
    ExpectExact(pipeline, files);
    for (const char* way : {"hybrid_images", "gpu_hybrid_images"})
      EXPECT_EQ(fake_->Count(way), engines ? 0 : 8) << way;
    Close();
  }
}

// Restart markers show where a file was cut, though it has an end.
TEST_F(NvjpegBehind, AFileThatEndsEarlyIsTheHosts) {
  const std::string whole =
      MakeJpeg({.width = 400, .height = 300, .restart_interval = 25});
  std::vector<std::string> files = files_;
  files[2] = whole.substr(0, whole.size() * 6 / 10) + "\xff\xd9";
  for (const bool engines : {true, false}) {
    fake_->Set("engines", engines ? 7 : 0);
    Open();
    GpuPipeline pipeline(CenterGraph(40), *gpus_, DecoderClass::kNvjpeg);
    ExpectExact(pipeline, files);  // above the cut
    EXPECT_GT(gpus_->stats()[0].rows_host_total, 0u);
    GpuPipeline resized(CropGraph(32), *gpus_, DecoderClass::kNvjpeg);
    int bad = 0;
    for (int place = 0; place < 4; ++place) {
      std::rotate(files.begin(), files.begin() + 1, files.end());
      const GroupResult result = resized.Run(files);
      for (size_t row = 0; row < files.size(); ++row) {
        const absl::Status expected = resized.OnCpu(files[row], row).status();
        EXPECT_EQ(result.prepared[row], expected) << row;
        bad += expected.ok() ? 0 : 1;
      }
    }
    EXPECT_GT(bad, 0);
    Close();
  }
}

}  // namespace
}  // namespace leat::worker
