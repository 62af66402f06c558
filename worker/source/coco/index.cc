// SPDX-License-Identifier: Apache-2.0
//
// Resolves the references of annotations, and examines the photos.
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/coco/coco.h"
#include "worker/source/coco/mask.h"
#include "worker/source/coco/table.h"
#include "worker/source/content_hash.h"
#include "worker/source/each_file.h"
#include "worker/source/index_blob.h"
#include "worker/source/loader_args.h"
#include "worker/source/record_file.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using Texts = std::vector<std::string>;

constexpr std::pair<std::string_view, CocoOutput> kOutputs[] = {
    {"image", CocoOutput::kImage},       {"boxes", CocoOutput::kBoxes},
    {"labels", CocoOutput::kLabels},     {"image_id", CocoOutput::kImageId},
    {"polygons", CocoOutput::kPolygons}, {"vertices", CocoOutput::kVertices},
    {"mask", CocoOutput::kMask},
};

template <class T>
absl::StatusOr<T> ArgOr(const Node& reader, const char* name, T fallback) {
  const auto it = reader.args.find(name);
  if (it == reader.args.end()) return fallback;
  if (const T* const value = std::get_if<T>(&it->second)) return *value;
  return InvalidArgument("{}: {}: a value of another type", reader.op, name);
}

// A sample: an image, and its objects (in CocoFile).
struct Sample {
  const CocoImage* image = nullptr;
  std::vector<const CocoObject*> objects;
};

// Looks up values by id, and detects duplicate ids.
template <class T>
class ById {
 public:
  absl::Status Fill(const char* what, const std::vector<T>& values,
                    int64_t (*id_of)(const T&)) {
    id_of_ = id_of;
    for (const T& value : values) by_id_.push_back(&value);
    std::stable_sort(by_id_.begin(), by_id_.end(),
                     [&](auto* a, auto* b) { return id_of(*a) < id_of(*b); });
    const auto twice = std::adjacent_find(
        by_id_.begin(), by_id_.end(),
        [&](auto* a, auto* b) { return id_of(*a) == id_of(*b); });
    if (twice == by_id_.end()) return absl::OkStatus();
    return DataLoss("{} {}: there are two of this id", what, id_of(**twice));
  }
  // Returns the position of `id` in the order of ids.
  std::optional<size_t> PlaceOf(int64_t id) const {
    const auto at = std::lower_bound(
        by_id_.begin(), by_id_.end(), id,
        [&](auto* value, int64_t wanted) { return id_of_(*value) < wanted; });
    if (at == by_id_.end() || id_of_(**at) != id) return std::nullopt;
    return static_cast<size_t>(at - by_id_.begin());
  }
  const T* operator[](size_t place) const { return by_id_[place]; }
  size_t size() const { return by_id_.size(); }

 private:
  std::vector<const T*> by_id_;
  int64_t (*id_of_)(const T&) = nullptr;
};

int64_t IdOfImage(const CocoImage& image) { return image.id; }
int64_t IdOfObject(const CocoObject* const& object) { return object->id; }
int64_t IdOfCategory(const int64_t& id) { return id; }

class Resolver {
 public:
  Resolver(const CocoOptions& options, const CocoFile& file)
      : options_(options), file_(file) {}

  absl::StatusOr<std::vector<Sample>> Samples() {
    RETURN_IF_ERROR(images_.Fill("image", file_.images, IdOfImage));
    RETURN_IF_ERROR(
        categories_.Fill("category", file_.categories, IdOfCategory));
    RETURN_IF_ERROR(CheckObjectIds());
    if (!file_.has_categories && !options_.avoid_class_remapping &&
        !file_.objects.empty())
      return DataLoss("it has no list \"categories\"");
    std::vector<Sample> by_id(images_.size());
    for (size_t i = 0; i < by_id.size(); ++i) by_id[i].image = images_[i];
    for (const CocoObject& object : file_.objects) {
      const absl::Status status = AddTo(object, &by_id);
      if (!status.ok())
        return Annotate(
            status, object.has_id ? fmt::format("annotation {}", object.id)
                                  : fmt::format("annotations[{}]", object.id));
    }
    return Chosen(std::move(by_id));
  }

  // REQUIRES: an object of a sample.
  int32_t LabelOf(const CocoObject& object) const {
    if (options_.avoid_class_remapping)
      return static_cast<int32_t>(object.category_id);
    return label_of_.at(object.category_id);
  }

 private:
  absl::Status CheckObjectIds() {
    std::vector<const CocoObject*> with_ids;
    for (const CocoObject& object : file_.objects)
      if (object.has_id) with_ids.push_back(&object);
    for (size_t i = 0; i < file_.categories.size(); ++i)
      label_of_[file_.categories[i]] = static_cast<int32_t>(i + 1);
    return ById<const CocoObject*>().Fill("annotation", with_ids, IdOfObject);
  }

