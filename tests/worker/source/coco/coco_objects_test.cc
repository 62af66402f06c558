// SPDX-License-Identifier: Apache-2.0
//
// The index says how many objects there are in an image, and how many bytes it
// has if it is an output.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/coco/coco.h"

namespace leat::worker {
namespace {

TEST(CocoObjects, AreThoseThatTheReaderGives) {
  TempDir dir;
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"})
    dir.Write(fmt::format("photos/{}", name), "x");
  const std::string annotations = dir.Write("all.json", R"({
    "images": [{"id": 1, "file_name": "a.jpg", "width": 9, "height": 9},
               {"id": 2, "file_name": "b.jpg", "width": 9, "height": 9},
               {"id": 3, "file_name": "c.jpg", "width": 9, "height": 9}],
    "categories": [{"id": 5, "name": "cat"}],
    "annotations": [
      {"id": 1, "image_id": 1, "category_id": 5, "bbox": [0, 0, 4, 4]},
      {"id": 2, "image_id": 1, "category_id": 5, "bbox": [0, 0, 4, 4],
       "iscrowd": 1},
      {"id": 3, "image_id": 3, "category_id": 5, "bbox": [0, 0, 4, 4]}]})");
  std::optional<uint64_t> bytes;  // of the first image
  const auto counts = [&](std::map<std::string, Value> args) {
    args["annotations"] = annotations;
    args["root"] = dir.path() + "/photos";
    const Node reader{
        .op = "readers.coco", .inputs = {}, .args = std::move(args)};
    const auto index = BuildIndex(reader, {});
    EXPECT_TRUE(index.ok()) << index.status();
    const auto source = OpenSource(reader, index->blob, {});
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<int64_t> counts;
    for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
      counts.push_back(*(*source)->IndexedColumn("objects", i));
    bytes = (*source)->Locate(0)->bytes;
    return counts;
  };
  const Value just_ids = std::vector<std::string>{"image_id"};
  EXPECT_EQ(counts({}), (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(bytes, 1u);
  EXPECT_EQ(counts({{"outputs", just_ids}, {"include_iscrowd", false}}),
            (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(bytes, std::nullopt) << "no file was looked at";
}

}  // namespace
}  // namespace leat::worker
