// SPDX-License-Identifier: Apache-2.0
//
// Rows of images whose forms are kept have the bytes and the errors of rows
// without forms, whatever the keeper has.
#include <random>

#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/jpeg/decode/damaged_jpegs.h"
#include "tests/worker/image/jpeg/forms/random_keeper.h"
#include "tests/worker/image/program/support.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::MakeJpeg;

std::vector<std::string> Files() {
  std::vector<std::string> files;
  uint32_t seed = 0;
  for (const auto& [h, v] :
       {std::pair{1, 1}, std::pair{2, 1}, std::pair{1, 2}, std::pair{2, 2}})
    for (const int orientation : {0, 6})
      files.push_back(MakeJpeg({.width = 200 + 9 * h,
                                .height = 170 - 7 * v,
                                .h = h,
                                .v = v,
                                .orientation = orientation,
                                .seed = ++seed}));
  files.push_back(MakeJpeg({.width = 130, .height = 90, .progressive = true}));
  files.push_back(MakeJpeg(
      {.width = 131, .height = 77, .color = JpegColor::kGray, .h = 1, .v = 1}));
  files.push_back(MakeJpeg(
      {.width = 99, .height = 101, .color = JpegColor::kYcck, .h = 1, .v = 1}));
  files.push_back(MakeJpeg({.width = 90, .height = 70, .restart_interval = 3}));
  const size_t sound = files.size();
  for (size_t i = 0; i < sound; i += 3) {
    JpegDamager damager(files[i], ++seed);
    for (std::string& copy : damager.Copies(12))
      files.push_back(std::move(copy));
  }
  return files;
}

Graph GraphOf(size_t which, bool gray) {
  const auto size = [](int64_t side) {
    return Value(std::vector<int64_t>{side, side});
  };
  switch (which) {
    case 0:
      return ChainOf({{"random_resized_crop", {}, {{"size", size(40)}}}}, gray);
    case 1:
      return ChainOf({{"crop", {}, {{"size", size(30)}}}}, gray);
    default:
      return ChainOf({{"resize", {}, {{"size", size(50)}}}}, gray);
  }
}

TEST(KeptForms, RowsAreThoseWithoutThem) {
  const std::vector<std::string> files = Files();
  RandomKeeper keeper(5);
  Scratch scratch({}), plain_scratch({});
  int failed = 0;
  for (size_t which = 0; which < 6; ++which) {
    const Graph graph = GraphOf(which % 3, which >= 3);
    Runner with(graph, 9), plain(graph, 9);
    for (uint64_t epoch = 0; epoch < 4; ++epoch)
      for (size_t i = 0; i < files.size(); ++i) {
        const StoredSample stored = StoredImage(AsSpan(files[i]), 7);
        const absl::Status status = with.program->Run({.seed = with.seed,
                                                       .epoch = epoch,
                                                       .sample = i,
                                                       .fields = stored.fields,
                                                       .forms = &keeper},
                                                      scratch, with.spans);
        const absl::Status want = plain.Run(files[i], plain_scratch, i, epoch);
        ASSERT_EQ(status, want) << "file " << i;
        failed += !status.ok();
        if (!status.ok()) continue;
        ASSERT_EQ(with.outputs, plain.outputs) << "file " << i;
      }
  }
  EXPECT_GT(keeper.used, 100);
  EXPECT_GT(keeper.made, 100);
  EXPECT_GT(keeper.grown, 50);
  EXPECT_GT(keeper.refused, 50);
  EXPECT_GT(keeper.other_colours, 10);
  EXPECT_GT(failed, 20);
}

}  // namespace
}  // namespace leat::worker
