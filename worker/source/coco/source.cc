// SPDX-License-Identifier: Apache-2.0
//
// A sample consists of the photo's bytes, followed by its data from the index.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "core/redaction.h"
#include "core/status.h"
#include "worker/source/coco/coco.h"
#include "worker/source/coco/mask.h"
#include "worker/source/coco/table.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/record_file.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kAlignment = 8;

struct Part {
  uint64_t offset = 0;  // in the sample's memory
  uint64_t bytes = 0;
  Shape shape;
};

class CocoSource final : public FormatSource {
 public:
  CocoSource(CocoOptions options, const SourceLimits& limits)
      : options_(std::move(options)),
        storage_(StorageOf(limits)),
        max_bytes_(limits.max_file_bytes),
        table_(CocoRoot(options_)) {}

  absl::Status Load(const Node& reader, std::string_view blob,
                    const SourceLimits& limits);

  uint64_t num_samples() const override { return table_.num_samples(); }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("{} (image {})", table_.files().Shown(sample),
                       table_.at(sample).id);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    RecordPlace place{.file = table_.files().Shown(sample),
                      .key = std::to_string(table_.at(sample).id)};
    // Photos that no output needs were not looked at.
    if (options_.Wants(CocoOutput::kImage))
      place.bytes = table_.files().size(sample);
    return place;
  }
  // Sizes are in the index if an output needs them.
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    const CocoTable::Sample at = table_.at(sample);
    if (column == "width" && at.width > 0) return at.width;
    if (column == "height" && at.height > 0) return at.height;
    if (column == "objects") return static_cast<int64_t>(at.labels.size());
    return FormatSource::IndexedColumn(column, sample);
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override;

 private:
  absl::StatusOr<Part> PartOf(uint64_t number, const CocoTable::Sample& sample,
                              CocoOutput output) const;
  absl::Status Write(uint64_t number, const CocoTable::Sample& sample,
                     CocoOutput output, std::span<std::byte> to) const;

  const CocoOptions options_;
  const Storage& storage_;
  const uint64_t max_bytes_;
  CocoTable table_;
};

absl::Status CocoSource::Load(const Node& reader, std::string_view blob,
                              const SourceLimits& limits) {
  BlobReader in(blob);
  stored::v1::CocoHead head;
  RETURN_IF_ERROR(NextHead(reader, &in, &head));
  stored::v1::CocoImages part;
  while (!in.done()) {
    RETURN_IF_ERROR(in.Next(&part));
    RETURN_IF_ERROR(table_.Add(part, options_, limits.max_files));
  }
  if (table_.num_samples() == 0) return DataLoss("it lists no images");
  table_.ShrinkToFit();
  fingerprint_ = table_.Fingerprint();
  return absl::OkStatus();
}

absl::StatusOr<Part> CocoSource::PartOf(uint64_t number,
                                        const CocoTable::Sample& sample,
                                        CocoOutput output) const {
  const auto size = [](const auto& values) {
    return static_cast<int64_t>(values.size());
  };
  Part part;
  switch (output) {
    case CocoOutput::kImage:
      part.bytes = table_.files().size(number);
      break;
    case CocoOutput::kBoxes:
      part.shape = {size(sample.boxes) / 4, 4};
      part.bytes = sample.boxes.size_bytes();
      break;
    case CocoOutput::kLabels:
      part.shape = {size(sample.labels)};
      part.bytes = sample.labels.size_bytes();
      break;
    case CocoOutput::kImageId:
      part.bytes = sizeof(int64_t);
      break;
    case CocoOutput::kPolygons:
      part.shape = {size(sample.polygons), 3};
      part.bytes = 3 * sample.polygons.size_bytes();
      break;
    case CocoOutput::kVertices:
      part.shape = {size(sample.vertices) / 2, 2};
      part.bytes = sample.vertices.size_bytes();
      break;
    case CocoOutput::kMask:
      part.shape = {sample.height, sample.width, 1};
      part.bytes = sizeof(int32_t) * uint64_t{sample.height} * sample.width;
      break;
  }
  if (part.bytes <= max_bytes_) return part;
  return ResourceExhausted("{} has {} bytes: the limit is {}", Describe(number),
                           part.bytes, max_bytes_);
}

void WriteBoxes(const CocoTable::Sample& sample, const CocoOptions& options,
                float* to) {
  const auto height = static_cast<float>(sample.height);
  const auto width = static_cast<float>(sample.width);
  for (size_t i = 0; i < sample.boxes.size(); i += 4, to += 4) {
    std::copy_n(sample.boxes.begin() + static_cast<ptrdiff_t>(i), 4, to);
    if (options.ltrb) {
      to[2] += to[0];
      to[3] += to[1];
    }
    if (!options.ratio) continue;
    to[0] /= width;
    to[1] /= height;
    to[2] /= width;
    to[3] /= height;
  }
}

