// SPDX-License-Identifier: Apache-2.0
//
// readers.caffe and readers.caffe2: images and labels in LMDB files.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/source/formats.h"
#include "worker/source/index_blob.h"
#include "worker/source/lmdb/lmdb.h"
#include "worker/source/packed/packed_source.h"

namespace leat::worker {
namespace {

using stored::v1::LmdbFile;
using stored::v1::LmdbIndex;

constexpr LmdbKind kCaffe = {"readers.caffe", ParseDatum};
constexpr LmdbKind kCaffe2 = {"readers.caffe2", ParseTensorProtos};

bool Fits(const ValueType& value, const ValueType& type) {
  ValueType widened = type;
  for (size_t i = 0; i < type.shape.size() && i < value.shape.size(); ++i)
    if (type.shape[i] == -1) widened.shape[i] = value.shape[i];
  return value == widened;
}

class LmdbSource final : public PackedSource {
 public:
  LmdbSource(const LmdbKind& kind, const SourceLimits& limits)
      : PackedSource(limits), kind_(kind), limits_(limits) {
    limits_.cancelled = nullptr;
  }

  absl::Status Load(const LmdbIndex& index) {
    RETURN_IF_ERROR(LoadTypes(index));
    if (static_cast<size_t>(index.files_size()) > kMaxLmdbFiles)
      return DataLoss("it names {} files, want at most {}", index.files_size(),
                      kMaxLmdbFiles);
    for (const LmdbFile& file : index.files()) RETURN_IF_ERROR(LoadFile(file));
    if (offsets_.empty()) return DataLoss("it has no values");
    files_.ShrinkToFit();
    fingerprint_ = LmdbFingerprint(kind_, index);
    return absl::OkStatus();
  }

  uint64_t num_samples() const override { return offsets_.size(); }
  std::string Describe(uint64_t sample) const override {
    const size_t file = FileOf(sample);
    return fmt::format("{}: value {}, {} bytes at {}", files_.Shown(file),
                       sample - first_[file], sizes_[sample], offsets_[sample]);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const size_t file = FileOf(sample);
    return RecordPlace{.file = files_.Shown(file),
                       .offset = offsets_[sample],
                       .bytes = sizes_[sample],
                       .index = sample - first_[file]};
  }

  Extent ExtentOf(uint64_t sample) const override {
    return {FileOf(sample), offsets_[sample],
            offsets_[sample] + sizes_[sample]};
  }

  absl::StatusOr<Pending> Begin(uint64_t sample) const override {
    const size_t file = FileOf(sample);
    const LmdbValue where{offsets_[sample], sizes_[sample]};
    if (where.bytes > limits_.max_file_bytes)
      return LmdbValueTooLarge(files_.Shown(file), where, limits_);
    Pending pending{
        .file = file, .ranges = {}, .memory = NewLmdbBytes(where).memory};
    pending.ranges.push_back(
        {where.offset, {pending.memory.get(), where.bytes}});
    return pending;
  }

  absl::StatusOr<StoredSample> End(uint64_t sample,
                                   SampleBytes memory) const override {
    auto stored = Parsed(sample, std::move(memory));
    if (!stored.ok()) return Annotate(stored.status(), Describe(sample));
    return stored;
  }

 private:
  absl::StatusOr<StoredSample> Parsed(uint64_t sample,
                                      SampleBytes memory) const {
    LmdbBytes value{.memory = std::move(memory), .bytes = {}};
    value.bytes = {value.memory.get(), sizes_[sample]};
    ASSIGN_OR_RETURN(const CaffeRecord record, kind_.parse(value.bytes));
    const ValueType type = CaffeImageType(record);
    if (!Fits(type, image_type_) || record.label_type != label_type_)
      return DataLoss(
          "{} and a label of {}; the records that were looked at for the index "
          "have {} and {}",
          Shown(type), Name(record.label_type), Shown(image_type_),
          Name(label_type_));
    StoredSample stored;
    stored.fields.resize(2);
    stored.fields[0].bytes = record.image;
    if (!record.encoded && image_type_.shape[0] == -1)
      stored.fields[0].shape = type.shape;
    if (!record.encoded && record.planes && record.channels > 1)
      Interleave(record, &stored.fields[0], &value);
    std::memcpy(value.label(), &record.label, sizeof record.label);
    stored.fields[1].bytes = {value.label(), sizeof record.label};
    stored.owner = std::move(value.memory);
    return stored;
  }

