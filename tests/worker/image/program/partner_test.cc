// SPDX-License-Identifier: Apache-2.0
//
// Values of a row that need more than its own sample: another row's values,
// draws that a batch shares, and the chosen one of two values.
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/jpeg_maker.h"
#include "tests/worker/image/operators/support.h"
#include "tests/worker/image/program/row_beside.h"
#include "worker/image/program/scratch_state.h"

namespace leat::worker::testing {
namespace {

using leat::testing::MakeJpeg;
using ::testing::HasSubstr;

// A sample of a reader of two numbers, a flag, a label and a photo.
struct Sample {
  float x = 0;
  bool flag = false;
  int32_t label = 0;
  std::string photo;
};
constexpr NodeRef kX{0, 0}, kFlag{0, 1}, kLabel{0, 2}, kPhoto{0, 3};

struct Stored {
  explicit Stored(const Sample& from)
      : sample(from),
        values{from.x, from.x + 0.5f},
        fields{{std::as_bytes(std::span(values)), {}},
               {std::as_bytes(std::span(&sample.flag, 1)), {}},
               {std::as_bytes(std::span(&sample.label, 1)), {}},
               {std::as_bytes(std::span(sample.photo)), {}}} {}
  Stored(const Stored&) = delete;
  const Sample sample;
  const float values[2];
  const StoredField fields[4];
};

class Program {
 public:
  NodeRef Add(const char* op, std::vector<NodeRef> inputs, Args args = {}) {
    graph_.nodes.push_back({op, std::move(inputs), std::move(args)});
    return {static_cast<uint32_t>(graph_.nodes.size()) - 1, 0};
  }
  NodeRef Number(double value) {
    return Add("constant", {}, {{"values", Floats{value}}});
  }
  NodeRef Partner(const NodeRef& of) { return Add("partner", {of}); }
  // A view of the photo.
  NodeRef Crop(int64_t size) {
    const NodeRef crop = Add("random_resized_crop", {Add("decode", {kPhoto})},
                             {{"size", Ints{size, size}}});
    return Add("flip", {crop}, {{"horizontal", Value(Add("coin_flip", {}))}});
  }

  absl::Status Compile(std::initializer_list<NodeRef> outputs,
                       bool fuse = true) {
    Graph graph = graph_;
    for (const NodeRef& output : outputs)
      graph.outputs.emplace_back(std::to_string(graph.outputs.size()), output);
    using Kind = ValueType::Kind;
    const ValueType types[] = {{Kind::kTensor, DType::kFloat32, {2}},
                               {Kind::kTensor, DType::kBool, {}},
                               {Kind::kTensor, DType::kInt32, {}},
                               {Kind::kEncoded, DType::kUint8, {}}};
    ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph, types));
    schema_ = checked.schema;
    ASSIGN_OR_RETURN(program_, RowProgram::Compile(checked, fuse));
    return absl::OkStatus();
  }

  absl::Status RunBeside(PartnerRow* partner, uint64_t number,
                         uint64_t step = 0) {
    const Stored stored(samples[number]);
    outputs.clear();
    for (const Field& field : schema_.fields)
      outputs.emplace_back(field.row_bytes, std::byte{0xa5});
    const std::vector<std::span<std::byte>> places(outputs.begin(),
                                                   outputs.end());
    scratch_.state()->steps_run = 0;
    return program_->Run({.seed = 7,
                          .epoch = pass,
                          .sample = number,
                          .fields = stored.fields,
                          .step = step,
                          .step_epoch = 1,
                          .partner = partner},
                         scratch_, places);
  }
  // Runs it with another sample as its partner.
  absl::Status Run(uint64_t number, uint64_t other, uint64_t step = 0) {
    const Stored stored(samples[other]);
    RowBeside partner({.seed = 7,
                       .epoch = 1,
                       .sample = other,
                       .fields = stored.fields,
                       .step = step,
                       .step_epoch = 1});
    const absl::Status status = RunBeside(&partner, number, step);
    asked = partner.asked;
    return status;
  }

