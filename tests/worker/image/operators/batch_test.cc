// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/operators/support.h"
#include "worker/image/formulas/beta.h"
#include "worker/image/formulas/cutmix.h"

namespace leat::worker::testing {
namespace {

using ::testing::HasSubstr;

// The distribution function of Beta(a, b), by the continued fraction of the
// incomplete beta function (Lentz's method).
double BetaBelow(double x, double a, double b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - BetaBelow(1 - x, b, a);
  const auto safe = [](double v) { return std::abs(v) < 1e-300 ? 1e-300 : v; };
  double c = 1, d = 1 / safe(1 - (a + b) * x / (a + 1)), sum = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd =
        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    for (const double term : {even, odd}) {
      d = 1 / safe(1 + term * d);
      c = safe(1 + term / c);
      sum *= c * d;
    }
    if (std::abs(c * d - 1) < 1e-14) break;
  }
  return sum / a *
         std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                  a * std::log(x) + b * std::log1p(-x));
}

TEST(Beta, HasItsDistribution) {
  constexpr int kDraws = 100'000;
  // Kolmogorov and Smirnov: exceeded by one fair sample in 1,000.
  const double limit = 1.95 / std::sqrt(kDraws);
  const double shapes[][2] = {{1, 1}, {0.2, 0.2}, {0.8, 0.3},
                              {2, 5}, {30, 40},   {0.05, 1}};
  uint32_t op = 0;
  for (const auto& [a, b] : shapes) {
    std::vector<double> draws(kDraws);
    for (uint64_t i = 0; i < kDraws; ++i) {
      SampleRng rng(5, 1, i, op);
      draws[i] = BetaDraw(a, b, &rng);
    }
    ++op;
    std::sort(draws.begin(), draws.end());
    double worst = 0;
    // Every 16th place; of equal numbers, a result of rounding, the last.
    for (size_t i = 0; i + 1 < draws.size(); i += 16) {
      if (draws[i + 1] == draws[i]) continue;
      const double below = BetaBelow(draws[i], a, b);
      worst = std::max(worst, std::abs(below - (i + 1.0) / kDraws));
    }
    EXPECT_LT(worst, limit) << a << " " << b;
    EXPECT_GE(draws.front(), 0);
    EXPECT_LE(draws.back(), 1);
  }
}

TEST(Beta, OfExtremeShapesStaysInBounds) {
  for (const double a : {1e-3, 1.0, 1e6})
    for (const double b : {1e-3, 1.0, 1e6})
      for (uint64_t i = 0; i < 300; ++i) {
        SampleRng rng(5, 1, i, 0);
        const double draw = BetaDraw(a, b, &rng);
        EXPECT_TRUE(draw >= 0 && draw <= 1) << a << " " << b << " " << draw;
      }
}

TEST(CutMixBox, IsTorchvisions) {
  // int(0.5 * sqrt(1 - lam) * side) on each side of the centre, cut off at
  // edges.
  Rect box =
      CutMixBox(100, 60, {.lam = 0.75, .center_y = 0.5, .center_x = 0.5});
  EXPECT_EQ(box.y, 25);
  EXPECT_EQ(box.x, 15);
  EXPECT_EQ(box.height, 50);
  EXPECT_EQ(box.width, 30);
  EXPECT_FLOAT_EQ(CutMixShare(100, 60, box), 0.75f);
  box = CutMixBox(100, 60, {.lam = 0.75, .center_y = 0, .center_x = 0.999});
  EXPECT_EQ(box.y, 0);
  EXPECT_EQ(box.height, 25);
  EXPECT_EQ(box.x, 59 - 15);
  EXPECT_EQ(box.width, 16);
  EXPECT_FLOAT_EQ(CutMixShare(100, 60, box), 1 - 25 * 16 / 6000.0f);
}

TEST(CutMixBox, OfAllAndOfNothing) {
  const Rect none = CutMixBox(7, 5, {.lam = 1});
  EXPECT_EQ(none.height * none.width, 0);
  EXPECT_EQ(CutMixShare(7, 5, none), 1);
  const Rect all = CutMixBox(8, 4, {.lam = 0});
  EXPECT_EQ(all.y, 0);
  EXPECT_EQ(all.height, 8);
  EXPECT_EQ(all.width, 4);
  EXPECT_EQ(CutMixShare(8, 4, all), 0);
  // A centre on the far edge is the last pixel.
  const Rect edge = CutMixBox(8, 4, {.lam = 0, .center_y = 1, .center_x = 1});
  EXPECT_EQ(edge.y, 3);
  EXPECT_EQ(edge.height, 5);
  // An image of one pixel has no smaller box.
  EXPECT_EQ(CutMixShare(1, 1, CutMixBox(1, 1, {.lam = 0})), 1);
}

