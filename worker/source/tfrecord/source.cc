// SPDX-License-Identifier: Apache-2.0
//
// A record is read whole into its own memory, with room for a few numbers after
// it. Bytes and packed floats are returned in place; int64 values are varints
// and are written after the record, or, if they are many, to separate memory.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/pipeline/shape_inference.h"
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/packed/packed_source.h"
#include "worker/source/packed/record_table.h"
#include "worker/source/tfrecord/framing.h"
#include "worker/source/tfrecord/tf_example.h"
#include "worker/source/tfrecord/tfrecord.h"

namespace leat::worker {
namespace {

using Kind = FeatureValues::Kind;
using Memory = SampleBytes;

constexpr uint64_t kRoom = 64;  // after a record, for numbers

struct Place {
  size_t file = 0;
  uint64_t record = 0;  // in the file
  uint64_t offset = 0;
  uint32_t size = 0;
};

// The memory that a sample's fields refer to, including the record.
struct Numbers {
  Memory record;
  std::unique_ptr<std::byte[]> numbers;
};

class TfrecordSource final : public PackedSource {
 public:
  TfrecordSource(TfrecordOptions options, const SourceLimits& limits)
      : PackedSource(limits),
        options_(std::move(options)),
        max_bytes_(limits.max_file_bytes) {}

  absl::Status Load(std::string_view blob, const SourceLimits& limits);
  uint64_t num_samples() const override { return records_.count(); }
  std::string Describe(uint64_t sample) const override {
    return Shown(PlaceOf(sample));
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return RecordPlace{.file = files_.Shown(place.file),
                       .offset = place.offset,
                       .bytes = place.size,
                       .index = place.record};
  }

 private:
  absl::Status AddFile(const stored::v1::TfrecordFile& part, bool goes_on,
                       uint64_t max_records);
  absl::Status GoOn(const stored::v1::TfrecordFile& part);
  Extent ExtentOf(uint64_t sample) const override {
    const Place place = PlaceOf(sample);
    return {place.file, place.offset, place.offset + place.size};
  }
  absl::StatusOr<Pending> Begin(uint64_t sample) const override;
  absl::StatusOr<StoredSample> End(uint64_t sample,
                                   Memory record) const override;
  Place PlaceOf(uint64_t sample) const;
  std::string Shown(const Place& place) const {
    return fmt::format("{}: record {} at {}", files_.Shown(place.file),
                       place.record, place.offset);
  }
  absl::Status Check(size_t feature, const FeatureValues& values) const;
  absl::StatusOr<StoredSample> Parse(Memory record, uint32_t size) const;