  template <class T>
  T Get(size_t output, size_t i = 0) const {
    T value;
    memcpy(&value, outputs[output].data() + i * sizeof value, sizeof value);
    return value;
  }
  uint64_t steps_run() { return scratch_.state()->steps_run; }

  std::map<uint64_t, Sample> samples;
  std::vector<std::vector<std::byte>> outputs;
  int asked = 0;      // requests for the partner in the last Run
  uint64_t pass = 1;  // of the row, not of its partner: of a stream they differ

 private:
  Graph graph_{.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}}},
               .outputs = {}};
  BatchSchema schema_;
  std::unique_ptr<RowProgram> program_;
  Scratch scratch_{ImageLimits{}};
};

std::string Photo(uint32_t seed) {
  return MakeJpeg({.width = 80, .height = 60, .seed = seed});
}

TEST(Partner, IsWhatTheOtherRowHas) {
  for (const bool fuse : {true, false}) {
    Program program;
    for (uint32_t i = 0; i < 4; ++i)
      program.samples[i] = {.x = static_cast<float>(i),
                            .label = static_cast<int32_t>(10 * i),
                            .photo = Photo(i + 1)};
    const NodeRef image = program.Crop(24);
    const NodeRef noisy = program.Add("noise_gaussian", {kX});
    const absl::Status compiled =
        program.Compile({image, noisy, kLabel, program.Partner(image),
                         program.Partner(noisy), program.Partner(kLabel)},
                        fuse);
    ASSERT_TRUE(compiled.ok()) << compiled;
    std::vector<std::vector<std::vector<std::byte>>> rows;
    for (uint64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(program.Run(i, (i + 1) % 4).ok());
      EXPECT_EQ(program.asked, 1) << "for all values together";
      rows.push_back(program.outputs);
    }
    for (size_t i = 0; i < 4; ++i)
      for (size_t f = 0; f < 3; ++f)
        EXPECT_EQ(rows[i][f + 3], rows[(i + 1) % 4][f]) << i << " " << f;
    EXPECT_NE(rows[0][0], rows[1][0]);
  }
}

TEST(Partner, OfAnEncodedImageIsDecodedWithTheRowsOwnDraws) {
  Program program;
  program.samples[0] = {.photo = Photo(1)};
  program.samples[1] = {.photo = Photo(2)};
  const NodeRef other = program.Add("decode", {program.Partner(kPhoto)});
  const NodeRef view =
      program.Add("random_resized_crop", {other}, {{"size", Ints{16, 16}}});
  ASSERT_TRUE(program.Compile({view}).ok());
  ASSERT_TRUE(program.Run(0, 1).ok());
  const auto mixed = program.outputs;
  program.samples[0].photo = program.samples[1].photo;
  ASSERT_TRUE(program.Run(0, 0).ok());
  EXPECT_EQ(program.outputs, mixed);
}

TEST(Partner, IsNotAskedForWhereNobodyLooks) {
  Program program;
  program.samples[0] = {.x = 1, .flag = true};
  program.samples[1] = {.x = 5, .flag = false};
  const NodeRef mean = program.Add(
      "mul",
      {program.Add("add", {kX, program.Partner(kX)}), program.Number(0.5)});
  ASSERT_TRUE(program.Compile({program.Add("where", {kFlag, mean, kX})}).ok());
  ASSERT_TRUE(program.Run(0, 1).ok());
  EXPECT_EQ(program.asked, 1);
  EXPECT_EQ(program.Get<float>(0), 3);
  EXPECT_EQ(program.Get<float>(0, 1), 3.5f);
  ASSERT_TRUE(program.Run(1, 0).ok());
  EXPECT_EQ(program.asked, 0);
  EXPECT_EQ(program.Get<float>(0), 5);
}

TEST(Partner, ThatIsBadFailsTheRow) {
  Program program;
  program.samples[0] = {.photo = Photo(1)};
  program.samples[1] = {.photo = "no image"};
  const NodeRef image = program.Crop(8);
  ASSERT_TRUE(program.Compile({image, program.Partner(image)}).ok());
  EXPECT_TRUE(program.Run(0, 0).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(program.Run(0, 1)));
  EXPECT_TRUE(program.Run(0, 0).ok()) << "the scratch is as good as new";
  EXPECT_TRUE(absl::IsInternal(program.RunBeside(nullptr, 0)));
}

