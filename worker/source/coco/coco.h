// SPDX-License-Identifier: Apache-2.0
//
// COCO's instance annotations ("instances_train2017.json"): photos in a folder,
// and one JSON object with the lists "images", "categories" and "annotations".
//
// The JSON is read in a window, and only the parts that samples need are kept;
// the others are skipped. Samples are the images in the order of their ids,
// their objects in the order of the file, as in DALI's reader.
//
// SourceLimits::max_index_bytes bounds the kept data, and also the file.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

enum class CocoOutput : uint8_t {
  kImage,
  kBoxes,
  kLabels,
  kImageId,
  kPolygons,
  kVertices,
  kMask
};

// The arguments of a reader node.
struct CocoOptions {
  std::string annotations;
  std::string root;
  std::vector<std::string> images;  // file names; empty: all
  std::vector<CocoOutput> outputs;  // distinct
  bool ltrb = false;
  bool ratio = false;
  bool skip_empty = false;
  bool include_iscrowd = true;
  bool avoid_class_remapping = false;
  float size_threshold = 0.1f;

  bool Wants(CocoOutput output) const;
  bool WantsPolygons() const {
    return Wants(CocoOutput::kPolygons) || Wants(CocoOutput::kVertices) ||
           Wants(CocoOutput::kMask);
  }
  // True if an image's height and width must be known.
  bool WantsSize() const { return ratio || Wants(CocoOutput::kMask); }
};

// kInvalidArgument: names the reader and the argument.
absl::StatusOr<CocoOptions> CocoOptionsOf(const Node& reader);

struct CocoImage {
  int64_t id = 0;
  std::string file_name;
  uint32_t height = 0;  // 0: not known
  uint32_t width = 0;
};

struct CocoObject {
  int64_t id = 0;  // its position in the file if it has none
  int64_t image_id = 0;
  int64_t category_id = 0;
  std::array<float, 4> box{};  // x, y, width, height
  bool crowd = false;
  bool has_id = false;
  // Indices into CocoFile.
  uint64_t first_polygon = 0, num_polygons = 0;
  uint64_t first_vertex = 0, num_vertices = 0;
  uint64_t first_run = 0, num_runs = 0;
  uint32_t run_height = 0, run_width = 0;  // of the runs' mask
};

// The file's lists, in its order, including objects below the size threshold
// and unwanted crowds.
struct CocoFile {
  std::vector<CocoImage> images;
  std::vector<int64_t> categories;  // ids
  bool has_categories = false;
  std::vector<CocoObject> objects;
  std::vector<uint32_t> polygons;  // number of vertices of each
  std::vector<float> vertices;     // x, y, …
  std::vector<uint32_t> runs;
};

// Checks each record by itself, not its references. kDataLoss: not such JSON;
// names the place (the byte, the record's id, the field), the value and what
// was expected. kResourceExhausted: the file or the kept data exceeds
// max_index_bytes. kCancelled. No message names the file.
absl::StatusOr<CocoFile> ParseCoco(const StorageFile& file,
                                   const CocoOptions& options,
                                   const SourceLimits& limits);

// Has the contract of SourceFormat::build. kDataLoss: as ParseCoco, duplicate
// ids, and annotations of missing images or categories. kNotFound: one of
// CocoOptions::images that the file does not have.
absl::StatusOr<BuiltIndex> BuildCocoIndex(const Node& reader,
                                          const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenCoco(const Node& reader,
                                                 std::string_view blob,
                                                 const SourceLimits& limits);

// Returns the folder or URI that file names are relative to.
std::string CocoRoot(const CocoOptions& options);

}  // namespace leat::worker
