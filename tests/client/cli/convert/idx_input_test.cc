// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/idx_input.h"

#include <filesystem>
#include <string>

#include "client/cli/convert/image_encoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/convert/converting.h"
#include "tests/support/test_data.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

TEST_F(Converting, IdxImagesKeepEveryPixel) {
  const std::string pixels = Pixels(20);
  std::string labels;
  for (int i = 0; i < 20; ++i) labels += static_cast<char>(i * 13);
  const std::string images =
      dir_.Write("train-images-idx3-ubyte", IdxOf(8, {20, 8, 16}, pixels));
  dir_.Write("train-labels-idx1-ubyte", IdxOf(8, {20}, labels));
  for (const char* form : {"caffe2", "tfrecord", "webdataset"}) {
    ASSERT_EQ(Run({images, Path(form), "--to", form}), "");
    const auto samples = form == std::string("caffe2") ? ReadCaffe2(Path(form))
                         : form == std::string("tfrecord")
                             ? ReadTfrecord(Path(form))
                             : ReadWebdataset(Path(form));
    ASSERT_EQ(samples.size(), 20u) << form;
    for (size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(Decoded(samples[i].image), pixels.substr(i * 128, 128));
      EXPECT_EQ(samples[i].label, static_cast<uint8_t>(labels[i]));
    }
  }
}

TEST_F(Converting, Int32LabelsAndJpegImagesCanBeHad) {
  const std::string images = dir_.Write("i", IdxOf(8, {2, 8, 16}, Pixels(2)));
  const std::string labels =
      dir_.Write("l", IdxOf(12, {2}, BigEndian(70'000) + BigEndian(-5u)));
  ASSERT_EQ(Run({images, Path("out"), "--to", "caffe2", "--labels", labels,
                 "--encoding", "jpeg", "--quality", "50"}),
            "");
  const auto samples = ReadCaffe2(Path("out"));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(ImageExtension(samples[0].image), "jpg");
  EXPECT_EQ(samples[0].label, 70'000);
  EXPECT_EQ(static_cast<int32_t>(samples[1].label), -5);
}

class ConvertingOf : public Converting,
                     public ::testing::WithParamInterface<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, ConvertingOf, AllTestData(), TestDataName);

// tests/e2e/readers_test.py takes the training part.
TEST_P(ConvertingOf, MnistKeepsThePixelsOfItsIdxFiles) {
  const fs::path mnist = TestDataFolder(GetParam(), "mnist");
  if (mnist.empty()) GTEST_SKIP() << NoTestData(GetParam(), "mnist");
  for (const char* part : {"images-idx3", "labels-idx1"}) {
    const std::string name = fmt::format("t10k-{}-ubyte.gz", part);
    fs::create_directories(Path("mnist"));
    fs::create_symlink(fs::absolute(mnist / name), Path("mnist/" + name));
  }
  ASSERT_EQ(Run({Path("mnist"), Path("db"), "--to", "caffe2"}), "");
  EXPECT_THAT(Names("db"), ElementsAre("testing"));
  const auto samples = ReadCaffe2(Path("db/testing"));
  const auto expected =
      Read({"readers.idx",
            {},
            {{"images", Path("mnist/t10k-images-idx3-ubyte.gz")},
             {"labels", Path("mnist/t10k-labels-idx1-ubyte.gz")}}});
  ASSERT_EQ(samples.size(), 10'000u);
  ASSERT_EQ(expected.size(), 10'000u);
  size_t different = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    different += Decoded(samples[i].image) != expected[i].image ||
                 samples[i].label != expected[i].label;
  }
  EXPECT_EQ(different, 0u);
}

}  // namespace
}  // namespace leat::cli
