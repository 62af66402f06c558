// SPDX-License-Identifier: Apache-2.0
#include "worker/source/coco/table.h"

#include <cmath>

#include "core/status.h"
#include "worker/source/coco/mask.h"

namespace leat::worker {
namespace {

using stored::v1::CocoImages;

template <class T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

template <class From, class T>
void Append(const From& values, std::vector<T>* to) {
  to->insert(to->end(), values.begin(), values.end());
}

// Returns the sum of `count` values from `first` on; missing values count as 0.
uint64_t SumOf(const google::protobuf::RepeatedField<uint32_t>& values,
               uint64_t first, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = first; i < first + count; ++i)
    if (i < static_cast<uint64_t>(values.size()))
      sum += values[static_cast<int>(i)];
  return sum;
}

bool IsFinite(const google::protobuf::RepeatedField<float>& values) {
  for (const float value : values)
    if (!std::isfinite(value)) return false;
  return true;
}

// Checks that the counts of a part match its values.
absl::Status CheckCounts(const CocoImages& part, const CocoOptions& options) {
  const auto size = [](const auto& list) {
    return static_cast<uint64_t>(list.size());
  };
  const auto sum = [&](const auto& counts) {
    return SumOf(counts, 0, size(counts));
  };
  const uint64_t images = size(part.files()), objects = size(part.labels());
  const bool sizes = options.WantsSize(), polygons = options.WantsPolygons();
  const bool runs = options.Wants(CocoOutput::kMask);
  const bool fits =
      size(part.ids()) == images && size(part.objects()) == images &&
      size(part.heights()) == (sizes ? images : 0) &&
      size(part.widths()) == (sizes ? images : 0) &&
      sum(part.objects()) == objects && size(part.boxes()) == 4 * objects &&
      size(part.polygons()) == (polygons ? objects : 0) &&
      sum(part.polygons()) == size(part.vertices()) &&
      2 * sum(part.vertices()) == size(part.coordinates()) &&
      size(part.runs()) == (runs ? objects : 0) &&
      sum(part.runs()) == size(part.run_lengths());
  if (!fits) return DataLoss("counts that are not those of the values");
  if (!IsFinite(part.boxes()) || !IsFinite(part.coordinates()))
    return DataLoss("a number that is not finite");
  return absl::OkStatus();
}

// Checks what only masks need.
absl::Status CheckDrawable(const CocoTable::Sample& sample) {
  size_t vertex = 0, run = 0;
  for (const uint32_t count : sample.polygons) {
    RETURN_IF_ERROR(CheckCocoOutline(sample.vertices.subspan(vertex, 2 * count),
                                     sample.height, sample.width));
    vertex += size_t{2} * count;
  }
  for (const uint32_t count : sample.runs_of) {
    uint64_t pixels = 0;
    for (const uint32_t length : sample.runs.subspan(run, count))
      pixels += length;
    if (count > 0 && pixels != uint64_t{sample.height} * sample.width)
      return DataLoss("runs of {} pixels in an image of {} x {}", pixels,
                      sample.width, sample.height);
    run += count;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CocoTable::Add(const CocoImages& part, const CocoOptions& options,
                            uint64_t max_samples) {
  RETURN_IF_ERROR(CheckCounts(part, options));
  if (samples_.size() + static_cast<uint64_t>(part.files_size()) > max_samples)
    return ResourceExhausted("more than {} images: the limit", max_samples);
  Entry end{.id = 0,
            .height = 0,
            .width = 0,
            .objects = labels_.size(),
            .polygons = polygons_.size(),
            .vertices = vertices_.size(),
            .runs = runs_.size()};
  Append(part.boxes(), &boxes_);
  Append(part.labels(), &labels_);
  Append(part.polygons(), &polygons_of_);
  Append(part.vertices(), &polygons_);
  Append(part.coordinates(), &vertices_);
  Append(part.runs(), &runs_of_);
  Append(part.run_lengths(), &runs_);
  uint64_t object = 0, polygon = 0;
  for (int i = 0; i < part.files_size(); ++i) {
    const stored::v1::IndexedFile& file = part.files(i);
    if (!StaysBelow(file.name()))
      return DataLoss("\"{}\" is outside the root", file.name().substr(0, 200));
    RETURN_IF_ERROR(files_.Add(file.name(), file.bytes(), file.identity()));
    const uint64_t objects = part.objects(i);
    const uint64_t polygons = SumOf(part.polygons(), object, objects);
    end.id = part.ids(i);
    end.height = options.WantsSize() ? part.heights(i) : 0;
    end.width = options.WantsSize() ? part.widths(i) : 0;
    if (options.WantsSize() && (end.height == 0 || end.width == 0))
      return DataLoss("image {} has no size", end.id);
    end.objects += objects;
    end.polygons += polygons;
    end.vertices += 2 * SumOf(part.vertices(), polygon, polygons);
    end.runs += SumOf(part.runs(), object, objects);
    object += objects;
    polygon += polygons;
    samples_.push_back(end);
    if (options.Wants(CocoOutput::kMask))
      RETURN_IF_ERROR(Annotate(CheckDrawable(at(samples_.size() - 1)),
                               fmt::format("image {}", end.id)));
  }
  return absl::OkStatus();
}

void CocoTable::ShrinkToFit() {
  files_.ShrinkToFit();
  samples_.shrink_to_fit();
  boxes_.shrink_to_fit();
  labels_.shrink_to_fit();
  polygons_of_.shrink_to_fit();
  polygons_.shrink_to_fit();
  vertices_.shrink_to_fit();
  runs_of_.shrink_to_fit();
  runs_.shrink_to_fit();
}

CocoTable::Sample CocoTable::at(uint64_t sample) const {
  const Entry& end = samples_[sample];
  const Entry begin = sample == 0 ? Entry() : samples_[sample - 1];
  const auto part = [](const auto& values, uint64_t from, uint64_t to) {
    return values.empty() ? std::span(values)
                          : std::span(values).subspan(from, to - from);
  };
  return {.id = end.id,
          .height = end.height,
          .width = end.width,
          .boxes = part(boxes_, 4 * begin.objects, 4 * end.objects),
          .labels = part(labels_, begin.objects, end.objects),
          .polygons = part(polygons_, begin.polygons, end.polygons),
          .polygons_of = part(polygons_of_, begin.objects, end.objects),
          .vertices = part(vertices_, begin.vertices, end.vertices),
          .runs_of = part(runs_of_, begin.objects, end.objects),
          .runs = part(runs_, begin.runs, end.runs)};
}

Digest CocoTable::Fingerprint() const {
  Sha256 hash;
  hash.UpdateField("leat.coco.1");
  files_.UpdateHash(&hash);
  HashAnnotations(&hash);
  return hash.Finish();
}

Digest CocoTable::Annotations() const {
  Sha256 hash;
  HashAnnotations(&hash);
  return hash.Finish();
}

void CocoTable::HashAnnotations(Sha256* hash) const {
  for (const Entry& entry : samples_)
    hash->UpdateU64(static_cast<uint64_t>(entry.id))
        .UpdateU64(entry.height)
        .UpdateU64(entry.width)
        .UpdateU64(entry.objects);
  hash->UpdateField(BytesOf(boxes_)).UpdateField(BytesOf(labels_));
  hash->UpdateField(BytesOf(polygons_of_)).UpdateField(BytesOf(polygons_));
  hash->UpdateField(BytesOf(vertices_));
  hash->UpdateField(BytesOf(runs_of_)).UpdateField(BytesOf(runs_));
}

}  // namespace leat::worker
