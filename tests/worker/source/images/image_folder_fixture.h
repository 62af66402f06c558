// SPDX-License-Identifier: Apache-2.0
//
// ImageFolderTest lists and opens the images of a temporary directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/graph.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/source.h"

namespace leat::worker {

class ImageFolderTest : public ::testing::Test {
 protected:
  static Node Reader(const std::string& path, int64_t repeat = 1) {
    return {.op = "readers.image_folder",
            .inputs = {},
            .args = {{"path", path}, {"repeat", repeat}}};
  }
  static std::string Text(const StoredSample& sample) {
    const std::span<const std::byte> bytes = sample.fields[0].bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  BuiltIndex Index(int64_t repeat = 1) {
    absl::StatusOr<BuiltIndex> index =
        BuildIndex(Reader(dir_.path(), repeat), limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
  }
  std::unique_ptr<Source> Open(const BuiltIndex& index, int64_t repeat = 1) {
    auto source = OpenSource(Reader(dir_.path(), repeat), index.blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  absl::Status IndexError() {
    return BuildIndex(Reader(dir_.path()), limits_).status();
  }
  static std::vector<std::string> Paths(const Source& source) {
    std::vector<std::string> paths;
    for (uint64_t i = 0; i < source.num_samples(); ++i)
      paths.push_back(source.Describe(i));
    return paths;
  }
  std::string At(const std::string& name) { return dir_.path() + "/" + name; }

  TempDir dir_;
  SourceLimits limits_;
};

}  // namespace leat::worker