  absl::Status AddTo(const CocoObject& object, std::vector<Sample>* by_id) {
    const std::optional<size_t> place = images_.PlaceOf(object.image_id);
    if (!place)
      return DataLoss("image_id: {}, want the id of one of the {} images",
                      object.image_id, file_.images.size());
    if (file_.has_categories && !categories_.PlaceOf(object.category_id))
      return DataLoss(
          "category_id: {}, want the id of one of the {} categories",
          object.category_id, file_.categories.size());
    if (object.category_id < std::numeric_limits<int32_t>::min() ||
        object.category_id > std::numeric_limits<int32_t>::max())
      return DataLoss("category_id: {}, want an int32", object.category_id);
    if (object.crowd && !options_.include_iscrowd) return absl::OkStatus();
    if (!(object.box[2] >= options_.size_threshold &&
          object.box[3] >= options_.size_threshold))
      return absl::OkStatus();
    Sample& sample = (*by_id)[*place];
    if (options_.Wants(CocoOutput::kMask))
      RETURN_IF_ERROR(CheckMask(object, *sample.image));
    sample.objects.push_back(&object);
    return absl::OkStatus();
  }

  absl::Status CheckMask(const CocoObject& object, const CocoImage& image) {
    if (object.num_runs > 0 &&
        (object.run_height != image.height || object.run_width != image.width))
      return DataLoss(
          "segmentation: size: [{}, {}], want the image's height and width, "
          "[{}, {}]",
          object.run_height, object.run_width, image.height, image.width);
    uint64_t vertex = 2 * object.first_vertex;
    for (uint64_t i = 0; i < object.num_polygons; ++i) {
      const uint64_t numbers =
          2 * uint64_t{file_.polygons[object.first_polygon + i]};
      RETURN_IF_ERROR(Annotate(
          CheckCocoOutline(std::span(file_.vertices).subspan(vertex, numbers),
                           image.height, image.width),
          "segmentation"));
      vertex += numbers;
    }
    return absl::OkStatus();
  }

  // Returns all samples in the order of ids, or those that are requested.
  absl::StatusOr<std::vector<Sample>> Chosen(std::vector<Sample> by_id) {
    std::vector<Sample> chosen;
    if (options_.images.empty()) {
      chosen = std::move(by_id);
    } else {
      std::unordered_map<std::string_view, const Sample*> by_name;
      for (const Sample& sample : by_id)
        if (!by_name.emplace(sample.image->file_name, &sample).second)
          by_name[sample.image->file_name] = nullptr;
      for (const std::string& name : options_.images) {
        const auto it = by_name.find(name);
        if (it == by_name.end())
          return NotFound("it has no image \"{}\"", name);
        if (it->second == nullptr)
          return DataLoss("it has several images \"{}\"", name);
        chosen.push_back(*it->second);
      }
    }
    if (options_.skip_empty)
      std::erase_if(chosen, [](const Sample& s) { return s.objects.empty(); });
    if (!options_.WantsSize()) return chosen;
    for (const Sample& sample : chosen)
      if (sample.image->height == 0 || sample.image->width == 0)
        return DataLoss("image {}: it has no height and width",
                        sample.image->id);
    return chosen;
  }

  const CocoOptions& options_;
  const CocoFile& file_;
  ById<CocoImage> images_;
  ById<int64_t> categories_;
  std::unordered_map<int64_t, int32_t> label_of_;
};

void AddObject(const CocoFile& file, const CocoObject& object,
               const CocoOptions& options, stored::v1::CocoImages* part) {
  for (const float number : object.box) part->add_boxes(number);
  if (options.WantsPolygons()) {
    part->add_polygons(static_cast<uint32_t>(object.num_polygons));
    for (uint64_t i = 0; i < object.num_polygons; ++i)
      part->add_vertices(file.polygons[object.first_polygon + i]);
    const float* const first = file.vertices.data() + 2 * object.first_vertex;
    part->mutable_coordinates()->Add(first, first + 2 * object.num_vertices);
  }
  if (options.Wants(CocoOutput::kMask)) {
    part->add_runs(static_cast<uint32_t>(object.num_runs));
    const uint32_t* const first = file.runs.data() + object.first_run;
    part->mutable_run_lengths()->Add(first, first + object.num_runs);
  }
}

absl::StatusOr<std::vector<StoredObject>> LookAtFiles(
    const std::vector<Sample>& samples, const CocoOptions& options,
    const SourceLimits& limits) {
  std::vector<StoredObject> found(samples.size());
  if (!options.Wants(CocoOutput::kImage)) return found;
  const Storage& storage = StorageOf(limits);
  const std::string root = CocoRoot(options);
  const auto look = [&](size_t i) -> absl::Status {
    const std::string& name = samples[i].image->file_name;
    auto object = storage.Stat(root.empty() ? name : JoinUri(root, name));
    if (!object.ok())
      return Annotate(object.status(),
                      fmt::format("image {}", samples[i].image->id));
    found[i] = *std::move(object);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachIndex(samples.size(), limits.listing_threads,
                               limits.cancelled, look));
  return found;
}