TEST(Partner, OfAPartnerIsRefused) {
  Program program;
  const NodeRef mixed = program.Add("add", {kX, program.Partner(kX)});
  const NodeRef again = program.Partner(mixed);
  const absl::Status status = program.Compile({again});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status),
              HasSubstr("node 3 (partner): its input is made of another"));
}

TEST(Beta, OfABatchIsTheStepsAndOfASampleTheSamples) {
  Program program;
  const auto draw = [&](const char* per) {
    return program.Add("beta", {}, {{"alpha", Value(2.0)}, {"per", Text(per)}});
  };
  const NodeRef batch = draw("batch"), sample = draw("sample");
  ASSERT_TRUE(program
                  .Compile({batch, sample, draw("batch"),
                            program.Partner(batch), program.Partner(sample)})
                  .ok());
  ASSERT_TRUE(program.Run(0, 1, 5).ok());
  const auto first = program.outputs;
  EXPECT_EQ(first[0], first[3]) << "partners are of the same batch";
  EXPECT_NE(first[0], first[2]) << "another node, another draw";
  ASSERT_TRUE(program.Run(1, 0, 5).ok());
  EXPECT_EQ(program.outputs[0], first[0]);
  EXPECT_NE(program.outputs[1], first[1]);
  EXPECT_EQ(program.outputs[1], first[4]);
  ASSERT_TRUE(program.Run(0, 1, 6).ok());
  EXPECT_NE(program.outputs[0], first[0]);
  EXPECT_EQ(program.outputs[1], first[1]);
  program.pass = 2;
  ASSERT_TRUE(program.Run(0, 1, 5).ok());
  EXPECT_EQ(program.outputs[0], first[0]) << "a step has one, over its passes";
  EXPECT_EQ(program.outputs[3], first[0]);
  EXPECT_NE(program.outputs[1], first[1]);
}

TEST(Where, ComputesTheChosenSideOnly) {
  Program program;
  program.samples[0] = {.x = 2, .flag = true};
  program.samples[1] = {.x = 2, .flag = false};
  const NodeRef shared = program.Add("add", {kX, program.Number(1)});
  NodeRef costly = shared;
  for (int i = 0; i < 10; ++i) costly = program.Add("neg", {costly});
  const NodeRef cheap = program.Add("abs", {shared});
  const NodeRef chosen = program.Add("where", {kFlag, costly, cheap});
  ASSERT_TRUE(program.Compile({chosen}).ok());
  ASSERT_TRUE(program.RunBeside(nullptr, 0).ok());
  EXPECT_EQ(program.steps_run(), 1u + 10 + 2);  // where, neg, add of a constant
  EXPECT_EQ(program.Get<float>(0), 3);
  ASSERT_TRUE(program.RunBeside(nullptr, 1).ok());
  EXPECT_EQ(program.steps_run(), 1u + 1 + 2);
  EXPECT_EQ(program.Get<float>(0), 3);
  // Outputs are always computed.
  ASSERT_TRUE(program.Compile({chosen, costly}).ok());
  ASSERT_TRUE(program.RunBeside(nullptr, 1).ok());
  EXPECT_EQ(program.steps_run(), 1u + 1 + 2 + 10);
}

TEST(Where, OfWheresComputesOnePath) {
  Program program;
  program.samples[0] = {.x = 2, .flag = true};
  const NodeRef inner = program.Add(
      "where", {program.Add("invert", {kFlag}), program.Add("neg", {kX}),
                program.Add("abs", {kX})});
  const NodeRef outer =
      program.Add("where", {kFlag, inner, program.Add("neg", {inner})});
  ASSERT_TRUE(program.Compile({outer}).ok());
  ASSERT_TRUE(program.RunBeside(nullptr, 0).ok());
  EXPECT_EQ(program.steps_run(), 4u);  // where, where, invert, abs
  EXPECT_EQ(program.Get<float>(0), 2);
  ASSERT_TRUE(program.RunBeside(nullptr, 1).ok());
  EXPECT_EQ(program.steps_run(), 5u);  // where, neg, where, invert, neg
}