  static std::string Shown(const ValueType& type) {
    return type.kind == ValueType::Kind::kEncoded
               ? "an encoded image"
               : fmt::format("pixels of {} x {} x {}", type.shape[0],
                             type.shape[1], type.shape[2]);
  }

  // Converts (c, h, w) to (h, w, c) in new memory.
  static void Interleave(const CaffeRecord& record, StoredField* field,
                         LmdbBytes* value) {
    const size_t channels = static_cast<size_t>(record.channels);
    const size_t plane = record.image.size() / channels;
    LmdbBytes own{.memory = NewSampleBytes(LabelPlace(record.image.size()) +
                                           sizeof(int32_t)),
                  .bytes = {}};
    own.bytes = {own.memory.get(), record.image.size()};
    std::byte* to = own.memory.get();
    for (size_t i = 0; i < plane; ++i)
      for (size_t c = 0; c < channels; ++c) *to++ = record.image[c * plane + i];
    field->bytes = own.bytes;
    *value = std::move(own);
  }

  absl::Status LoadTypes(const LmdbIndex& index) {
    if (index.types_size() != 2) return DataLoss("it has no types");
    const auto& image = index.types(0);
    image_type_ = {
        image.encoded() ? ValueType::Kind::kEncoded : ValueType::Kind::kTensor,
        DType::kUint8,
        {image.shape().begin(), image.shape().end()}};
    label_type_ = static_cast<DType>(index.types(1).dtype());
    if (image_type_.shape.size() != (image.encoded() ? 0 : 3) ||
        (label_type_ != DType::kInt32 && label_type_ != DType::kFloat32))
      return DataLoss("its types are not those of images and labels");
    return absl::OkStatus();
  }

  absl::Status LoadFile(const LmdbFile& file) {
    ASSIGN_OR_RETURN(const OpenedFile opened,
                     OpenRecordFile(file.file(), limits_));
    ASSIGN_OR_RETURN(const uint64_t transaction, LmdbTransaction(*opened));
    if (transaction != file.transaction())
      return FailedPrecondition(
          "{}: changed after indexing: transaction {}, the index says {}",
          opened->name(), transaction, file.transaction());
    if (file.gaps_size() != file.sizes_size() ||
        offsets_.size() + static_cast<uint64_t>(file.gaps_size()) >
            limits_.max_files)
      return DataLoss("it has {} places and {} sizes", file.gaps_size(),
                      file.sizes_size());
    const uint64_t first = offsets_.size();
    uint64_t end = 0;
    for (int i = 0; i < file.gaps_size(); ++i) {
      const uint64_t at = end + static_cast<uint64_t>(file.gaps(i));
      if (at > opened->size() || file.sizes(i) > opened->size() - at)
        return DataLoss("{} bytes at {} are outside of {}", file.sizes(i), at,
                        opened->name());
      offsets_.push_back(at);
      sizes_.push_back(file.sizes(i));
      end = at + file.sizes(i);
    }
    first_.push_back(first);
    return files_.Add(file.file().uri(), file.file().bytes(),
                      file.file().identity());
  }

  size_t FileOf(uint64_t sample) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), sample);
    return static_cast<size_t>(after - first_.begin() - 1);
  }

  // Constant after Load.
  const LmdbKind& kind_;
  SourceLimits limits_;
  ValueType image_type_;
  DType label_type_ = DType::kInt32;
  std::vector<uint64_t> first_;    // first sample of each file
  std::vector<uint64_t> offsets_;  // by sample
  std::vector<uint32_t> sizes_;
};

absl::StatusOr<std::unique_ptr<Source>> Open(const LmdbKind& kind,
                                             std::string_view blob,
                                             const SourceLimits& limits) {
  LmdbIndex index;
  if (blob.size() > std::numeric_limits<int>::max() ||
      !index.ParseFromArray(blob.data(), static_cast<int>(blob.size())))
    return DataLoss("the index of {} is malformed", kind.op);
  return Loaded(std::make_unique<LmdbSource>(kind, limits), kind.op, index);
}

template <const LmdbKind& kKind>
constexpr SourceFormat FormatOf() {
  return {kKind.op,
          [](const Node& reader, const SourceLimits& limits) {
            return BuildLmdbIndex(kKind, reader, limits);
          },
          [](const Node&, std::string_view blob, const SourceLimits& limits) {
            return Open(kKind, blob, limits);
          }};
}

}  // namespace

const SourceFormat kCaffeFormat = FormatOf<kCaffe>();
const SourceFormat kCaffe2Format = FormatOf<kCaffe2>();

}  // namespace leat::worker