absl::Status FillIndex(const Node& reader, const CocoOptions& options,
                       const CocoFile& file, const SourceLimits& limits,
                       BuiltIndex* index) {
  Resolver resolver(options, file);
  ASSIGN_OR_RETURN(const std::vector<Sample> samples, resolver.Samples());
  ASSIGN_OR_RETURN(const std::vector<StoredObject> found,
                   LookAtFiles(samples, options, limits));
  BlobWriter blob(limits);
  stored::v1::CocoHead head;
  head.set_reader(CanonicalText(reader));
  RETURN_IF_ERROR(blob.Add(head));
  CocoTable table(CocoRoot(options));
  stored::v1::CocoImages part;
  for (size_t i = 0; i < samples.size(); ++i) {
    const CocoImage& image = *samples[i].image;
    stored::v1::IndexedFile& stored = *part.add_files();
    stored.set_name(image.file_name);
    stored.set_bytes(found[i].size);
    stored.set_identity(found[i].identity);
    part.add_ids(image.id);
    if (options.WantsSize()) {
      part.add_heights(image.height);
      part.add_widths(image.width);
    }
    part.add_objects(static_cast<uint32_t>(samples[i].objects.size()));
    for (const CocoObject* object : samples[i].objects) {
      part.add_labels(resolver.LabelOf(*object));
      AddObject(file, *object, options, &part);
    }
    if (static_cast<size_t>(part.files_size()) < kFilesAPart &&
        i + 1 < samples.size())
      continue;
    RETURN_IF_ERROR(blob.Add(part));
    RETURN_IF_ERROR(table.Add(part, options, limits.max_files));
    part.Clear();
  }
  ASSIGN_OR_RETURN(index->blob, blob.Finish());
  index->bytes = table.files().total_bytes();
  index->fingerprint = table.Fingerprint();
  RETURN_IF_ERROR(
      FinishIndex(options.annotations, samples.size(), limits, index));
  ContentHash content("coco", {});
  for (size_t i = 0; i < samples.size(); ++i)
    content.AddFile(samples[i].image->file_name, found[i].size);
  content.AddDigest(table.Annotations()).Finish(index);
  return absl::OkStatus();
}

}  // namespace

bool CocoOptions::Wants(CocoOutput output) const {
  return std::find(outputs.begin(), outputs.end(), output) != outputs.end();
}

absl::StatusOr<CocoOptions> CocoOptionsOf(const Node& reader) {
  CocoOptions options;
  ASSIGN_OR_RETURN(options.annotations, TextArg(reader, "annotations"));
  ASSIGN_OR_RETURN(options.root, TextArg(reader, "root"));
  ASSIGN_OR_RETURN(options.images, TextsArg(reader, "images"));
  ASSIGN_OR_RETURN(Texts outputs, TextsArg(reader, "outputs"));
  ASSIGN_OR_RETURN(options.ltrb, ArgOr(reader, "ltrb", false));
  ASSIGN_OR_RETURN(options.ratio, ArgOr(reader, "ratio", false));
  ASSIGN_OR_RETURN(options.skip_empty, ArgOr(reader, "skip_empty", false));
  ASSIGN_OR_RETURN(options.include_iscrowd,
                   ArgOr(reader, "include_iscrowd", true));
  ASSIGN_OR_RETURN(options.avoid_class_remapping,
                   ArgOr(reader, "avoid_class_remapping", false));
  ASSIGN_OR_RETURN(const double threshold,
                   ArgOr(reader, "size_threshold", 0.1));
  options.size_threshold = static_cast<float>(threshold);
  if (options.annotations.empty())
    return InvalidArgument("{}: annotations is empty", reader.op);
  if (outputs.empty()) outputs = {"image", "boxes", "labels"};
  for (const std::string& name : outputs) {
    const auto* const known =
        std::find_if(std::begin(kOutputs), std::end(kOutputs),
                     [&](const auto& each) { return each.first == name; });
    if (known == std::end(kOutputs))
      return InvalidArgument("{}: outputs: no \"{}\"", reader.op, name);
    if (options.Wants(known->second))
      return InvalidArgument("{}: outputs: \"{}\" twice", reader.op, name);
    options.outputs.push_back(known->second);
  }
  return options;
}

std::string CocoRoot(const CocoOptions& options) {
  if (!options.root.empty()) return options.root;
  const std::string& file = options.annotations;
  return file.substr(0, file.rfind('/') + 1);  // npos + 1 is 0
}

absl::StatusOr<BuiltIndex> BuildCocoIndex(const Node& reader,
                                          const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const CocoOptions options, CocoOptionsOf(reader));
  ASSIGN_OR_RETURN(const OpenedFile file,
                   StorageOf(limits).Open(options.annotations));
  RETURN_IF_ERROR(NoteText(limits, options.annotations, *file));
  absl::StatusOr<CocoFile> coco = ParseCoco(*file, options, limits);
  if (!coco.ok()) return Annotate(coco.status(), file->name());
  BuiltIndex index;
  RETURN_IF_ERROR(Annotate(FillIndex(reader, options, *coco, limits, &index),
                           file->name()));
  return index;
}

}  // namespace leat::worker