// Writes for each polygon: object, first vertex, and one past the last vertex.
void WritePolygons(const CocoTable::Sample& sample, int32_t* to) {
  size_t polygon = 0;
  int32_t vertex = 0;
  for (size_t object = 0; object < sample.polygons_of.size(); ++object)
    for (uint32_t i = 0; i < sample.polygons_of[object]; ++i) {
      *to++ = static_cast<int32_t>(object);
      *to++ = vertex;
      vertex += static_cast<int32_t>(sample.polygons[polygon++]);
      *to++ = vertex;
    }
}

void WriteVertices(const CocoTable::Sample& sample, bool ratio, float* to) {
  for (size_t i = 0; i < sample.vertices.size(); ++i)
    to[i] = !ratio ? sample.vertices[i]
                   : sample.vertices[i] /
                         static_cast<float>(i % 2 == 0 ? sample.width
                                                       : sample.height);
}

// Draws labels in ascending order, so that the greatest is on top.
void WriteMask(const CocoTable::Sample& sample, std::span<int32_t> pixels) {
  struct Begin {
    size_t polygon = 0, vertex = 0, run = 0;
  };
  std::vector<Begin> begins;
  Begin begin;
  for (size_t object = 0; object < sample.labels.size(); ++object) {
    begins.push_back(begin);
    for (uint32_t i = 0; i < sample.polygons_of[object]; ++i)
      begin.vertex += size_t{2} * sample.polygons[begin.polygon++];
    begin.run += sample.runs_of[object];
  }
  std::vector<size_t> order(begins.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sample.labels[a] < sample.labels[b];
  });
  CocoMask mask(pixels, sample.height, sample.width);
  for (const size_t object : order) {
    Begin at = begins[object];
    for (uint32_t i = 0; i < sample.polygons_of[object]; ++i) {
      const size_t numbers = size_t{2} * sample.polygons[at.polygon++];
      mask.DrawPolygon(sample.vertices.subspan(at.vertex, numbers),
                       sample.labels[object]);
      at.vertex += numbers;
    }
    mask.DrawRuns(sample.runs.subspan(at.run, sample.runs_of[object]),
                  sample.labels[object]);
  }
}

absl::Status CocoSource::Write(uint64_t number, const CocoTable::Sample& sample,
                               CocoOutput output,
                               std::span<std::byte> to) const {
  const auto floats = reinterpret_cast<float*>(to.data());
  const auto ints = reinterpret_cast<int32_t*>(to.data());
  switch (output) {
    case CocoOutput::kImage: {
      ASSIGN_OR_RETURN(const OpenedFile file,
                       table_.files().Open(storage_, number));
      return file->ReadAt(0, to);
    }
    case CocoOutput::kBoxes:
      WriteBoxes(sample, options_, floats);
      break;
    case CocoOutput::kLabels:
      std::copy(sample.labels.begin(), sample.labels.end(), ints);
      break;
    case CocoOutput::kImageId:
      std::memcpy(to.data(), &sample.id, sizeof sample.id);
      break;
    case CocoOutput::kPolygons:
      WritePolygons(sample, ints);
      break;
    case CocoOutput::kVertices:
      WriteVertices(sample, options_.ratio, floats);
      break;
    case CocoOutput::kMask:
      WriteMask(sample, {ints, to.size() / sizeof(int32_t)});
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredSample> CocoSource::Read(uint64_t number) const {
  const CocoTable::Sample sample = table_.at(number);
  std::vector<Part> parts;
  uint64_t end = 0;
  for (const CocoOutput output : options_.outputs) {
    ASSIGN_OR_RETURN(Part part, PartOf(number, sample, output));
    part.offset = end;
    end = (end + part.bytes + kAlignment - 1) / kAlignment * kAlignment;
    parts.push_back(std::move(part));
  }
  SampleBytes bytes = NewSampleBytes(end);
  StoredSample stored;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::span<std::byte> to(bytes.get() + parts[i].offset,
                                  parts[i].bytes);
    RETURN_IF_ERROR(Write(number, sample, options_.outputs[i], to));
    stored.fields.push_back({to, std::move(parts[i].shape)});
  }
  stored.owner = std::move(bytes);
  return stored;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenCoco(const Node& reader,
                                                 std::string_view blob,
                                                 const SourceLimits& limits) {
  ASSIGN_OR_RETURN(CocoOptions options, CocoOptionsOf(reader));
  return Loaded(std::make_unique<CocoSource>(std::move(options), limits),
                reader.op, reader, blob, limits);
}

const SourceFormat kCocoFormat = {"readers.coco", BuildCocoIndex, OpenCoco};

}  // namespace leat::worker
