// SPDX-License-Identifier: Apache-2.0
//
// A small image folder, and arrangements of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/pipeline/graph.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/arranged/arranged_source.h"

namespace leat::worker {

class ArrangedTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kFiles = 200;  // 000.jpg to 199.jpg, of class "k"

  ArrangedTest() {
    for (uint64_t i = 0; i < kFiles; ++i)
      dir_.Write(fmt::format("k/{:03}.jpg", i), std::string(i, 'x'));
    List();
  }

  void List() {
    reader_ = {.op = "readers.image_folder",
               .inputs = {},
               .args = {{"path", dir_.path()}, {"repeat", int64_t{1}}}};
    const auto index = BuildIndex(reader_, limits_);
    ASSERT_TRUE(index.ok()) << index.status();
    base_.name = index->name;
    base_.reader = CanonicalText(reader_);
    base_.fingerprint = index->fingerprint;
    base_.content = index->content;
    base_.shards = index->shards;
    base_.bytes = index->bytes;
    base_.classes = index->classes;
    auto source = OpenSource(reader_, index->blob, limits_);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
  }

  absl::StatusOr<BuiltIndex> Made(const Arrangement& arrangement) {
    return Arrange(arrangement,
                   {.base = base_, .reader = reader_, .source = *source_},
                   limits_);
  }
  std::string ErrorOf(const Arrangement& arrangement) {
    return std::string(Message(Made(arrangement).status()));
  }
  absl::StatusOr<std::unique_ptr<Source>> Opened(const BuiltIndex& index) {
    return OpenArranged(index.blob, {source_, base_.fingerprint},
                        index.fingerprint);
  }
  // Returns the base's samples that are arranged, by their records.
  std::vector<uint64_t> Chosen(const Arrangement& arrangement) {
    const auto index = Made(arrangement);
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return {};
    const auto source = Opened(*index);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    EXPECT_EQ((*source)->num_samples(), index->shards.num_samples());
    std::vector<uint64_t> records;
    for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
      records.push_back((*source)->RecordOf(i));
    return records;
  }

  TempDir dir_;
  SourceLimits limits_;
  Node reader_;
  DatasetInfo base_;
  std::shared_ptr<const Source> source_;
};

}  // namespace leat::worker