TEST(Where, DoesNotSeeErrorsOfTheOtherSide) {
  Program program;
  program.samples[0] = {.flag = true, .photo = "no image"};
  program.samples[1] = {.flag = false, .photo = "no image"};
  const NodeRef blank = program.Add(
      "constant", {}, {{"values", Floats{1}}, {"dtype", Text("uint8")}});
  const NodeRef image = program.Add("where", {kFlag, blank, program.Crop(4)});
  ASSERT_TRUE(program.Compile({image}).ok());
  ASSERT_TRUE(program.RunBeside(nullptr, 0).ok());
  EXPECT_EQ(program.outputs[0], std::vector(4 * 4 * 3, std::byte{1}))
      << "a scalar has the other side's shape";
  EXPECT_TRUE(absl::IsInvalidArgument(program.RunBeside(nullptr, 1)));
}

// The condition is one element rather than a scalar: both sides are computed.
TEST(Where, GivesTheBytesOfComputingBoth) {
  for (const bool fuse : {true, false}) {
    Program program;
    for (uint32_t i = 0; i < 6; ++i)
      program.samples[i] = {.x = static_cast<float>(i),
                            .flag = i % 2 == 0,
                            .photo = Photo(i + 1)};
    const NodeRef one = program.Add("reshape", {kFlag}, {{"shape", Ints{1}}});
    const NodeRef crop = program.Crop(20);
    const NodeRef blurred =
        program.Add("gaussian_blur", {crop}, {{"sigma", Value(1.5)}});
    const NodeRef noise =
        program.Add("noise_gaussian", {crop}, {{"stddev", Value(20.0)}});
    const NodeRef real =
        program.Add("cast", {crop}, {{"dtype", Text("float32")}});
    const absl::Status compiled =
        program.Compile({program.Add("where", {kFlag, blurred, noise}),
                         program.Add("where", {one, blurred, noise}),
                         program.Add("where", {kFlag, real, noise}),
                         program.Add("where", {one, real, noise}),
                         program.Add("where", {kFlag, kX, kLabel}),
                         program.Add("where", {one, kX, kLabel})},
                        fuse);
    ASSERT_TRUE(compiled.ok()) << compiled;
    for (uint64_t i = 0; i < 6; ++i) {
      ASSERT_TRUE(program.RunBeside(nullptr, i).ok());
      for (size_t f = 0; f < 6; f += 2)
        EXPECT_EQ(program.outputs[f], program.outputs[f + 1]) << i << " " << f;
    }
  }
}

TEST(Where, TakesTheChosenSidesSize) {
  Program program;
  program.samples[0] = {.flag = true, .photo = Photo(1)};
  program.samples[1] = {.flag = false, .photo = Photo(1)};
  const NodeRef image = program.Add("decode", {kPhoto});
  const NodeRef turned =
      program.Add("rotate", {image}, {{"angle", Value(90.0)}});
  const auto small = [&](NodeRef of) {
    return program.Add("resize", {of}, {{"size", Ints{9, 9}}});
  };
  const NodeRef either = small(program.Add("where", {kFlag, turned, image}));
  ASSERT_TRUE(program.Compile({either, small(turned), small(image)}).ok());
  ASSERT_TRUE(program.RunBeside(nullptr, 0).ok());
  EXPECT_EQ(program.outputs[0], program.outputs[1]);
  ASSERT_TRUE(program.RunBeside(nullptr, 1).ok());
  EXPECT_EQ(program.outputs[0], program.outputs[2]);
}

TEST(Where, MayBeAsDeepAsAGraphIs) {
  Program program;
  program.samples[0] = {.x = 4, .flag = true};
  NodeRef value = kX;
  for (int i = 0; i < 499; ++i)
    value = program.Add("where", {kFlag, program.Add("neg", {value}), kX});
  ASSERT_TRUE(program.Compile({value}).ok());
  ASSERT_TRUE(program.RunBeside(nullptr, 0).ok());
  EXPECT_EQ(program.Get<float>(0), -4);
}

}  // namespace
}  // namespace leat::worker::testing
