// SPDX-License-Identifier: Apache-2.0
//
// Groups of random pipelines have the CPU's rows, whatever computes them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/pipeline/device_forms.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/graphs.h"
#include "tests/worker/gpu/stages/graphs.h"
#include "tests/worker/gpu/support.h"

namespace leat::worker {

struct Compared {
  int same = 0;    // rows that both computed
  int failed = 0;  // rows that both refused, with the same text
  int again = 0;   // rows that a kernel found bad
};

// Computes the files' rows, in groups.
inline Compared CompareGroup(GpuPipeline& pipeline,
                             const std::vector<std::string>& files,
                             const std::string& where) {
  Compared compared;
  const GroupResult result = pipeline.Run(files);
  EXPECT_EQ(result.computed.size(), files.size()) << where;
  if (result.computed.size() != files.size()) return compared;
  compared.again = result.again;
  for (size_t row = 0; row < files.size(); ++row) {
    const auto expected = pipeline.OnCpu(files[row], row);
    const absl::Status& prepared = result.prepared[row];
    EXPECT_EQ(prepared.ok() ? result.computed[row] : prepared,
              expected.status())
        << "row " << row << where;
    if (expected.ok()) {
      EXPECT_EQ(result.rows[row], *expected) << "row " << row << where;
    }
    ++(expected.ok() ? compared.same : compared.failed);
  }
  return compared;
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
    computed += CompareGroup(pipeline, files, "\n" + CanonicalText(graph)).same;
  }
  EXPECT_GT(computed, 5 * graphs);
}

inline void CompareRandomStagedGroups(GpuWorker& gpus, int graphs) {
  std::mt19937 random(20'260'302);
  const std::vector<std::string> files = OddImages();
  int staged = 0, too_large = 0, again = 0;
  for (int i = 0; i < graphs && !::testing::Test::HasFailure(); ++i) {
    const Graph graph = RandomStagedGraph(random).Make(12);
    const auto checked = Check(graph);
    if (!checked.ok()) continue;  // an output without a size
    if (!CheckDeviceForms(*checked).ok()) continue;
    const bool exact = i % 3 == 0 || !CheckDecoderForms(*checked).ok();
    GpuPipeline pipeline(graph, gpus,
                         exact ? DecoderClass::kExact : DecoderClass::kNvjpeg);
    if (!pipeline.kernel().staged(false)) {
      ++too_large;  // for eight rows to fit into a slot
      continue;
    }
    ++staged;
    again += CompareGroup(pipeline, files, "\n" + CanonicalText(graph)).again;
  }
  EXPECT_GT(staged, graphs / 2);
  EXPECT_GE(again, graphs / 36);
  EXPECT_LT(too_large, graphs / 8);
}

}  // namespace leat::worker
