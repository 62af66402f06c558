// SPDX-License-Identifier: Apache-2.0
//
// Rows of images that are decoded at smaller scales: the host decodes them, in
// every class, and kernels compute the CPU's bytes.
#include "core/pipeline/device_forms.h"
#include "tests/worker/gpu/groups/group_test.h"
#include "tests/worker/gpu/groups/reduced_graphs.h"
#include "tests/worker/image/jpeg/forms/random_keeper.h"

namespace leat::worker {
namespace {

using GpuReducedTest = HostGroupTest;

TEST_F(GpuReducedTest, RowsAreTheCpusInEveryClass) {
  Open();
  const std::vector<std::string> files = FilesForReducing();
  RandomKeeper keeper(3);
  for (const bool with_forms : {false, true})
    for (const DecoderClass decoder :
         {DecoderClass::kExact, DecoderClass::kNvjpeg}) {
      for (const Graph& graph : ReducedGraphs()) {
        if (decoder == DecoderClass::kNvjpeg &&
            !CheckDecoderForms(*Check(graph)).ok())
          continue;
        GpuPipeline pipeline(graph, *gpus_, decoder);
        if (!pipeline.kernel().staged(false)) continue;  // all the CPU's
        if (with_forms) pipeline.forms = &keeper;
        ExpectExact(pipeline, files);
        ExpectExact(pipeline, files);
      }
    }
  EXPECT_GT(keeper.used, 20);
  const GpuStats stats = gpus_->stats()[0];
  EXPECT_GT(stats.rows_exact_total, 8 * files.size());
  // Images that are small already are made from coefficients.
  EXPECT_GT(stats.rows_coefficients_total, 0u);
  EXPECT_LT(stats.rows_coefficients_total, stats.rows_exact_total / 2);
}

// Another row's image is reduced, too.
TEST_F(GpuReducedTest, RowsWithPartnersAreTheCpus) {
  Open();
  ViewGraph g;
  g.graph.nodes[1].args["reduce"] = Value(std::string("auto"));
  const uint32_t crop = g.Crop(18, {0.3, 1});
  g.Output(g.Add("mul", {crop, g.Add("partner", {crop})}));
  GpuPipeline pipeline(g.graph, *gpus_);
  ExpectExact(pipeline, FilesForReducing());
  EXPECT_GT(gpus_->stats()[0].rows_exact_total, 0u);
}

}  // namespace
}  // namespace leat::worker
