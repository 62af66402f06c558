// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/program.h"

#include <thread>

#include "core/pipeline/device_forms.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/gpu/fused/compare.h"

namespace leat::worker {
namespace {

// A row whose image the test decodes by itself.
RowInput RowOf(uint64_t epoch, uint64_t sample) {
  static const StoredSample stored = StoredImage({}, 7);
  return {.seed = 3, .epoch = epoch, .sample = sample, .fields = stored.fields};
}

using ::testing::HasSubstr;
using testing::MakeJpeg;
using Ints = std::vector<int64_t>;

Value Text(const char* text) { return Value(std::string(text)); }

absl::Status CompileError(const Graph& graph) {
  const auto checked = Check(graph);
  EXPECT_TRUE(checked.ok()) << Message(checked.status());
  EXPECT_TRUE(absl::IsUnimplemented(CheckDeviceForms(*checked)));
  return FusedProgram::Compile(*checked).status();
}

TEST(FusedProgram, NamesTheNodeThatCannotBeFused) {
  const auto expect = [](const Graph& graph, const char* text) {
    const absl::Status status = CompileError(graph);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(Message(status)), HasSubstr(text));
  };
  const Node resize{"resize", {}, {{"size", Ints{8}}}};
  Graph two = ChainOf({resize});
  two.nodes.push_back({"decode", {{0, 0}}, {}});
  two.nodes.push_back({"resize", {{3, 0}}, {{"size", Ints{9}}}});
  two.outputs.push_back({"other", {4, 0}});
  expect(two, "second decode");
  Graph none = ChainOf({});
  none.outputs = {{"label", {0, 1}}};
  expect(none, "no field is made of an image");
}

// The time of compiling grows with the square of the launches.
TEST(FusedProgram, HasABoundOnLaunches) {
  std::vector<Node> nodes = {{"resize", {}, {{"size", Ints{8}}}}};
  for (int i = 0; i < 10; ++i)
    nodes.push_back(
        {"rand_augment", {}, {{"n", int64_t{64}}, {"m", int64_t{1}}}});
  const auto checked = Check(ChainOf(nodes));
  ASSERT_TRUE(checked.ok()) << Message(checked.status());
  const absl::Status status = FusedProgram::Compile(*checked).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("over 1024 launches"));
}

TEST(FusedProgram, SaysWhichFieldsComeFromPixels) {
  const auto program = Fuse(TrainingGraph(32));
  ASSERT_EQ(program->fields(), 4u);
  EXPECT_TRUE(program->from_pixels(0));
  EXPECT_FALSE(program->from_pixels(1));
  EXPECT_TRUE(program->from_pixels(2));
  EXPECT_FALSE(program->from_pixels(3));
  EXPECT_EQ(program->channels(), 3);
  EXPECT_EQ(program->views(), 1u);
  EXPECT_TRUE(program->orient());
}

TEST(FusedProgram, HasThePartsOfTheHeadersExample) {
  Graph graph =
      ChainOf({{"random_resized_crop", {}, {{"size", Ints{32, 32}}}}});
  graph.nodes.push_back({"brightness", {{2, 0}}, {{"brightness", Value(1.5)}}});
  graph.nodes.push_back({"normalize",
                         {{3, 0}},
                         {{"mean", std::vector<double>{128, 128, 128}},
                          {"std", std::vector<double>{64, 64, 64}}}});
  graph.nodes.push_back({"cast", {{2, 0}}, {{"dtype", Text("float32")}}});
  graph.nodes.push_back(
      {"one_hot", {{0, 1}}, {{"num_classes", Value(int64_t{9})}}});
  graph.outputs = {{"image", {4, 0}}, {"plain", {5, 0}}, {"label", {6, 0}}};
  const auto program = Fuse(graph);
  ASSERT_EQ(program->fields(), 3u);
  EXPECT_EQ(program->views(), 1u);
  EXPECT_GE(program->stages(), 2u);
  for (size_t field = 0; field < 3; ++field)
    EXPECT_TRUE(program->from_pixels(field)) << "a kernel writes it";
}

