// SPDX-License-Identifier: Apache-2.0
#include "worker/source/coco/records.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/coco/mask.h"
#include "worker/source/file_set.h"

namespace leat::worker {
namespace {

using Place = CocoPlace;

constexpr size_t kMaxName = 4096;
constexpr uint32_t kMaxSize = 1'000'000;  // of an image
constexpr int64_t kLeastId = std::numeric_limits<int64_t>::min();
constexpr int64_t kMostId = std::numeric_limits<int64_t>::max();

}  // namespace

std::string JsonScalar::Shown() const {
  if (whole) return fmt::format("{}", *whole);
  if (number) return fmt::format("{}", *number);
  if (flag) return *flag ? "true" : "false";
  if (text == nullptr) return "null";
  // A file that is not a dataset may be secret.
  return fmt::format("a text of {} bytes", text->size());
}

CocoRecords::CocoRecords(const CocoOptions& options, uint64_t max_bytes)
    : polygons_(options.WantsPolygons()), max_bytes_(max_bytes) {}

std::string CocoRecords::Context(Place place) const {
  const auto entry = [](const char* list, size_t i) {
    return fmt::format("{}[{}]: ", list, i);
  };
  switch (place) {
    case Place::kFile:
    case Place::kRoot:
      return "";
    case Place::kImages:
    case Place::kImage:
      if (id_) return fmt::format("image {}: ", *id_);
      return entry("images", file_.images.size());
    case Place::kCategories:
    case Place::kCategory:
      if (id_) return fmt::format("category {}: ", *id_);
      return entry("categories", file_.categories.size());
    default:
      if (id_) return fmt::format("annotation {}: ", *id_);
      return entry("annotations", file_.objects.size());
  }
}

bool CocoRecords::Bad(Place place, std::string what) {
  Wrong(std::move(what));
  if (place >= Place::kImage) return true;
  status_ = DataLoss("{}{}", Context(place), wrong_);
  return false;
}

void CocoRecords::Wrong(std::string what) {
  if (wrong_.empty()) wrong_ = std::move(what);
}

void CocoRecords::Want(std::string_view field, const JsonScalar& value,
                       std::string_view wanted) {
  Wrong(fmt::format("{}: {}, want {}", field, value.Shown(), wanted));
}

void CocoRecords::Whole(std::string_view field, const JsonScalar& value,
                        int64_t least, int64_t most,
                        std::optional<int64_t>* into) {
  if (value.whole && *value.whole >= least && *value.whole <= most)
    *into = value.whole;
  else
    Want(field, value, fmt::format("a whole number of {} to {}", least, most));
}

bool CocoRecords::Keep(Place place, uint64_t bytes) {
  const bool ends = place <= Place::kAnnotation;
  kept_ += bytes;
  if (ends && !wrong_.empty())
    status_ = DataLoss("{}{}", Context(place), wrong_);
  else if (kept_ > max_bytes_)
    status_ = ResourceExhausted("more than {} bytes are to be kept: the limit",
                                max_bytes_);
  return status_.ok();
}

bool CocoRecords::Add(Place place, std::string_view key,
                      const JsonScalar& value) {
  switch (place) {
    case Place::kImage:
      AddToImage(key, value);
      return true;
    case Place::kCategory:
      if (key == "id")
        Whole("id", value, std::numeric_limits<int32_t>::min(),
              std::numeric_limits<int32_t>::max(), &id_);
      return true;
    case Place::kAnnotation:
      AddToAnnotation(key, value);
      return true;
    case Place::kRuns:
      AddRuns(key, value);
      return status_.ok();
    default:
      AddNumber(place, value);
      return Keep(place, sizeof(float));
  }
}

void CocoRecords::AddToImage(std::string_view key, const JsonScalar& value) {
  if (key == "id") {
    Whole(key, value, kLeastId, kMostId, &id_);
  } else if (key == "height") {
    Whole(key, value, 1, kMaxSize, &height_);
  } else if (key == "width") {
    Whole(key, value, 1, kMaxSize, &width_);
  } else if (key == "file_name") {
    if (value.text != nullptr && value.text->size() <= kMaxName &&
        StaysBelow(*value.text))
      image_.file_name = *value.text;
    else
      Want(key, value,
           fmt::format("a path below root, of at most {} bytes", kMaxName));
  }
}

void CocoRecords::AddToAnnotation(std::string_view key,
                                  const JsonScalar& value) {
  if (key == "id") {
    Whole(key, value, kLeastId, kMostId, &id_);
  } else if (key == "image_id") {
    Whole(key, value, kLeastId, kMostId, &image_id_);
  } else if (key == "category_id") {
    Whole(key, value, kLeastId, kMostId, &category_id_);
  } else if (key == "iscrowd") {
    if (value.flag || value.whole == 0 || value.whole == 1)
      object_.crowd = value.flag.value_or(value.whole == 1);
    else
      Want(key, value, "0 or 1");
  } else if (key == "bbox" || (key == "segmentation" && polygons_)) {
    Want(key, value, "a list");
  }
}

void CocoRecords::AddRuns(std::string_view key, const JsonScalar& value) {
  if (key == "size") Want("segmentation: size", value, "a list");
  if (key != "counts") return;
  if (value.text == nullptr) {
    Want("segmentation: counts", value, "a text or a list");
    return;
  }
  const absl::StatusOr<std::vector<uint32_t>> runs = ParseCocoRuns(*value.text);
  if (std::exchange(has_counts_, true)) Wrong("segmentation: two counts");
  if (!runs.ok()) {
    Wrong(fmt::format("segmentation: counts: {}", Message(runs.status())));
    return;
  }
  file_.runs.insert(file_.runs.end(), runs->begin(), runs->end());
  Keep(Place::kRuns, runs->size() * sizeof(uint32_t));
}

void CocoRecords::AddNumber(Place place, const JsonScalar& value) {
  if (place == Place::kRunSize || place == Place::kRunCounts) {
    std::optional<int64_t> number;
    Whole("segmentation", value, 0, std::numeric_limits<uint32_t>::max(),
          &number);
    if (place == Place::kRunCounts)
      file_.runs.push_back(static_cast<uint32_t>(number.value_or(0)));
    else if (run_size_.size() < 3)
      run_size_.push_back(number.value_or(0));
    return;
  }
  const auto number = static_cast<float>(value.number.value_or(NAN));
  if (!std::isfinite(number)) {
    Want(place == Place::kBox ? "bbox" : "segmentation", value,
         "a number that float32 holds");
  } else if (place == Place::kBox) {
    if (box_numbers_ < 4) object_.box[box_numbers_] = number;
    ++box_numbers_;
  } else if (place == Place::kPolygon) {
    ++file_.polygons.back();
    file_.vertices.push_back(number);
  } else {
    Want("segmentation", value, "a list of numbers");
  }
}

bool CocoRecords::Begin(Place place) {
  switch (place) {
    case Place::kPolygons:
    case Place::kRuns:
      if (std::exchange(has_segmentation_, true)) Wrong("two segmentations");
      return true;
    case Place::kPolygon:
      file_.polygons.push_back(0);
      return Keep(place, sizeof(uint32_t));
    case Place::kRunCounts:
      if (std::exchange(has_counts_, true)) Wrong("segmentation: two counts");
      return true;
    default:
      return true;
  }
}

bool CocoRecords::End(Place place) {
  switch (place) {
    case Place::kImage:
      EndImage();
      break;
    case Place::kCategory:
      EndCategory();
      break;
    case Place::kAnnotation:
      EndAnnotation();
      break;
    case Place::kRuns:
      EndRuns();
      break;
    case Place::kPolygon:
      if (file_.polygons.back() % 2 != 0)
        Wrong(fmt::format("segmentation: a polygon of {} numbers, want pairs",
                          file_.polygons.back()));
      file_.polygons.back() /= 2;
      break;
    default:
      break;
  }
  return status_.ok();
}

void CocoRecords::EndImage() {
  if (!id_) Wrong("it has no id");
  if (image_.file_name.empty()) Wrong("it has no file_name");
  if (!Keep(Place::kImage, sizeof image_ + image_.file_name.size())) return;
  image_.id = *id_;
  image_.height = static_cast<uint32_t>(height_.value_or(0));
  image_.width = static_cast<uint32_t>(width_.value_or(0));
  file_.images.push_back(std::exchange(image_, {}));
  id_ = height_ = width_ = std::nullopt;
}

void CocoRecords::EndCategory() {
  if (!id_) Wrong("it has no id");
  if (!Keep(Place::kCategory, sizeof(int64_t))) return;
  file_.categories.push_back(*std::exchange(id_, std::nullopt));
}

void CocoRecords::EndRuns() {
  object_.num_runs = file_.runs.size() - object_.first_run;
  if (run_size_.size() != 2 || std::min(run_size_[0], run_size_[1]) < 1 ||
      std::max(run_size_[0], run_size_[1]) > kMaxSize) {
    Wrong(fmt::format(
        "segmentation: size: [{}], want a height and a width of 1 to {}",
        fmt::join(run_size_, ", "), kMaxSize));
    return;
  }
  object_.run_height = static_cast<uint32_t>(run_size_[0]);
  object_.run_width = static_cast<uint32_t>(run_size_[1]);
  uint64_t pixels = 0;
  for (uint64_t i = object_.first_run; i < file_.runs.size(); ++i)
    pixels += file_.runs[i];
  const uint64_t wanted = uint64_t{object_.run_height} * object_.run_width;
  if (pixels == wanted) return;
  Wrong(fmt::format(
      "segmentation: counts: they sum up to {}, want the {} pixels of {} x {}",
      pixels, wanted, run_size_[0], run_size_[1]));
}

void CocoRecords::EndAnnotation() {
  if (!image_id_) Wrong("it has no image_id");
  if (!category_id_) Wrong("it has no category_id");
  if (box_numbers_ != 4)
    Wrong(fmt::format("bbox: {} numbers, want 4: x, y, width, height",
                      box_numbers_));
  if (object_.box[2] < 0 || object_.box[3] < 0)
    Wrong(fmt::format("bbox: [{}], want a width and a height of 0 or more",
                      fmt::join(object_.box, ", ")));
  if (polygons_ && !has_segmentation_) Wrong("it has no segmentation");
  if (!Keep(Place::kAnnotation, sizeof object_)) return;
  object_.has_id = id_.has_value();
  object_.id = id_.value_or(static_cast<int64_t>(file_.objects.size()));
  object_.image_id = *image_id_;
  object_.category_id = *category_id_;
  object_.num_polygons = file_.polygons.size() - object_.first_polygon;
  object_.num_vertices = file_.vertices.size() / 2 - object_.first_vertex;
  file_.objects.push_back(object_);
  object_ = {};
  object_.first_polygon = file_.polygons.size();
  object_.first_vertex = file_.vertices.size() / 2;
  object_.first_run = file_.runs.size();
  id_ = image_id_ = category_id_ = std::nullopt;
  box_numbers_ = 0;
  has_segmentation_ = has_counts_ = false;
  run_size_.clear();
}

}  // namespace leat::worker
