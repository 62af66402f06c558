// SPDX-License-Identifier: Apache-2.0
//
// COCO's annotations of one existing photo: indexed with all outputs, and read.
// The first byte chooses the options.
#include <cstdint>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/coco/coco.h"

namespace leat::worker::coco_fuzz {
namespace {

constexpr int kPhoto = 199;  // a number that no other file has

void Run(std::string_view bytes) {
  if (bytes.empty()) return;
  static const NamedFile photo("photo", kPhoto);
  const auto options = static_cast<uint8_t>(bytes[0]);
  const NamedFile file(bytes.substr(1));
  std::vector<std::string> outputs = {"image",    "boxes",    "labels",
                                      "image_id", "polygons", "vertices"};
  if (options & 1) outputs.emplace_back("mask");
  const Node reader{.op = "readers.coco",
                    .inputs = {},
                    .args = {{"annotations", file.path()},
                             {"root", NamedFile::kFolder},
                             {"outputs", outputs},
                             {"ltrb", (options & 2) != 0},
                             {"ratio", (options & 4) != 0},
                             {"skip_empty", (options & 8) != 0},
                             {"include_iscrowd", (options & 16) != 0}}};
  SourceLimits limits = {.max_index_bytes = 1 << 20, .listing_threads = 1};
  limits.max_file_bytes = 4 << 20;  // of a mask
  const auto index = BuildCocoIndex(reader, limits);
  if (!index.ok()) return;
  const auto source = OpenCoco(reader, index->blob, limits);
  fuzz::Require(source.ok());
  for (uint64_t i = 0; i < 3 && i < (*source)->num_samples(); ++i)
    (void)(*source)->Read(i);
}

std::vector<std::string> Seeds() {
  const std::string json =
      R"({"info":{"a":[1,{"b":null}]},"images":[{"id":7,"file_name":"199",)"
      R"("height":9,"width":8}],"categories":[{"id":3,"name":"cat"}],)"
      R"("annotations":[{"id":1,"image_id":7,"category_id":3,"bbox":[1,2,3,4],)"
      R"("area":12,"iscrowd":0,"segmentation":[[1,1,5,1,5.5,6,1,6]]},)"
      R"({"id":2,"image_id":7,"category_id":3,"bbox":[0,0,8,9],"iscrowd":1,)"
      R"("segmentation":{"size":[9,8],"counts":[10,20,42]}},)"
      R"({"id":3,"image_id":7,"category_id":3,"bbox":[0,0,8,9],"iscrowd":1,)"
      R"("segmentation":{"size":[9,8],"counts":":d0Z1"}}]})";
  std::vector<std::string> seeds;
  for (const char options : {0x10, 0x11, 0x16, 0x19})
    seeds.push_back(options + json);
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "coco", .run = Run, .seeds = Seeds, .runs = 1000});

}  // namespace
}  // namespace leat::worker::coco_fuzz