// A group of rows with separate places in one batch, prepared by several
// threads; some rows are computed elsewhere.
TEST(FusedGroup, WritesTheRowsThatAreBoundAndNoOthers) {
  constexpr size_t kRows = 23;
  const Graph graph = TrainingGraph(20);
  const auto program = Fuse(graph);
  Runner cpu(graph, 3);
  std::vector<std::string> jpegs;
  std::vector<std::vector<uint8_t>> pixels(kRows);
  for (size_t r = 0; r < kRows; ++r)
    jpegs.push_back(MakeJpeg({.width = 50 + static_cast<int>(r) * 9,
                              .height = 90,
                              .orientation = static_cast<int>(r % 9),
                              .seed = static_cast<uint32_t>(r + 1)}));
  std::vector<std::vector<std::byte>> batch;
  for (const Field& field : cpu.schema.fields)
    batch.emplace_back(field.row_bytes * kRows, std::byte{0x77});
  const auto place = [](size_t row) { return (row * 7 + 3) % kRows; };
  const auto skipped = [](size_t row) { return row % 5 == 4; };

  Block block(program->BlockBytes(kRows));
  FusedGroup group;
  ASSERT_TRUE(group.Begin(*program, kRows, block.span()).ok());
  const auto prepare = [&](size_t first) {
    FusedScratch scratch;
    JpegDecoder decoder({});
    for (size_t r = first; r < kRows; r += 3) {
      ASSERT_TRUE(decoder.Open(AsSpan(jpegs[r])).ok());
      const auto part =
          group.PrepareRow(r, RowOf(2, r), decoder.header().size,
                           decoder.header().orientation, &scratch);
      ASSERT_TRUE(part.ok()) << Message(part.status());
      FusedSource source;
      pixels[r] = Decoded(jpegs[r], *part, false, {}, &source);
      source.address = DeviceAddress::Of(pixels[r].data());
      ASSERT_TRUE(group.BindSource(r, source).ok());
      for (size_t f = 0; f < 4; ++f)  // labels are stored by the caller
        group.BindOutput(r, f,
                         f == 1
                             ? DeviceAddress()
                             : DeviceAddress::Of(batch[f].data()) +
                                   place(r) * cpu.schema.fields[f].row_bytes);
      if (skipped(r)) group.SkipRow(r);
    }
  };
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 3; ++first)
    threads.emplace_back(prepare, first);
  for (std::thread& thread : threads) thread.join();
  ASSERT_LE(group.used_bytes(), block.span().size());
  HostRunner host;
  ASSERT_TRUE(
      host.Launch(program->kernel(), program->launch(kRows), block.address())
          .ok());

  Scratch scratch({});
  for (size_t r = 0; r < kRows; ++r) {
    ASSERT_TRUE(cpu.Run(jpegs[r], scratch, r, 2).ok());
    for (size_t f = 0; f < 4; ++f) {
      const size_t bytes = cpu.schema.fields[f].row_bytes;
      const std::byte* got = batch[f].data() + place(r) * bytes;
      std::vector<std::byte> want = cpu.outputs[f];
      if (f == 1) {
        const auto value = group.HostValue(r, f);
        EXPECT_TRUE(
            std::equal(value.begin(), value.end(), want.begin(), want.end()));
      }
      if (f == 1 || skipped(r)) want.assign(bytes, std::byte{0x77});
      ASSERT_EQ(memcmp(got, want.data(), bytes), 0) << r << " " << f;
    }
  }
}

