// SPDX-License-Identifier: Apache-2.0
//
// CocoRecords: the images, categories and annotations of a COCO file, assembled
// from the values that a parser finds (json.cc).
//
// An error in a record is reported at the record's end, when its id is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "worker/source/coco/coco.h"

namespace leat::worker {

// The parser's place in the file.
enum class CocoPlace : uint8_t {
  kFile,
  kRoot,
  kImages,
  kCategories,
  kAnnotations,
  // The following are in records.
  kImage,
  kCategory,
  kAnnotation,
  kRuns,
  // The following are in lists of records' numbers.
  kBox,
  kPolygons,
  kPolygon,
  kRunSize,
  kRunCounts,
};

// A value that is neither a list nor an object.
struct JsonScalar {
  std::optional<int64_t> whole;
  std::optional<double> number;  // also set for whole ones
  std::optional<bool> flag;
  const std::string* text = nullptr;

  std::string Shown() const;
};

// The members return false if the parser is to stop; status() has the reason.
class CocoRecords {
 public:
  CocoRecords(const CocoOptions& options, uint64_t max_bytes);

  // REQUIRES: a place in a record.
  bool Add(CocoPlace place, std::string_view key, const JsonScalar& value);
  bool Begin(CocoPlace place);
  bool End(CocoPlace place);
  // The annotation has a segmentation of a kind that no output needs.
  void PassSegmentation() { has_segmentation_ = true; }
  // Reports an error of the record at `place`, or outside of records.
  bool Bad(CocoPlace place, std::string what);

  // Returns "annotation 17: ", or "annotations[3]: " while its id is not known.
  std::string Context(CocoPlace place) const;
  const absl::Status& status() const { return status_; }
  CocoFile Take() { return std::move(file_); }

 private:
  void AddToImage(std::string_view key, const JsonScalar& value);
  void AddToAnnotation(std::string_view key, const JsonScalar& value);
  void AddNumber(CocoPlace place, const JsonScalar& value);
  void AddRuns(std::string_view key, const JsonScalar& value);
  void EndImage();
  void EndCategory();
  void EndAnnotation();
  void EndRuns();
  // Keeps only the first error of a record.
  void Wrong(std::string what);
  void Want(std::string_view field, const JsonScalar& value,
            std::string_view wanted);
  void Whole(std::string_view field, const JsonScalar& value, int64_t least,
             int64_t most, std::optional<int64_t>* into);
  // Returns false if the record was wrong, or exceeds what may be kept.
  bool Keep(CocoPlace place, uint64_t bytes);

  const bool polygons_;
  const uint64_t max_bytes_;
  uint64_t kept_ = 0;
  absl::Status status_;
  CocoFile file_;

  // The record that is being parsed.
  std::string wrong_;
  CocoImage image_;
  CocoObject object_;
  std::optional<int64_t> id_, image_id_, category_id_, height_, width_;
  size_t box_numbers_ = 0;
  bool has_segmentation_ = false, has_counts_ = false;
  std::vector<int64_t> run_size_;
};

}  // namespace leat::worker
