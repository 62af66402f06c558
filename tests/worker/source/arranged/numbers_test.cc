// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/numbers.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "core/status.h"
#include "fmt/ranges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/arranged/npy_bytes.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

class NumbersTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSamples = 1000;

  template <class T>
  Numbers File(const std::string& descr, const std::vector<T>& values,
               const std::string& shape = "") {
    dir_.Write(
        "n.npy",
        NpyBytes(descr,
                 shape.empty() ? fmt::format("({},)", values.size()) : shape,
                 values));
    return {.uri = "file://" + dir_.path() + "/n.npy"};
  }
  std::vector<uint64_t> All(const Numbers& numbers) {
    std::vector<uint64_t> all;
    status_ =
        ForEachNumber(numbers, "cats", kSamples, {}, [&](uint64_t number) {
          all.push_back(number);
          return absl::OkStatus();
        });
    return all;
  }
  std::string ErrorOf(const Numbers& numbers) {
    All(numbers);
    EXPECT_TRUE(absl::IsInvalidArgument(status_)) << status_;
    return std::string(Message(status_));
  }

  TempDir dir_;
  absl::Status status_;
};

TEST_F(NumbersTest, AFileHasWholeNumbersOfAnyType) {
  EXPECT_THAT(All(File<int64_t>("<i8", {3, 999, 0})), ElementsAre(3, 999, 0));
  EXPECT_THAT(All(File<int32_t>("<i4", {3, 4})), ElementsAre(3, 4));
  EXPECT_THAT(All(File<uint8_t>("|u1", {255})), ElementsAre(255));
  EXPECT_THAT(All(File<uint16_t>("<u2", {999})), ElementsAre(999));
  EXPECT_THAT(All(File<uint32_t>("<u4", {999})), ElementsAre(999));
  EXPECT_THAT(All(File<int16_t>("<i2", {999})), ElementsAre(999));
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(NumbersTest, AFileIsReadInPieces) {
  std::vector<int64_t> numbers(400'000);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<int64_t>(numbers.size() - i);
  uint64_t sum = 0, count = 0;
  status_ = ForEachNumber(File<int64_t>("<i8", numbers), "cats", 1'000'000, {},
                          [&](uint64_t number) {
                            sum += number;
                            ++count;
                            return absl::OkStatus();
                          });
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(count, 400'000u);
  EXPECT_EQ(sum, 400'000ull * 400'001 / 2);
}

TEST_F(NumbersTest, WithoutNumbersAllSamplesAreWalked) {
  EXPECT_EQ(All({}).size(), kSamples);
}

TEST_F(NumbersTest, AStepMayBeBeyondTheLastNumber) {
  EXPECT_THAT(All({.begin = 5, .end = 10, .step = UINT64_MAX}), ElementsAre(5));
  EXPECT_THAT(All({.begin = 5, .end = 10, .step = 3}), ElementsAre(5, 8));
  EXPECT_TRUE(status_.ok()) << status_;
}

// Storage does not see it if the time of the file stays the same.
TEST_F(NumbersTest, AFileThatIsWrittenWhileItIsReadIsCheckedAgain) {
  std::vector<int64_t> numbers(200'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Numbers file = File<int64_t>("<i8", numbers);
  const std::filesystem::path path = dir_.path() + "/n.npy";
  const auto written = std::filesystem::last_write_time(path);
  const uint64_t samples = numbers.size();
  std::ranges::fill(numbers, static_cast<int64_t>(samples));
  uint64_t greatest = 0;
  status_ = ForEachNumber(file, "cats", samples, {}, [&](uint64_t number) {
    if (number == 0) {
      File<int64_t>("<i8", numbers);
      std::filesystem::last_write_time(path, written);
    }
    greatest = std::max(greatest, number);
    return absl::OkStatus();
  });
  EXPECT_THAT(Message(status_),
              EndsWith("n.npy: samples has 200000; want numbers below 200000, "
                       "the samples of dataset \"cats\""));
  EXPECT_LT(greatest, samples);
}

TEST_F(NumbersTest, AFileThatDoesNotFitIsAnError) {
  EXPECT_THAT(ErrorOf(File<int64_t>("<i8", {3, 1000})),
              EndsWith("n.npy: samples has 1000; want numbers below 1000, the "
                       "samples of dataset \"cats\""));
  EXPECT_THAT(ErrorOf(File<int64_t>("<i8", {3, -1})),
              EndsWith("n.npy: number 1 is -1: want 0 or more"));
  EXPECT_THAT(ErrorOf(File<int64_t>("<i8", {3, 4, 3})),
              EndsWith("n.npy: it has 3 twice: want each number once"));
  EXPECT_THAT(ErrorOf(File<int64_t>("<i8", {4, 4})),
              EndsWith("n.npy: it has 4 twice: want each number once"));
  EXPECT_THAT(ErrorOf(File<int64_t>("<i8", {3, 4}, "(1, 2)")),
              EndsWith("n.npy: its shape is (1, 2): want one axis of numbers"));
  EXPECT_THAT(ErrorOf(File<int64_t>("<i8", {}, "(0,)")),
              EndsWith("n.npy: its shape is (0): want one axis of numbers"));
}

TEST_F(NumbersTest, ElementsThatAreNoIntegersAreNamed) {
  const struct {
    const char *descr, *named;
  } cases[] = {{"<f4", "float32 ('<f4')"},
               {"<f8", "float64 ('<f8')"},
               {">f8", "float64 ('>f8')"},
               {"<f2", "float16 ('<f2')"},
               {"<c16", "complex128 ('<c16')"},
               {"<u8", "uint64 ('<u8')"},
               {"<U3", "texts ('<U3')"},
               {"|O", "Python objects ('|O')"},
               {"<M8[ns]", "datetime64 ('<M8[ns]')"},
               {"|V2", "'|V2'"},
               {"<i16", "int128 ('<i16')"},
               {"V2", "'V2'"}};
  for (const auto& [descr, named] : cases)
    EXPECT_THAT(ErrorOf(File<int64_t>(descr, {3})),
                EndsWith(fmt::format(
                    "n.npy: its elements are {}: want integers of int64 or a "
                    "smaller type: array.astype(\"int64\") makes them",
                    named)));
  EXPECT_THAT(ErrorOf(File<int64_t>(">i8", {3})),
              EndsWith("n.npy: its elements are int64 ('>i8'), big-endian: "
                       "save them as '<i8'"));
  EXPECT_THAT(ErrorOf(File<uint8_t>("|b1", {1, 0})),
              EndsWith("n.npy: its elements are bool ('|b1'): want integers; "
                       "numpy.flatnonzero makes them of a mask"));
  EXPECT_THAT(
      ErrorOf(File<int64_t>("[('a', '<i8'), ('b', '<f4')]", {3})),
      EndsWith("n.npy: its elements are records with fields, [('a', '<i8'), "
               "('b', '<f4')]: want integers"));
}

TEST_F(NumbersTest, AFileThatIsNotThereIsNotFound) {
  All({.uri = "file://" + dir_.path() + "/absent.npy"});
  EXPECT_TRUE(absl::IsNotFound(status_)) << status_;
}

}  // namespace
}  // namespace leat::worker
