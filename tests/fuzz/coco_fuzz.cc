// SPDX-License-Identifier: Apache-2.0
//
// COCO's JSON. The first byte has the arguments. What can be indexed can be
// opened, as the same dataset, and read.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/coco.h"

namespace leat::worker {
namespace {

using Texts = std::vector<std::string>;

void Run(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto flags = static_cast<uint8_t>(bytes[0]);
  const NamedFile file(bytes.substr(1));
  const auto flag = [&](int bit) { return (flags >> bit & 1) != 0; };
  Texts outputs = {"boxes", "labels", "image_id"};
  if (flag(0)) outputs.insert(outputs.end(), {"vertices", "polygons"});
  if (flag(1)) outputs.push_back("mask");
  const Node reader{.op = "readers.coco",
                    .inputs = {},
                    .args = {{"annotations", file.path()},
                             {"outputs", outputs},
                             {"ltrb", flag(2)},
                             {"ratio", flag(3)},
                             {"skip_empty", flag(4)},
                             {"include_iscrowd", flag(5)},
                             {"avoid_class_remapping", flag(6)}}};
  SourceLimits limits;
  limits.max_file_bytes = 1 << 20;
  limits.max_index_bytes = 1 << 20;
  const auto index = BuildCocoIndex(reader, limits);
  if (!index.ok()) return;
  const auto source = OpenCoco(reader, index->blob, limits);
  fuzz::Require(source.ok());
  fuzz::Require((*source)->fingerprint() == index->fingerprint);
  for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
    (void)(*source)->Read(i);
}

std::vector<std::string> Seeds() {
  const std::string json =
      R"({"images":[{"id":2,"file_name":"a","height":6,"width":4},)"
      R"({"id":1,"file_name":"b/c","height":9,"width":9}],"annotations":[)"
      R"({"id":1,"image_id":2,"category_id":8,"bbox":[1,2.5,2,3],"iscrowd":0,)"
      R"("segmentation":[[1,2,3,2,3,5,1,5],[0,0,4,6,4,0]]},{"id":2,)"
      R"("image_id":2,"category_id":7,"bbox":[0,0,4,1e0],"iscrowd":1,)"
      R"("segmentation":{"size":[6,4],"counts":[1,3,20]}},{"id":3,)"
      R"("image_id":1,"category_id":7,"bbox":[0,0,4,3],"segmentation":)"
      R"({"counts":":d0c1","size":[9,9]}}],"categories":[{"id":7},{"id":8}]})";
  return {std::string(1, '\x20') + json, std::string(1, '\x2f') + json,
          std::string(1, '\x22') + json, std::string(1, '\x51') + json};
}

const fuzz::Target kTarget(
    {.name = "coco", .run = Run, .seeds = Seeds, .runs = 2000});

}  // namespace
}  // namespace leat::worker