// Runs the operators on a pair of images; `lam` and the centre are per sample.
absl::StatusOr<Array> Mixed(const char* op, const Array& image,
                            const Array& other, float lam) {
  Graph graph;
  graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}},
                 {op,
                  {{0, 0}},
                  {{"lam", FieldOf(2)},
                   {"center_y", Value(0.25)},
                   {"center_x", Value(0.75)}}}};
  if (op == std::string("cutmix_paste"))
    graph.nodes[1].inputs.push_back({0, 1});
  graph.outputs = {{"result", {1, 0}}};
  const Array lams = Array::Scalar(lam);
  const ValueType types[] = {image.Type(), other.Type(), lams.Type()};
  const StoredField fields[] = {
      {image.bytes, image.open ? image.shape : Shape{}},
      {other.bytes, other.open ? other.shape : Shape{}},
      {lams.bytes, {}}};
  ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph, types));
  ASSIGN_OR_RETURN(const auto program, RowProgram::Compile(checked));
  const Field& field = checked.schema.fields[0];
  Array result{field.dtype, field.shape,
               std::vector<std::byte>(field.row_bytes)};
  const std::span<std::byte> output(result.bytes);
  Scratch scratch({});
  RETURN_IF_ERROR(program->Run({.seed = 1, .fields = fields}, scratch,
                               std::span(&output, 1)));
  return result;
}

TEST(CutMix, PutsTheBoxOfTheOtherImage) {
  const Array image = Array::Of<float>({4, 8, 1}, std::vector<float>(32, 1));
  const Array other = Array::Of<float>({4, 8, 1}, std::vector<float>(32, 2));
  const auto mixed = Mixed("cutmix_paste", image, other, 0.75);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  // Centre (1, 6), halves 1 and 2.
  std::vector<float> want(32, 1);
  for (const int y : {0, 1})
    for (const int x : {4, 5, 6, 7}) want[y * 8 + x] = 2;
  EXPECT_EQ(mixed->Values<float>(), want);
  const auto share = Mixed("cutmix_share", image, other, 0.75);
  ASSERT_TRUE(share.ok()) << share.status();
  EXPECT_EQ(share->Values<float>(), std::vector<float>{0.75f});
}

TEST(CutMix, RefusesImagesOfTwoSizes) {
  const Array image = Array::Of<uint8_t>({4, 8, 3}, std::vector<uint8_t>(96));
  const Array wide = Array::Of<uint8_t>({4, 9, 3}, std::vector<uint8_t>(108));
  EXPECT_THAT(Message(Mixed("cutmix_paste", image, wide, 0.5).status()),
              HasSubstr("want images of one type"));
  Array open = wide;
  open.open = true;
  const absl::Status status = Mixed("cutmix_paste", image, open, 0.5).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status),
              HasSubstr("cutmix_paste: images of 4 × 8 × 3 and 4 × 9"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Mixed("cutmix_paste", image, image, 1.5).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Mixed("cutmix_paste", image, image, NAN).status()));
}

TEST(CutMix, RefusesImagesWithoutPixels) {
  for (const Shape& shape : {Shape{0, 8, 3}, Shape{8, 0, 3}}) {
    const Array none = Array::Of<uint8_t>(shape, {}).Open();
    const Array share = Array::Scalar(0.5);
    const ValueType types[] = {none.Type(), share.Type()};
    const StoredField fields[] = {{none.bytes, none.shape}, {share.bytes, {}}};
    Graph graph;
    graph.nodes = {{"readers.numpy", {}, {{"path", Text("/none.npy")}}},
                   {"cutmix_paste", {{0, 0}, {0, 0}}, {{"lam", NodeRef{0, 1}}}},
                   {"length", {{1, 0}}, {}},
                   {"cutmix_share", {{0, 0}}, {{"lam", NodeRef{0, 1}}}}};
    for (const uint32_t output : {2, 3}) {
      graph.outputs = {{"result", {output, 0}}};
      const auto checked = Check(graph, types);
      ASSERT_TRUE(checked.ok()) << Message(checked.status());
      const auto program = RowProgram::Compile(*checked);
      ASSERT_TRUE(program.ok()) << Message(program.status());
      std::vector<std::byte> bytes(4);
      const std::span<std::byte> memory(bytes);
      Scratch scratch({});
      const absl::Status status = (*program)->Run(
          {.seed = 1, .fields = fields}, scratch, std::span(&memory, 1));
      EXPECT_THAT(Message(status), HasSubstr("has no pixel"));
      EXPECT_TRUE(absl::IsInvalidArgument(status));
    }
  }
}

}  // namespace
}  // namespace leat::worker::testing
