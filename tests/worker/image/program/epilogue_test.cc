// SPDX-License-Identifier: Apache-2.0
//
// A head and its epilogue give the bytes of the whole pipeline.
#include "core/pipeline/epilogue.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/program/support.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::MakeJpeg;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Bytes = std::vector<std::byte>;

Value Text(const char* text) { return Value(std::string(text)); }

// Finishes one row, as client.h prescribes for consumers.
Bytes Finished(const FieldEpilogue& epilogue, const Field& head,
               const Bytes& in) {
  const size_t size = SizeOf(epilogue.dtype);
  Bytes values(in.size() * size);
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t entry =
        static_cast<size_t>(in[i]) * epilogue.channels + i % epilogue.channels;
    if (epilogue.table.empty())
      values[i] = in[i];
    else
      std::memcpy(&values[i * size], &epilogue.table[entry * size], size);
  }
  if (epilogue.perm.empty()) return values;
  const size_t rank = head.shape.size();
  std::vector<size_t> strides(rank, 1);
  for (size_t i = rank - 1; i-- > 0;)
    strides[i] = strides[i + 1] * static_cast<size_t>(head.shape[i + 1]);
  Bytes turned(values.size());
  for (size_t i = 0; i < in.size(); ++i) {
    size_t rest = i, from = 0;
    for (size_t axis = rank; axis-- > 0;) {
      const auto of_head = static_cast<size_t>(epilogue.perm[axis]);
      const auto length = static_cast<size_t>(head.shape[of_head]);
      from += rest % length * strides[of_head];
      rest /= length;
    }
    std::memcpy(&turned[i * size], &values[from * size], size);
  }
  return turned;
}

// An image of a fixed size, and up to eight operators on values chosen at
// random: tails that branch, coins between them, fields that share values.
Graph RandomGraph(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  const char* const dtypes[] = {"bool",  "uint8",   "int32",
                                "int64", "float16", "float32"};
  const Ints perms[] = {{2, 0, 1}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 1, 0}};
  const bool gray = below(4) == 0;
  Graph graph = ChainOf(
      {{below(2) == 0 ? "resize" : "random_resized_crop",
        {},
        {{"size", Ints{1 + below(20), below(3) == 0 ? 3 : 1 + below(20)}}}}},
      gray);
  std::vector<uint32_t> images = {2};
  for (int i = below(9); i > 0; --i) {
    const NodeRef from = {images[random() % images.size()], 0};
    const auto next = static_cast<uint32_t>(graph.nodes.size());
    switch (below(5)) {
      case 0:
        graph.nodes.push_back({"coin_flip", {}, {}});
        graph.nodes.push_back(
            {"flip", {from}, {{"horizontal", NodeRef{next, 0}}}});
        images.push_back(next + 1);
        continue;
      case 1:
        graph.nodes.push_back(
            {"cast", {from}, {{"dtype", Text(dtypes[below(6)])}}});
        break;
      case 2:
        graph.nodes.push_back(
            {"transpose", {from}, {{"perm", perms[below(5)]}}});
        break;
      default:
        graph.nodes.push_back(
            {"normalize",
             {from},
             {{"mean",
               below(2) == 0 || gray ? Floats{99.5} : Floats{1, 120, 250}},
              {"std", Floats{0.3 + below(100)}},
              {"scale", Value(below(3) * 1.7)},
              {"shift", Value(below(300) - 7.25)},
              {"dtype", Text(below(2) == 0 ? "float16" : "float32")}}});
    }
    images.push_back(next);
  }
  graph.outputs.clear();
  for (int i = below(4); i >= 0; --i) {
    const uint32_t node =
        below(3) == 0 ? images[random() % images.size()] : images.back();
    graph.outputs.push_back({fmt::format("field{}", i), {node, 0}});
  }
  if (below(2) == 0) graph.outputs.push_back({"label", {0, 1}});
  return graph;
}

TEST(Epilogue, HeadAndTableMakeTheWholePipelinesBytes) {
  const std::vector<std::string> images = {
      MakeJpeg({.width = 60, .height = 44}),
      MakeJpeg({.width = 33,
                .height = 70,
                .color = JpegColor::kGray,
                .h = 1,
                .v = 1})};
  std::mt19937 random(7);
  Scratch scratch({});
  int checked = 0, finished = 0, placeholders = 0;
  size_t full_bytes = 0, head_bytes = 0;
  while (checked < 1500) {
    const Graph graph = RandomGraph(random);
    const auto good = Check(graph);
    if (!good.ok()) continue;  // such as a normalize of an image on its side
    ++checked;
    const SplitGraph split = SplitEpilogue(*good);
    for (size_t i = 0; i < split.head.graph.nodes.size(); ++i)
      placeholders += split.head.graph.nodes[i] != good->graph.nodes[i];
    auto program = RowProgram::Compile(split.head);
    ASSERT_TRUE(program.ok()) << program.status();
    std::vector<Bytes> heads;
    for (const Field& field : split.head.schema.fields)
      heads.emplace_back(field.row_bytes);
    const std::vector<std::span<std::byte>> spans(heads.begin(), heads.end());
    Runner whole(graph, 5);
    for (size_t sample = 0; sample < images.size(); ++sample) {
      ASSERT_TRUE(whole.Run(images[sample], scratch, sample).ok());
      const StoredSample stored = StoredImage(AsSpan(images[sample]), 7);
      const RowInput input{
          .seed = 5, .sample = sample, .fields = stored.fields};
      ASSERT_TRUE((*program)->Run(input, scratch, spans).ok());
      for (size_t f = 0; f < heads.size(); ++f) {
        const Field& head = split.head.schema.fields[f];
        ASSERT_LE(head.row_bytes, whole.schema.fields[f].row_bytes);
        full_bytes += whole.schema.fields[f].row_bytes;
        head_bytes += head.row_bytes;
        if (!split.epilogue[f].has_value()) {
          ASSERT_EQ(head, whole.schema.fields[f]);
          ASSERT_EQ(heads[f], whole.outputs[f]);
          continue;
        }
        ++finished;
        ASSERT_EQ(Finished(*split.epilogue[f], head, heads[f]),
                  whole.outputs[f])
            << CanonicalText(graph) << head.name;
      }
    }
  }
  // The graphs are of all kinds.
  EXPECT_GT(finished, 2000);
  EXPECT_GT(placeholders, 100);
  EXPECT_LT(head_bytes * 3, full_bytes * 2);
}

}  // namespace
}  // namespace leat::worker
