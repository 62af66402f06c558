// SPDX-License-Identifier: Apache-2.0
//
// Groups of random pipelines have the CPU's rows, whatever computes them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/device_forms.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/fused_graphs.h"
#include "tests/worker/gpu/gpu_support.h"
#include "tests/worker/gpu/staged_graphs.h"

namespace leat::worker {

// Those of the rows that the CPU does not refuse; returns how many.
inline int CompareGroup(GpuPipeline& pipeline,
                        const std::vector<std::string>& files,
                        const std::string& where) {
  std::vector<std::string> group;
  std::vector<RowBytes> expected;
  for (const std::string& file : files) {
    const auto row = pipeline.OnCpu(file, group.size());
    if (!row.ok()) continue;  // smaller than the crop
    group.push_back(file);
    expected.push_back(*row);
  }
  if (group.empty()) return 0;
  const GroupResult result = pipeline.Run(group);
  EXPECT_TRUE(result.ok()) << where;
  for (size_t row = 0; row < group.size(); ++row)
    EXPECT_EQ(result.rows[row], expected[row]) << "row " << row << where;
  return static_cast<int>(group.size());
}

inline void CompareRandomGroups(GpuWorker& gpus, int graphs,
                                DecoderClass decoder_class) {
  std::mt19937 random(20'260'101);
  const std::vector<std::string> files = OddImages();
  int computed = 0;
  for (int i = 0; i < graphs && !::testing::Test::HasFailure(); ++i) {
    const Graph graph = RandomGraph(random).Make();
    GpuPipeline pipeline(graph, gpus, decoder_class);
    ASSERT_TRUE(pipeline.kernel().staged(false));
    computed += CompareGroup(pipeline, files, "\n" + CanonicalText(graph));
  }
  EXPECT_GT(computed, 5 * graphs);
}

inline void CompareRandomStagedGroups(GpuWorker& gpus, int graphs) {
  std::mt19937 random(20'260'302);
  const std::vector<std::string> files = OddImages();
  int staged = 0, too_large = 0;
  for (int i = 0; i < graphs && !::testing::Test::HasFailure(); ++i) {
    const Graph graph = RandomStagedGraph(random).Make(12);
    const auto checked = Check(graph);
    if (!checked.ok()) continue;  // an output without a size
    if (!CheckDeviceForms(*checked).ok()) continue;
    const bool exact = i % 3 == 0 || !CheckDecoderForms(*checked).ok();
    GpuPipeline pipeline(graph, gpus,
                         exact ? DecoderClass::kExact : DecoderClass::kNvjpeg);
    if (!pipeline.kernel().staged(false)) {
      ++too_large;  // for eight rows to have room in a slot
      continue;
    }
    ++staged;
    CompareGroup(pipeline, files, "\n" + CanonicalText(graph));
  }
  EXPECT_GT(staged, graphs / 2);
  EXPECT_LT(too_large, graphs / 8);
}

}  // namespace leat::worker
