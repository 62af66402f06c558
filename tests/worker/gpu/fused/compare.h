// SPDX-License-Identifier: Apache-2.0
//
// The fused kernel gives the bytes of the CPU's operators, wherever it runs.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/graphs.h"
#include "tests/worker/gpu/fused/support.h"

namespace leat::worker {

inline SourceLayout RandomLayout(std::mt19937& random) {
  SourceLayout layout;
  layout.pixel_bytes = random() % 2 == 0 ? 3 : 4;
  layout.planar = random() % 4 == 0;
  layout.whole = random() % 2 == 0;
  layout.pad = static_cast<int64_t>(random() % 3) * 5;
  return layout;
}

// Runs `rounds` random pipelines, each on about 2 in `stride` of the images.
inline void CompareRandom(KernelRunner& runner, uint32_t seed, int rounds,
                          size_t stride) {
  const std::vector<std::string> images = OddImages();
  std::mt19937 random(seed);
  Scratch scratch({});
  int same = 0;
  for (int round = 0; round < rounds; ++round) {
    const Graph graph = RandomGraph(random).Make();
    Runner cpu(graph, seed + round);
    FusedRunner gpu(graph, seed + round, runner);
    for (size_t i = random() % stride; i < images.size();
         i += 1 + random() % stride) {
      const absl::Status want = cpu.Run(images[i], scratch, i, round);
      const absl::Status got =
          gpu.Run(images[i], RandomLayout(random), i, round, random() % 9);
      const auto where = [&] {
        return "seed " + std::to_string(seed) + " round " +
               std::to_string(round) + " image " + std::to_string(i) + "\n" +
               CanonicalText(graph);
      };
      ASSERT_EQ(got, want) << where();
      if (!want.ok()) continue;
      for (size_t f = 0; f < cpu.outputs.size(); ++f)
        ASSERT_EQ(gpu.outputs[f], cpu.outputs[f])
            << "field " << cpu.schema.fields[f].name << " " << where();
      ++same;
    }
  }
  EXPECT_GT(same, rounds);
}

// random_resized_crop, flip; the same normalised, channels first.
inline Graph TrainingGraph(int64_t size) {
  using Ints = std::vector<int64_t>;
  Graph graph = ChainOf({{"coin_flip", {}, {}}});
  graph.nodes[2].inputs.clear();
  graph.nodes.push_back(
      {"random_resized_crop", {{1, 0}}, {{"size", Ints{size}}}});
  graph.nodes.push_back({"flip", {{3, 0}}, {{"horizontal", NodeRef{2, 0}}}});
  graph.nodes.push_back({"normalize",
                         {{4, 0}},
                         {{"mean", std::vector<double>{123.7, 116.3, 103.5}},
                          {"std", std::vector<double>{58.4, 57.1, 57.4}},
                          {"dtype", Value(std::string("float16"))}}});
  graph.nodes.push_back({"transpose", {{5, 0}}, {{"perm", Ints{2, 0, 1}}}});
  graph.outputs = {{"image", {4, 0}},
                   {"label", {0, 1}},
                   {"input", {6, 0}},
                   {"coin", {2, 0}}};
  return graph;
}

inline void ComparePhotos(KernelRunner& runner,
                          const std::vector<std::string>& photos) {
  const Graph graph = TrainingGraph(224);
  Runner cpu(graph, 5);
  FusedRunner gpu(graph, 5, runner);
  Scratch scratch({});
  uint64_t sample = 0;
  for (const std::string& photo : photos) {
    const absl::Status want = cpu.Run(photo, scratch, ++sample);
    ASSERT_TRUE(want.ok()) << Message(want);
    ASSERT_TRUE(gpu.Run(photo, {.whole = sample % 2 == 0}, sample).ok());
    ASSERT_EQ(gpu.outputs, cpu.outputs) << "sample " << sample;
  }
}

// Every filter at every scale, down to one pixel and up from one.
inline void CompareScales(KernelRunner& runner) {
  using Ints = std::vector<int64_t>;
  const std::string image =
      testing::MakeJpeg({.width = 211, .height = 157, .h = 1, .v = 1});
  const std::string dot = testing::MakeJpeg({.width = 1, .height = 1});
  Scratch scratch({});
  for (const char* filter : {"nearest", "linear", "cubic", "lanczos3"})
    for (const bool antialias : {false, true})
      for (const Ints& size : std::initializer_list<Ints>{{1, 1},
                                                          {1, 300},
                                                          {300, 1},
                                                          {7, 5},
                                                          {156, 210},
                                                          {157, 211},
                                                          {158, 212},
                                                          {500, 400}}) {
        const Graph graph =
            ChainOf({{"resize",
                      {},
                      {{"size", size},
                       {"interpolation", Value(std::string(filter))},
                       {"antialias", Value(antialias)}}}});
        Runner cpu(graph, 1);
        FusedRunner gpu(graph, 1, runner);
        for (const std::string& jpeg : {image, dot}) {
          ASSERT_TRUE(cpu.Run(jpeg, scratch).ok());
          ASSERT_TRUE(gpu.Run(jpeg, {}).ok());
          ASSERT_EQ(gpu.outputs, cpu.outputs)
              << filter << " " << antialias << " " << size[0] << " " << size[1];
        }
      }
}

inline void CompareTypes(KernelRunner& runner) {
  using Ints = std::vector<int64_t>;
  const std::string image = testing::MakeJpeg({.width = 30, .height = 20});
  Scratch scratch({});
  for (const char* dtype :
       {"bool", "uint8", "int32", "int64", "float16", "float32", "int8",
        "int16", "uint16", "uint32", "bfloat16"}) {
    Graph graph =
        ChainOf({{"crop", {}, {{"size", Ints{7, 9}}}},
                 {"normalize",
                  {},
                  {{"mean", std::vector<double>{3, 100, 250}},
                   {"std", std::vector<double>{0.01, 1, 3}}}},
                 {"cast", {}, {{"dtype", Value(std::string(dtype))}}}});
    graph.outputs.push_back({"label", {0, 1}});
    Runner cpu(graph, 1);
    FusedRunner gpu(graph, 1, runner);
    ASSERT_TRUE(cpu.Run(image, scratch).ok());
    for (size_t misalign = 0; misalign < 9; ++misalign) {
      ASSERT_TRUE(gpu.Run(image, {}, 0, 0, misalign).ok());
      ASSERT_EQ(gpu.outputs, cpu.outputs) << dtype << " off by " << misalign;
    }
  }
}

}  // namespace leat::worker