TEST(FusedGroup, ReturnsOnlyThePartThatIsRead) {
  const Graph graph = ChainOf({{"crop",
                                {},
                                {{"size", Ints{10, 20}},
                                 {"pos_y", Value(1.0)},
                                 {"pos_x", Value(0.0)}}}});
  const auto program = Fuse(graph);
  Block block(program->BlockBytes(1));
  FusedGroup group;
  FusedScratch scratch;
  ASSERT_TRUE(group.Begin(*program, 1, block.span()).ok());
  EXPECT_EQ(*group.PrepareRow(0, RowOf(0, 0), {100, 300}, 1, &scratch),
            (Rect{0, 90, 20, 10}));
  EXPECT_EQ(*group.PrepareRow(0, RowOf(0, 0), {100, 300}, 6, &scratch),
            (Rect{290, 80, 10, 20}));
  FusedSource source{.held = {290, 80, 10, 19}, .pitch = 30};
  EXPECT_EQ(group.BindSource(0, source).code(),
            absl::StatusCode::kInvalidArgument);
  source.held.height = 20;
  EXPECT_TRUE(group.BindSource(0, source).ok());
  source.pitch = 1 << 28;
  EXPECT_EQ(group.BindSource(0, source).code(),
            absl::StatusCode::kResourceExhausted);
  const auto small = group.PrepareRow(0, RowOf(0, 0), {9, 300}, 1, &scratch);
  EXPECT_THAT(std::string(Message(small.status())),
              HasSubstr("smaller than the crop"));
}

TEST(FusedGroup, ReturnsThePartThatAllViewsReadTogether) {
  const auto crop = [](int64_t size, double pos) {
    return Node{
        "crop",
        {{1, 0}},
        {{"size", Ints{size}}, {"pos_y", Value(pos)}, {"pos_x", Value(pos)}}};
  };
  Graph graph = ChainOf({});
  graph.nodes.push_back(crop(10, 0.0));
  graph.nodes.push_back(crop(20, 0.5));
  graph.outputs = {{"small", {2, 0}}, {"large", {3, 0}}};
  const auto program = Fuse(graph);
  EXPECT_EQ(program->views(), 2u);
  EXPECT_EQ(program->launch(7).grid_y, 14u);
  Block block(program->BlockBytes(1));
  FusedGroup group;
  FusedScratch scratch;
  ASSERT_TRUE(group.Begin(*program, 1, block.span()).ok());
  EXPECT_EQ(*group.PrepareRow(0, RowOf(0, 0), {100, 300}, 1, &scratch),
            (Rect{0, 0, 160, 60}));
}

TEST(FusedGroup, RefusesWhatIsTooMuchForAThread) {
  Graph graph =
      ChainOf({{"resize",
                {},
                {{"size", Ints{2, 2}}, {"interpolation", Text("lanczos3")}}}});
  const auto program = Fuse(graph, {.max_table_bytes = size_t{4} << 20});
  Block block(program->BlockBytes(1));
  FusedGroup group;
  FusedScratch scratch;
  ASSERT_TRUE(group.Begin(*program, 1, block.span()).ok());
  const size_t before = group.used_bytes();
  const auto huge = group.PrepareRow(0, RowOf(0, 0), {9000, 9000}, 1, &scratch);
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(huge.status())), HasSubstr("one thread"));
  EXPECT_EQ(group.used_bytes(), before);
  EXPECT_TRUE(group.PrepareRow(0, RowOf(0, 0), {900, 900}, 1, &scratch).ok());
}

TEST(FusedGroup, RefusesAReadersScalarOfAnotherSize) {
  const auto program = Fuse(TrainingGraph(8));
  Block block(program->BlockBytes(1));
  FusedGroup group;
  FusedScratch scratch;
  ASSERT_TRUE(group.Begin(*program, 1, block.span()).ok());
  const std::vector<std::byte> label(5);
  for (const size_t bytes : {0, 3, 5}) {
    const std::vector<StoredField> fields = {{},
                                             {.bytes = {label.data(), bytes}}};
    const auto part =
        group.PrepareRow(0, {.fields = fields}, {100, 100}, 1, &scratch);
    EXPECT_TRUE(absl::IsDataLoss(part.status())) << part.status();
    EXPECT_THAT(std::string(Message(part.status())),
                HasSubstr("output 1 of the reader is no int32 scalar"));
  }
  const std::vector<StoredField> image(1);
  EXPECT_TRUE(absl::IsDataLoss(
      group.PrepareRow(0, {.fields = image}, {100, 100}, 1, &scratch)
          .status()));
}