  const TfrecordOptions options_;
  const uint64_t max_bytes_;
  // The part of a file before the first of its records that are known here.
  struct Begun {
    uint64_t records = 0;
    uint64_t bytes = 0;
  };
  std::vector<uint64_t> first_;   // first record of each file
  std::vector<uint64_t> begins_;  // offset of these, if all files were one
  std::vector<Begun> begun_;
  RecordTable records_;  // of all files, one after the other
};

// `part` continues the file of the part before it.
absl::Status TfrecordSource::GoOn(const stored::v1::TfrecordFile& part) {
  const size_t file = files_.count() - 1;
  const Begun& begun = begun_.back();
  const uint64_t records = records_.count() - first_.back();
  const bool follows =
      part.file().name() == files_.name(file) &&
      part.file().bytes() == files_.size(file) &&
      part.first() == begun.records + records &&
      part.begin() == begun.bytes + records_.End() - begins_.back();
  return follows
             ? absl::OkStatus()
             : DataLoss("the index does not go on with {}", files_.Shown(file));
}

absl::Status TfrecordSource::AddFile(const stored::v1::TfrecordFile& part,
                                     bool goes_on, uint64_t max_records) {
  if (part.sizes().empty() || part.begin() > part.file().bytes() ||
      (goes_on && part.first() == 0))
    return DataLoss("the index has {} records from {} of a file of {}",
                    part.sizes_size(), part.begin(), part.file().bytes());
  if (goes_on) {
    RETURN_IF_ERROR(GoOn(part));
  } else {
    first_.push_back(records_.count());
    begins_.push_back(records_.End());
    begun_.push_back({.records = part.first(), .bytes = part.begin()});
    RETURN_IF_ERROR(files_.Add(part.file().name(), part.file().bytes(),
                               part.file().identity()));
  }
  uint64_t sum = 0;
  for (const uint32_t size : part.sizes()) {
    if (size < kTfrecordFraming)
      return DataLoss("the index has a record of {} bytes", size);
    sum += size;
    records_.Add(size);
  }
  const uint64_t left = part.file().bytes() - part.begin();
  if (part.more() ? sum >= left : sum != left)
    return DataLoss("the index has {} bytes in {} records of a file of {}", sum,
                    part.sizes_size(), part.file().bytes());
  if (records_.count() > max_records)
    return ResourceExhausted("more than {} records: the limit", max_records);
  return absl::OkStatus();
}

absl::Status TfrecordSource::Load(std::string_view blob,
                                  const SourceLimits& limits) {
  if (blob.size() > limits.max_index_bytes)
    return ResourceExhausted("an index of {} bytes: the limit is {}",
                             blob.size(), limits.max_index_bytes);
  BlobReader reader(blob);
  stored::v1::TfrecordHead head;
  RETURN_IF_ERROR(reader.Next(&head));
  const std::vector<std::string> paths = PathsInHead(options_);
  if (!std::equal(head.paths().begin(), head.paths().end(), paths.begin(),
                  paths.end()))
    return DataLoss("it is of another reader");
  Sha256 hash;
  BeginTfrecordHash(&hash);
  bool more = false;
  while (!reader.done()) {
    stored::v1::TfrecordFile part;
    RETURN_IF_ERROR(reader.Next(&part));
    RETURN_IF_ERROR(
        AddFile(part, std::exchange(more, part.more()), limits.max_files));
    if (part.first() == 0) files_.UpdateHash(&hash, files_.count() - 1);
    if (!more)
      hash.UpdateU64(part.first() + static_cast<uint64_t>(part.sizes_size()));
  }
  // One of many blocks may begin and end within a file.
  if (!limits.one_of_many &&
      (more || std::any_of(begun_.begin(), begun_.end(), [](const Begun& each) {
         return each.records != 0 || each.bytes != 0;
       })))
    return DataLoss("it tells only a part of a file");
  if (records_.count() == 0) return DataLoss("it lists no records");
  fingerprint_ = hash.Finish();
  files_.ShrinkToFit();
  records_.ShrinkToFit();
  return absl::OkStatus();
}

Place TfrecordSource::PlaceOf(uint64_t sample) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), sample);
  const auto file = static_cast<size_t>(after - first_.begin() - 1);
  return {.file = file,
          .record = begun_[file].records + sample - first_[file],
          .offset = begun_[file].bytes + records_.Begin(sample) - begins_[file],
          .size = records_.size(sample)};
}

absl::Status TfrecordSource::Check(size_t feature,
                                   const FeatureValues& values) const {
  const ValueType& type = options_.types[feature];
  const Kind wanted = IsBytesFeature(type)          ? Kind::kBytes
                      : type.dtype == DType::kInt64 ? Kind::kInts
                                                    : Kind::kFloats;
  const auto bad = [&](std::string_view what) {
    return InvalidArgument("feature \"{}\" {}, want {}",
                           options_.features[feature], what, TypeText(type));
  };
  if (values.kind != wanted)
    return bad(fmt::format("holds {}", NameOf(values.kind)));
  uint64_t elements = values.count;
  if (wanted == Kind::kBytes) {
    if (values.count != 1) return bad(fmt::format("has {} values", elements));
    if (type.kind == ValueType::Kind::kEncoded) return absl::OkStatus();
    elements = values.bytes.size() / SizeOf(type.dtype);
    if (values.bytes.size() % SizeOf(type.dtype) != 0)
      return bad(fmt::format("has {} bytes", values.bytes.size()));
  }
  if (elements > max_bytes_ / SizeOf(type.dtype))
    return ResourceExhausted(
        "feature \"{}\" has {} elements: the limit is {} "
        "bytes",
        options_.features[feature], elements, max_bytes_);
  const uint64_t per_row = StoredElements(type);
  if (IsOpen(type) ? elements % per_row == 0 : elements == per_row)
    return absl::OkStatus();
  return bad(fmt::format("has {} elements", elements));
}

