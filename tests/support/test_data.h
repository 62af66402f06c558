// SPDX-License-Identifier: Apache-2.0
//
// Finds pictures and labelled sets for tests. Two folders have the same parts:
// imagenet-sample/ (500 photos), dogs-cats/, mnist/, cifar10-bin/ and
// image-variants/. One is made by the build (target test_data; CMake passes
// its path in LEAT_MADE_DATA), always exists, and has image-damaged/ too. The
// other is real data that LEAT_TEST_DATA may name. test_data.py is the same in
// Python.
//
//   class PhotosTest : public ::testing::TestWithParam<TestData> {};
//   INSTANTIATE_TEST_SUITE_P(Data, PhotosTest, AllTestData(), TestDataName);
//   TEST_P(PhotosTest, AreRead) {
//     const auto photos = TestDataFiles(GetParam(), "imagenet-sample", 60);
//     if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(),
//     "imagenet-sample");
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace leat {

enum class TestData { kMade, kReal };

inline auto AllTestData() {
  return ::testing::Values(TestData::kMade, TestData::kReal);
}

inline std::string TestDataName(
    const ::testing::TestParamInfo<TestData>& info) {
  return info.param == TestData::kMade ? "Made" : "Real";
}

// Returns the data's folder `name`; empty if it does not exist, which fails the
// test if the build should have made it.
inline std::filesystem::path TestDataFolder(TestData data,
                                            const std::string& name) {
  const char* const variable =
      data == TestData::kMade ? "LEAT_MADE_DATA" : "LEAT_TEST_DATA";
  const char* const root = std::getenv(variable);
  const auto folder = std::filesystem::path(root != nullptr ? root : "") / name;
  std::error_code error;
  if (root != nullptr && *root != '\0' &&
      std::filesystem::is_directory(folder, error))
    return folder;
  if (data == TestData::kMade)
    ADD_FAILURE() << "no " << folder << ": build the target test_data, and let "
                  << "ctest set LEAT_MADE_DATA (BUILD/test-data)";
  return {};
}

// Returns why a test is skipped.
inline std::string NoTestData(TestData data, const std::string& name) {
  if (data == TestData::kMade) return "no " + name + " in LEAT_MADE_DATA";
  const char* const root = std::getenv("LEAT_TEST_DATA");
  return "no " + name + " of real data: LEAT_TEST_DATA " +
         (root == nullptr || *root == '\0'
              ? std::string("is not set")
              : "has no such folder (" + std::string(root) + ")");
}

// Returns real data if it has the folder, or else made data; for tests that
// need only one.
inline TestData BestTestData(const std::string& name) {
  return TestDataFolder(TestData::kReal, name).empty() ? TestData::kMade
                                                       : TestData::kReal;
}

// Returns the contents of the files under its folder `name`, sorted by their
// names; about `most` of them, spread over all. None: the folder does not
// exist.
inline std::vector<std::string> TestDataFiles(TestData data,
                                              const std::string& name,
                                              size_t most) {
  std::vector<std::string> names, contents;
  const std::filesystem::path root = TestDataFolder(data, name);
  if (root.empty()) return contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.is_regular_file()) names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  const size_t step = std::max<size_t>(1, names.size() / most);
  for (size_t i = 0; i < names.size(); i += step) {
    std::ifstream file(names[i], std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file),
                          std::istreambuf_iterator<char>());
  }
  return contents;
}

}  // namespace leat