TEST(FusedGroup, TablesStayWithinTheirBound) {
  for (const char* filter : {"nearest", "linear", "lanczos3"})
    for (const int64_t side : {40, 1000, 5000}) {
      const Graph graph = ChainOf({{"random_resized_crop",
                                    {},
                                    {{"size", Ints{64, 33}},
                                     {"area", std::vector<double>{0.9, 1}},
                                     {"interpolation", Text(filter)}}}});
      const auto program = Fuse(graph);
      const auto tight = Fuse(graph, {.max_table_bytes = 64});
      Block block(program->BlockBytes(2));
      FusedGroup group;
      FusedScratch scratch;
      ASSERT_TRUE(group.Begin(*program, 2, block.span()).ok());
      for (size_t row = 0; row < 2; ++row) {
        const auto part =
            group.PrepareRow(row, RowOf(0, row), {side, side}, 1, &scratch);
        ASSERT_TRUE(part.ok()) << Message(part.status());
      }
      EXPECT_LE(group.used_bytes(), program->BlockBytes(2));
      ASSERT_TRUE(group.Begin(*tight, 1, block.span()).ok());
      const auto refused =
          group.PrepareRow(0, RowOf(0, 0), {side, side}, 1, &scratch).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(Message(refused)), HasSubstr("limit of 64"));
    }
}

TEST(FusedGroup, RefusesMemoryThatDoesNotFit) {
  const auto program = Fuse(TrainingGraph(8));
  Block block(program->BlockBytes(4));
  FusedGroup group;
  EXPECT_TRUE(group.Begin(*program, 4, block.span()).ok());
  const auto refused = [&](size_t rows, std::span<std::byte> memory) {
    return group.Begin(*program, rows, memory).code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(0, block.span()));
  EXPECT_TRUE(refused(5, block.span()));
  EXPECT_TRUE(refused(1, block.span().subspan(8)));
  EXPECT_TRUE(refused(70'000, block.span()));
  EXPECT_TRUE(refused(65'000, block.span()));  // over 4 GiB
}

TEST(FusedGroup, PreparesARowAgainForAnotherSample) {
  const auto program =
      Fuse(TrainingGraph(48), {.max_table_bytes = size_t{16} << 10});
  Block block(program->BlockBytes(2));
  FusedGroup group;
  FusedScratch scratch;
  ASSERT_TRUE(group.Begin(*program, 2, block.span()).ok());
  size_t most = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const StoredSize size{300 + sample % 7 * 100, 400};
    const auto part =
        group.PrepareRow(sample % 2, RowOf(0, sample), size, 1, &scratch);
    if (!part.ok()) {
      EXPECT_EQ(part.status().code(), absl::StatusCode::kUnavailable);
    }
    EXPECT_LE(group.used_bytes(), block.span().size());
    EXPECT_GE(group.used_bytes(), most);
    most = group.used_bytes();
  }
  // Tables that fit into those of the row's last sample need no more room.
  ASSERT_TRUE(group.PrepareRow(0, RowOf(0, 1), {50, 50}, 1, &scratch).ok());
  EXPECT_EQ(group.used_bytes(), most);
}

TEST(FusedGroup, AllocatesNothingInSteadyState) {
  const auto program = Fuse(TrainingGraph(48));
  Block block(program->BlockBytes(8));
  FusedGroup group;
  FusedScratch scratch;
  uint64_t before = 0;
  for (int round = 0; round < 6; ++round) {
    if (round == 3) before = testing::AllocationsSoFar();
    ASSERT_TRUE(group.Begin(*program, 8, block.span()).ok());
    for (size_t row = 0; row < 8; ++row)
      ASSERT_TRUE(
          group.PrepareRow(row, RowOf(0, row), {300, 400}, 6, &scratch).ok());
  }
  EXPECT_EQ(testing::AllocationsSoFar(), before);
}

}  // namespace
}  // namespace leat::worker