absl::StatusOr<StoredSample> TfrecordSource::Parse(Memory record,
                                                   uint32_t size) const {
  ASSIGN_OR_RETURN(const std::span<const std::byte> data,
                   TfrecordData(std::span(record.get(), size)));
  const size_t count = options_.features.size();
  absl::InlinedVector<FeatureBytes, 8> features(count);
  RETURN_IF_ERROR(FindFeatures(data, options_.features,
                               {features.data(), features.size()}));
  StoredSample sample;
  sample.fields.resize(count);
  absl::InlinedVector<FeatureValues, 8> values(count);
  uint64_t numbers = 0;  // bytes that are written out
  for (size_t i = 0; i < count; ++i) {
    if (features[i].data() == nullptr)
      return InvalidArgument("it has no feature \"{}\"", options_.features[i]);
    auto parsed = ParseFeature(features[i]);
    if (!parsed.ok())
      return Annotate(parsed.status(),
                      fmt::format("feature \"{}\"", options_.features[i]));
    values[i] = *parsed;
    RETURN_IF_ERROR(Check(i, values[i]));
    const ValueType& type = options_.types[i];
    StoredField& field = sample.fields[i];
    field.bytes = values[i].bytes;
    const bool is_bytes = values[i].kind == Kind::kBytes;
    if (!is_bytes && field.bytes.data() == nullptr)
      numbers += values[i].count * SizeOf(type.dtype);
    if (!IsOpen(type)) continue;
    field.shape = type.shape;
    field.shape[0] = static_cast<int64_t>(
        (is_bytes ? field.bytes.size() / SizeOf(type.dtype) : values[i].count) /
        StoredElements(type));
  }

  std::byte* into = record.get() + size;
  sample.owner = record;
  if (numbers > kRoom) {
    auto owner = std::make_shared<Numbers>();
    owner->record = std::move(record);
    owner->numbers = std::make_unique_for_overwrite<std::byte[]>(numbers);
    into = owner->numbers.get();
    sample.owner = std::move(owner);
  }
  for (size_t i = 0; i < count; ++i) {
    const bool ints = values[i].kind == Kind::kInts;
    if (values[i].kind == Kind::kBytes || values[i].bytes.data() != nullptr)
      continue;
    const std::span<std::byte> to(into, values[i].count * (ints ? 8 : 4));
    if (ints) {
      CopyInts(values[i], to);
    } else {
      CopyFloats(values[i], to);
    }
    sample.fields[i].bytes = to;
    into += to.size();
  }
  return sample;
}

absl::StatusOr<PackedSource::Pending> TfrecordSource::Begin(
    uint64_t sample) const {
  const Place place = PlaceOf(sample);
  if (place.size > max_bytes_)
    return ResourceExhausted("{} has {} bytes: the limit is {}", Shown(place),
                             place.size, max_bytes_);
  Pending pending{.file = place.file,
                  .ranges = {},
                  .memory = NewSampleBytes(place.size + kRoom)};
  pending.ranges.push_back(
      {place.offset, std::span(pending.memory.get(), place.size)});
  return pending;
}

absl::StatusOr<StoredSample> TfrecordSource::End(uint64_t sample,
                                                 Memory record) const {
  const uint32_t size = records_.size(sample);
  absl::StatusOr<StoredSample> stored = Parse(std::move(record), size);
  if (!stored.ok()) return Annotate(stored.status(), Describe(sample));
  return Trimmed(*std::move(stored), size);
}

// Reads return kDataLoss if a checksum is wrong or the Example malformed, and
// kInvalidArgument if a feature is missing or does not match: all name file,
// record and offset.
absl::StatusOr<std::unique_ptr<Source>> OpenTfrecord(
    const Node& reader, std::string_view blob, const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const TfrecordOptions options, TfrecordOptionsOf(reader));
  return Loaded(std::make_unique<TfrecordSource>(options, limits),
                RedactedUri(options.paths.front()), blob, limits);
}

}  // namespace

const SourceFormat kTfrecordFormat = {"readers.tfrecord", BuildTfrecordIndex,
                                      OpenTfrecord,
                                      /*in_blocks=*/true};

}  // namespace leat::worker
