// SPDX-License-Identifier: Apache-2.0
//
// TfrecordTest: TFRecord files in their own directory, indexed and read.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/tfrecord/tfrecord.h"

namespace leat::worker {

using Texts = std::vector<std::string>;
using Code = absl::StatusCode;

inline std::string Text(const StoredField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()),
          field.bytes.size()};
}

template <class T>
std::vector<T> Numbers(const StoredField& field) {
  std::vector<T> numbers(field.bytes.size() / sizeof(T));
  if (!numbers.empty())
    std::memcpy(numbers.data(), field.bytes.data(), field.bytes.size());
  return numbers;
}

inline std::string Labelled(const std::string& image, int64_t label) {
  return TfrecordOf(ExampleOf(
      {{"image", BytesFeature({image})}, {"label", IntFeature({label})}}));
}

class TfrecordTest : public testing::Test {
 protected:
  Node Reader(Texts paths, Texts index = {}) const {
    return {.op = "readers.tfrecord",
            .inputs = {},
            .args = {{"paths", std::move(paths)},
                     {"features", features_},
                     {"types", types_},
                     {"index", std::move(index)}}};
  }
  absl::StatusOr<BuiltIndex> Index(const Node& reader) const {
    return BuildIndex(reader, limits_);
  }
  absl::Status IndexError(const Node& reader) const {
    return Index(reader).status();
  }
  std::unique_ptr<Source> Open(const Node& reader) const {
    const auto index = Index(reader);
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return nullptr;
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return nullptr;
    EXPECT_EQ((*source)->fingerprint(), index->fingerprint);
    EXPECT_EQ((*source)->num_samples(), index->shards.num_samples());
    return *std::move(source);
  }
  // Returns the error of reading the only record of a file of `bytes`.
  absl::Status ReadError(const std::string& bytes) {
    const auto source = Open(Reader({dir_.Write("one.tfrecord", bytes)}));
    return source == nullptr ? absl::OkStatus() : source->Read(0).status();
  }
  std::string At(const std::string& name) { return dir_.path() + "/" + name; }

  TempDir dir_;
  SourceLimits limits_;
  Texts features_ = {"image", "label"};
  Texts types_ = {"encoded", "int64"};
};

}  // namespace leat::worker
