// SPDX-License-Identifier: Apache-2.0
//
// Files of weights.
#include <cmath>
#include <string>
#include <vector>

#include "core/plan/rounded_weight.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/arranged/npy_bytes.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/arranged/sample_groups.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SampleWeightsTest : public ::testing::Test {
 protected:
  template <class T>
  absl::StatusOr<std::vector<uint32_t>> Keys(const std::string& descr,
                                             const std::vector<T>& values,
                                             const std::string& shape = "") {
    dir_.Write(
        "w.npy",
        NpyBytes(descr,
                 shape.empty() ? fmt::format("({},)", values.size()) : shape,
                 values));
    return ReadWeights({.uri = "file://" + dir_.path() + "/w.npy"}, "cats",
                       samples_, {});
  }
  template <class T>
  std::vector<double> Read(const std::string& descr,
                           const std::vector<T>& values) {
    const auto keys = Keys(descr, values);
    EXPECT_TRUE(keys.ok()) << keys.status();
    std::vector<double> weights;
    for (const uint32_t key : keys.ok() ? *keys : std::vector<uint32_t>())
      weights.push_back(RoundedWeight::FromKey(key).value());
    return weights;
  }
  template <class T>
  std::string ErrorOf(const std::string& descr, const std::vector<T>& values,
                      const std::string& shape = "") {
    return std::string(Message(Keys(descr, values, shape).status()));
  }

  TempDir dir_;
  uint64_t samples_ = 3;
};

TEST_F(SampleWeightsTest, AreOfAnyTypeOfNumbers) {
  EXPECT_THAT(Read<double>("<f8", {0.5, 0, 3}), ElementsAre(0.5, 0, 3));
  EXPECT_THAT(Read<float>("<f4", {0.5, 0, 3}), ElementsAre(0.5, 0, 3));
  EXPECT_THAT(Read<uint16_t>("<f2", {0x3800, 0, 0x4200}),
              ElementsAre(0.5, 0, 3));
  EXPECT_THAT(Read<int64_t>("<i8", {1, 0, 3}), ElementsAre(1, 0, 3));
  EXPECT_THAT(Read<uint8_t>("|b1", {1, 0, 1}), ElementsAre(1, 0, 1));
}

TEST_F(SampleWeightsTest, AreReadInPieces) {
  samples_ = 300'001;
  std::vector<double> weights(samples_, 1);
  weights.back() = 2;
  EXPECT_EQ(Read<double>("<f8", weights), weights);
}

TEST_F(SampleWeightsTest, ThatDoNotFitAreAnError) {
  EXPECT_THAT(ErrorOf<double>("<f8", {1, 2}),
              HasSubstr("w.npy: weights has 2 numbers; want 3, one for each "
                        "sample of dataset \"cats\""));
  EXPECT_THAT(ErrorOf<double>("<f8", {1, 2, 3}, "(1, 3)"),
              HasSubstr("its shape is (1, 3): want one axis of numbers"));
  EXPECT_THAT(
      ErrorOf<double>("<f8", {1, -2, 3}),
      HasSubstr("w.npy: weights[1] = -2; want a number of 0 to 1e+100"));
  EXPECT_THAT(ErrorOf<double>("<f8", {1, 2, std::nan("")}),
              HasSubstr("w.npy: weights[2] = nan"));
  EXPECT_THAT(ErrorOf<double>("<c8", {1, 2, 3}),
              HasSubstr("its elements are complex64 ('<c8'): want bool"));
  samples_ = kMaxWeighedSamples + 1;
  EXPECT_EQ(ErrorOf<double>("<f8", {1}),
            "weights of the 67108865 samples of dataset \"cats\": want at most "
            "67108864");
}

}  // namespace
}  // namespace leat::worker
